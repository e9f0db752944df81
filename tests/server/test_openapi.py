"""The OpenAPI document is true: whatever it allows is answered as it says, whatever it forbids is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Final

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import CHECKS
from schemathesis.config import SchemathesisConfig

from rota import Rota
from rota.client.session import sessions_of
from rota.server import Role, create_app, dashboard
from rota.server.auth.api_tokens import Tokens
from tests.scale import IS_LONG
from tests.server.live import Live
from tests.servers import Server

#: Of each operation.
EXAMPLES: Final = 60 if IS_LONG else 4
#: A stream has no end: test_events.py reads it.
STREAMS: Final = "/api/events"

#: What the machine, or a large schema, makes slow is no fault.
UNHEALTHY: Final = (HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large)


def _without_security(document: dict[str, Any]) -> dict[str, Any]:
    """The document for an authenticated request; test_authentication.py covers the others."""
    copy = deepcopy(document)
    del copy["components"]["securitySchemes"]
    for methods in copy["paths"].values():
        for operation in methods.values():
            operation.pop("security", None)
    return copy


document = create_app(Rota("redis://nowhere")).openapi()
config = SchemathesisConfig()
# A value above its largest length can also be refused as a body above its largest size.
config.projects.default.checks.negative_data_rejection.expected_statuses.append("413")
schema = schemathesis.openapi.from_dict(_without_security(document), config=config).exclude(path=STREAMS)


@pytest.fixture(scope="module")
def token_and_url(valkey: Server) -> Iterator[tuple[str, str]]:
    """A server with some of everything in it, and the token of an admin."""
    rota = Rota(valkey.url, namespace="openapi")
    token = sessions_of(rota).run_sync(fill(rota))
    with Live(create_app(rota)) as live:
        yield token, live.url
    with valkey.client() as client:
        for key in client.scan_iter("openapi:*", count=1000):
            client.unlink(key)
    rota.close_sync()


async def fill(rota: Rota) -> str:
    @rota.task
    def example(key: str = "", count: int = 0) -> None: ...

    for number in range(3):
        await example.using(id=f"job{number}", lock="a", tags=["t"]).enqueue("x")
    async with rota.workflow("order", id="flow") as flow:
        flow.step(example.call("x"))
    token = (await Tokens(rota).create(Role.ADMIN, name="schemathesis"))[0]
    await rota.close()
    return token


@schema.parametrize()  # pyright: ignore[reportUntypedFunctionDecorator]
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=UNHEALTHY)
def test_every_operation_does_as_the_document_says(case: Any, token_and_url: tuple[str, str]) -> None:
    if (case.method, case.path) == ("GET", "/") and not (dashboard.STATIC / "index.html").is_file():
        pytest.skip("the dashboard is not built: run `make web`")
    token, url = token_and_url
    case.call_and_validate(
        base_url=url,
        headers={"Authorization": f"Bearer {token}"},
        # What the document allows may still be refused, with a reason: a delay and a time, a job unknown.
        excluded_checks=CHECKS.get_by_names(["positive_data_acceptance"]),
    )


def test_the_document_says_what_every_answer_holds() -> None:
    """The dashboard's types are made of it: an answer without a schema would be one without a type."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            assert operation["summary"], f"{method} {path}"
            assert operation["description"], f"{method} {path}"
            answers = {code: answer for code, answer in operation["responses"].items() if code != "default"}
            for code, answer in answers.items():
                (media,) = answer["content"].values()
                assert media["schema"], f"{method} {path} {code}"
            assert "application/problem+json" in operation["responses"]["default"]["content"]


def test_no_name_of_the_framework_is_in_the_document() -> None:
    text = json.dumps(document)

    assert "HTTPValidationError" not in text
