"""Malformed requests, alone and in sequences, are answered with a 4xx and never with a 5xx.

`make test` sends about 2,000 of them, `make test-long` 20,000.
"""

from __future__ import annotations

import json
import random
import socket
from collections import Counter
from collections.abc import Generator
from contextlib import suppress
from typing import Any, Final
from urllib.parse import quote, urlsplit

import pytest
from hypothesis import Phase, settings
from hypothesis.errors import FlakyStrategyDefinition

from rota import Rota
from rota.client.session import sessions_of
from rota.server import create_app
from tests.scale import IS_LONG, random_seed
from tests.server.live import Live
from tests.server.test_openapi import UNHEALTHY, document, fill, schema
from tests.servers import Server

pytestmark = pytest.mark.timeout(3_000 if IS_LONG else 300)

#: Requests that are malformed at random, and requests in sequences.
REQUESTS: Final = 15_000 if IS_LONG else 1_500
IN_SEQUENCES: Final = 5_000 if IS_LONG else 300
#: Sequences that Hypothesis plans together, and the greatest number of requests in one.
SEQUENCES: Final = 20
STEPS: Final = 20
#: Values that fit nowhere, or hardly anywhere.
VALUES: Final[tuple[Any, ...]] = (
    None,
    True,
    -1,
    0,
    2**63,
    2**64,
    -(2**53),
    10**400,
    1e308,
    float("nan"),
    float("inf"),
    "",
    " ",
    "\0",
    "\ud800",
    "a\nb",
    "‮",
    "../..",
    "x" * 5_000,
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999+23:59",
    [],
    {},
    [[]],
    {"": None},
    {"$result": {}},
    {"__proto__": 1},
)
#: Segments of paths, not encoded.
SEGMENTS: Final = (
    b"%",
    b"%00",
    b"%ff",
    b"..",
    b"%2e%2e%2f",
    b"a%20b",
    b":",
    b"@",
    b"a@b:c",
    b"x" * 9_000,
    b"",
    b"*",
    b"~",
)
HEADERS: Final = (
    b"Idempotency-Key: \xff",
    b"Idempotency-Key: " + b"k" * 300,
    b"Last-Event-ID: nonsense",
    b"Cookie: rota_session=%00; a=b; ;=",
    b"Authorization: Bearer",
    b"Authorization: Basic ====",
    b"Content-Type: text/plain",
    b"Content-Type: application/json; charset=utf-99",
    b"Content-Type:",
    b"Content-Encoding: gzip",
    b"Accept: \xff/*;q=x",
    b"X-Forwarded-For: nonsense",
    b"Origin: null",
    b"Host:",
    b"Transfer-Encoding: nonsense",
    b"Range: bytes=5-1",
    b"traceparent: 00-zz-zz-zz",
    b"X: " + b"y" * 20_000,
)


class Requests:
    """Draws malformed requests for the operations of the OpenAPI document."""

    def __init__(self, seed: int, token: str) -> None:
        self._random = random.Random(seed)
        self._token = token
        self._operations = [
            (method.upper(), path, operation)
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
            if path != "/api/events"
        ]

    def next(self) -> bytes:
        """Returns the bytes of a request; its connection is closed afterwards."""
        draw = self._random
        method, path, operation = draw.choice(self._operations)
        target = b"/".join(self._segment(part) for part in path.encode().split(b"/"))
        names = [one["name"] for one in operation.get("parameters", ()) if one["in"] == "query"]
        if names and draw.random() < 0.7:
            query = [(draw.choice(names), self._text()) for _ in range(draw.randint(1, 3))]
            target += b"?" + b"&".join(name.encode() + b"=" + value for name, value in query)
        if draw.random() < 0.03:
            method = draw.choice(["HEAD", "OPTIONS", "TRACE", "PROPFIND", "get", "X" * 200])
        body = self._body(operation) if "requestBody" in operation or draw.random() < 0.1 else b""
        headers = [b"Host: 127.0.0.1", b"Connection: close", b"Authorization: Bearer " + self._token.encode()]
        headers += [b"Content-Type: application/json", b"Content-Length: %d" % len(body)]
        if draw.random() < 0.3:
            headers.append(draw.choice(HEADERS))
        return method.encode() + b" " + target + b" HTTP/1.1\r\n" + b"\r\n".join(headers) + b"\r\n\r\n" + body

    def _segment(self, part: bytes) -> bytes:
        if part.startswith(b"{"):
            known = [b"job0", b"default:job1", b"flow", b"default", b"w1", quote(self._text(), safe="%").encode()]
            return self._random.choice([*known, *SEGMENTS])
        return self._random.choice(SEGMENTS) if self._random.random() < 0.01 else part

    def _text(self) -> bytes:
        value = self._random.choice(VALUES)
        text = value if isinstance(value, str) else json.dumps(value)
        return quote(text.encode("utf-8", "surrogatepass")).encode()

    def _body(self, operation: dict[str, Any]) -> bytes:
        draw = self._random
        kind = draw.random()
        if kind < 0.1:
            return draw.randbytes(draw.randint(1, 200))
        text = json.dumps(self._value(self._schema_of(operation), 0))
        encoded = text.encode()
        if kind < 0.2:
            return encoded[: draw.randint(0, len(encoded))]
        if kind < 0.3 and encoded:
            at = draw.randrange(len(encoded))
            return encoded[:at] + draw.randbytes(1) + encoded[at + 1 :]
        return encoded

    def _schema_of(self, operation: dict[str, Any]) -> dict[str, Any]:
        content = operation.get("requestBody", {}).get("content", {})
        return next(iter(content.values()), {}).get("schema", {})

    def _value(self, described: dict[str, Any], depth: int) -> Any:
        """A value that fits the schema for the most part."""
        draw = self._random
        if depth > 6 or draw.random() < 0.12:
            return draw.choice(VALUES)
        if "$ref" in described:
            return self._value(document["components"]["schemas"][described["$ref"].rpartition("/")[2]], depth + 1)
        if options := described.get("anyOf") or described.get("oneOf"):
            return self._value(draw.choice(options), depth + 1)
        if options := described.get("enum"):
            return draw.choice(options)
        match described.get("type"):
            case "object":
                chosen = [one for one in described.get("properties", {}).items() if draw.random() < 0.5]
                found = {name: self._value(one, depth + 1) for name, one in chosen}
                return {**found, "unknown": 1} if draw.random() < 0.05 else found
            case "array":
                return [self._value(described.get("items", {}), depth + 1) for _ in range(draw.randint(0, 3))]
            case "integer" | "number":
                return draw.choice([0, 1, 60, -1, 0.5, 2**40])
            case "boolean":
                return draw.random() < 0.5
            case _:
                return draw.choice(["job0", "default", "example", "a b", "2030-01-01T00:00:00Z", "0 3 * * *"])


@pytest.fixture(scope="module")
def token_and_url(valkey: Server) -> Generator[tuple[str, str]]:
    """A server with some of everything in it, and the token of an admin."""
    rota = Rota(valkey.url, namespace="malformed")
    token = sessions_of(rota).run_sync(fill(rota))
    with Live(create_app(rota)) as live:
        yield token, live.url
    with valkey.client() as client:
        for key in client.scan_iter("malformed:*", count=1000):
            client.unlink(key)
    rota.close_sync()


def status_of(url: str, request: bytes) -> int:
    """The status of the response."""
    address = urlsplit(url)
    with socket.create_connection((address.hostname, address.port), timeout=30) as client:
        client.sendall(request)
        received = b""
        while len(received) < 12:
            received += client.recv(4_096) or pytest.fail(f"no response to {request[:2_000]!r}")
    return int(received[9:12])


def test_no_malformed_request_leads_to_a_5xx(token_and_url: tuple[str, str]) -> None:
    token, url = token_and_url
    seed = random_seed()
    requests = Requests(seed, token)
    statuses: Counter[int] = Counter()
    for _ in range(REQUESTS):
        request = requests.next()
        status = status_of(url, request)
        statuses[status] += 1
        assert status < 500, f"{status} (seed {seed}): {request[:3_000]!r}"
    print(f"\n{REQUESTS:,} requests: {dict(statuses.most_common())}")

    assert sum(count for status, count in statuses.items() if 400 <= status < 500) > REQUESTS / 3


def test_no_sequence_of_requests_leads_to_a_5xx(token_and_url: tuple[str, str]) -> None:
    """Schemathesis' stateful phase: ids from responses are used in the next requests."""
    token, url = token_and_url
    sent: Counter[int] = Counter()

    class Sequences(schema.as_state_machine()):
        def before_call(self, case: Any) -> None:
            if isinstance((case.query or {}).get("wait"), int | float):
                case.query["wait"] = 0  # a minute's wait for a result would be answered as well

        def get_call_kwargs(self, case: Any) -> dict[str, Any]:
            return {"base_url": url, "headers": {"Authorization": f"Bearer {token}"}}

        def validate_response(self, response: Any, case: Any, additional_checks: Any = None, **kwargs: Any) -> None:
            sent[response.status_code] += 1
            assert response.status_code < 500, f"{response.text}\n{case.as_curl_command()}"

    options = settings(
        max_examples=SEQUENCES,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        suppress_health_check=UNHEALTHY,
        phases=[Phase.generate],
    )
    while sent.total() < IN_SEQUENCES:
        # Hypothesis repeats beginnings of sequences, and the server remembers what was created the first time.
        with suppress(FlakyStrategyDefinition):
            Sequences.run(settings=options)
    print(f"\n{sent.total():,} requests in sequences: {dict(sent.most_common())}")
