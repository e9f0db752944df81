"""Slow and hostile clients: a connection that gets nowhere is closed, and keeps no other client out."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import ExitStack
from typing import Literal

import httpx2
import pytest
from fastapi import FastAPI, Request, Response
from starlette.routing import Route

from rota.server.http import connection_limits_and_timeouts
from rota.server.http.large_body_pacer import LargeBodyPacer
from tests.eventually import eventually_sync
from tests.server.live import Live

HEAD = b"POST /api/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
GET = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


def is_closed(client: socket.socket) -> bool:
    """True if the server has closed the connection."""
    client.setblocking(False)
    try:
        return client.recv(100_000) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def read_response(client: socket.socket) -> bytes:
    """The whole response to GET."""
    client.settimeout(10)
    received = b""
    while not received.endswith(b"}"):
        received += client.recv(10_000) or pytest.fail(f"closed after {received!r}")
    return received


@pytest.fixture
def connect() -> Callable[[Live, bytes], socket.socket]:
    def connect(live: Live, sent: bytes) -> socket.socket:
        client = socket.create_connection(("127.0.0.1", live.port))
        client.sendall(sent)
        return client

    return connect


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HT", HEAD + b'{"type": ', GET + HEAD + b'{"type": '])
def test_a_request_that_does_not_arrive_in_time_ends_its_connection(
    app: FastAPI, monkeypatch: pytest.MonkeyPatch, connect: Callable[[Live, bytes], socket.socket], sent: bytes
) -> None:
    monkeypatch.setattr(connection_limits_and_timeouts, "HEAD_S", 0.2)
    monkeypatch.setattr(connection_limits_and_timeouts, "BODY_S", 0.2)
    with Live(app) as live, connect(live, sent) as client:
        eventually_sync(lambda: is_closed(client))


def test_a_second_request_has_to_arrive_in_time_too(
    app: FastAPI, monkeypatch: pytest.MonkeyPatch, connect: Callable[[Live, bytes], socket.socket]
) -> None:
    monkeypatch.setattr(connection_limits_and_timeouts, "HEAD_S", 2)
    with Live(app) as live, connect(live, GET) as client:
        assert b"200 OK" in client.recv(10_000)
        client.sendall(b"GET /healthz HT")
        eventually_sync(lambda: is_closed(client))


@pytest.fixture
def eight(monkeypatch: pytest.MonkeyPatch) -> None:
    """At most eight connections, which no deadline closes."""

    def nothing(_protocol: object) -> None: ...

    monkeypatch.setattr(connection_limits_and_timeouts, "MAX_CONNECTIONS", 8)
    monkeypatch.setattr(connection_limits_and_timeouts, "HEAD_S", 600)
    monkeypatch.setattr(connection_limits_and_timeouts.LimitedProtocol, "timeout_keep_alive_handler", nothing)


@pytest.mark.usefixtures("eight")
@pytest.mark.parametrize("sent", [b"GET / HT", HEAD + b'{"type": '])
def test_clients_that_send_no_whole_request_keep_no_other_client_out(
    app: FastAPI, connect: Callable[[Live, bytes], socket.socket], sent: bytes
) -> None:
    with Live(app) as live, ExitStack() as clients:
        for _ in range(50):
            clients.enter_context(connect(live, sent))

        assert httpx2.get(f"{live.url}/healthz").status_code == 200
        eventually_sync(lambda: live.connections <= 8)


@pytest.mark.usefixtures("eight")
@pytest.mark.parametrize("loop", ["auto", "asyncio"])  # asyncio accepts all of them in one turn, uvloop one by one
def test_connections_that_arrive_at_once_are_limited_too(
    app: FastAPI, connect: Callable[[Live, bytes], socket.socket], loop: Literal["auto", "asyncio"]
) -> None:
    with ExitStack() as clients:

        async def burst(_request: Request) -> Response:
            for _ in range(100):  # the loop accepts them when this returns
                clients.enter_context(connect(live, b""))
            return Response()

        app.router.routes.insert(0, Route("/burst", burst))
        with Live(app, loop=loop) as live:
            assert httpx2.get(f"{live.url}/burst").status_code == 200
            assert httpx2.get(f"{live.url}/healthz").status_code == 200
            eventually_sync(lambda: live.connections <= 8)


@pytest.mark.usefixtures("eight")
def test_a_client_that_sends_requests_stays_connected_longer_than_one_that_does_not(
    app: FastAPI, connect: Callable[[Live, bytes], socket.socket]
) -> None:
    with Live(app) as live, ExitStack() as clients:
        pooled = clients.enter_context(connect(live, GET))
        assert b"200 OK" in read_response(pooled)
        uploading = clients.enter_context(connect(live, HEAD + b'{"type": '))
        idle = [clients.enter_context(connect(live, b"")) for _ in range(6)]
        eventually_sync(lambda: live.connections == 8)
        pooled.sendall(GET)
        assert b"200 OK" in read_response(pooled)

        for _ in idle:
            clients.enter_context(connect(live, b""))

        eventually_sync(lambda: all(map(is_closed, idle)))
        assert not is_closed(uploading)
        pooled.sendall(GET)
        assert b"200 OK" in read_response(pooled)


def test_a_client_that_reads_nothing_is_disconnected(
    app: FastAPI, monkeypatch: pytest.MonkeyPatch, connect: Callable[[Live, bytes], socket.socket]
) -> None:
    monkeypatch.setattr(connection_limits_and_timeouts, "STALLED_S", 0.2)

    def large(_request: Request) -> Response:
        return Response(bytes(50_000_000))

    app.router.routes.insert(0, Route("/large", large))
    with Live(app) as live, connect(live, b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n") as client:
        assert client.recv(1) == b"H"
        eventually_sync(lambda: live.connections == 0)


def test_the_limit_of_open_files_limits_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    def getrlimit(_which: int) -> tuple[int, int]:
        return 200, 1_000

    monkeypatch.setattr(connection_limits_and_timeouts.resource, "getrlimit", getrlimit)

    assert connection_limits_and_timeouts.max_connections() == 200 - connection_limits_and_timeouts.RESERVED_FILES


@pytest.mark.usefixtures("eight")
def test_clients_that_leave_in_the_middle_of_a_body_log_no_tracebacks(
    app: FastAPI, connect: Callable[[Live, bytes], socket.socket], caplog: pytest.LogCaptureFixture
) -> None:
    with Live(app) as live:
        with ExitStack() as clients:
            for _ in range(20):
                clients.enter_context(connect(live, HEAD + b'{"type": '))
            eventually_sync(lambda: live.connections == 8)
        eventually_sync(lambda: live.connections == 0)
        assert httpx2.get(f"{live.url}/healthz").status_code == 200

    assert caplog.messages == []


@pytest.mark.parametrize(
    ("received", "missing"),
    [
        (b"", None),
        (b"GET /heal", "head"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", None),
        (b"GET / HTTP/1.1\nHost: x\n\n", None),
        (HEAD, "body"),
        (HEAD.replace(b"Length: 1000", b"Length: 3") + b"{}", "body"),
        (HEAD.replace(b"Length: 1000", b"Length: 2") + b"{}", None),
        (HEAD.replace(b"Length: 1000", b"Length: 2") + b"{}GET / HT", None),
        (HEAD.replace(b"Content-Length: 1000", b"content-length:   3 ") + b"{}", "body"),
        (HEAD.replace(b"Length: 1000", b"Length: 100000"), None),
        (HEAD.replace(b"Length: 1000", b"Length: -1"), None),
        (HEAD.replace(b"Content-Length: 1000", b"Transfer-Encoding: chunked"), None),
        (HEAD.replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n"), None),
        (b"\x16\x03\x01", None),
        (b"G" * 70_000, None),
    ],
)
def test_a_small_request_is_parsed_once_it_is_whole(received: bytes, missing: str | None) -> None:
    assert connection_limits_and_timeouts.missing_part(received) == missing


def test_a_request_that_arrives_byte_by_byte_is_answered(
    app: FastAPI, connect: Callable[[Live, bytes], socket.socket]
) -> None:
    body = b'{"type": "x"}'
    request = HEAD.replace(b"Length: 1000", b"Length: %d" % len(body)) + body
    with Live(app) as live, connect(live, b"") as client:
        for _ in range(2):  # the second on the same connection
            for byte in request:
                client.sendall(bytes([byte]))
            assert b"201 Created" in read_response(client)


async def test_large_bodies_leave_half_of_the_time_to_other_requests() -> None:
    pacer = LargeBodyPacer()
    loop = asyncio.get_running_loop()
    began: list[float] = []
    ended: list[float] = []

    async def parse() -> None:
        await pacer.wait_for_turn()
        began.append(loop.time())
        while loop.time() < began[-1] + 0.02:
            pass
        ended.append(loop.time())

    await asyncio.gather(*(parse() for _ in range(4)))

    for before, start, end in zip(began, began[1:], ended, strict=False):
        assert start - end >= (end - before) * 0.9
