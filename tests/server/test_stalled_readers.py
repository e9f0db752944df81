"""Fifty readers of `/api/events` that stop reading during tens of thousands of events: other readers are not slowed."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, MutableMapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2
import psutil
import pytest
import redis
from fastapi import FastAPI

from rota import Rota
from rota.client.session import checked_session, sessions_of
from tests.server.test_events import Reader
from tests.servers import Server

pytestmark = pytest.mark.timeout(400)

STALLED: Final = 50
#: Entries that are written at once.
BURST: Final = 2_000
#: Runs that one entry names: as when workers claim and finish many together.
RUNS: Final = 100
MIB: Final = 2**20


@dataclass(slots=True)
class Site:
    """A server process, and the queue whose events it streams."""

    url: str
    process: psutil.Process
    client: redis.Redis
    stream: str

    def burst(self, count: int = BURST) -> None:
        """Writes entries as scripts do (`include/base/emit_event.lua`), capped as they are."""
        pipeline = self.client.pipeline(transaction=False)
        runs = " ".join(f"{number:010}" for number in range(RUNS))
        for _ in range(count):
            pipeline.xadd(self.stream, {"claim": runs}, maxlen=10_000, approximate=True)
        pipeline.execute()

    @property
    def rss(self) -> int:
        """Bytes of memory that the server process has in use."""
        return self.process.memory_info().rss

    @property
    def cpu(self) -> float:
        """Seconds of CPU that it has used."""
        times = self.process.cpu_times()
        return times.user + times.system


@pytest.fixture
def site(valkey: Server, namespace: str) -> Iterator[Site]:
    """Serves on the loopback address without tokens."""
    rota = Rota(valkey.url, namespace=namespace)

    async def register() -> None:
        await (await checked_session(rota)).store.add_queue_names(["mail"])

    sessions_of(rota).run_sync(register())
    rota.close_sync()
    words = [sys.executable, "-m", "rota.cli.main", "--url", valkey.url, "--namespace", namespace]
    process = subprocess.Popen([*words, "server", "--port", "0"], stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        listening = next(found for line in process.stderr if (found := re.search(r"listening on (http://\S+)", line)))
        with valkey.client() as client:
            yield Site(
                listening[1], psutil.Process(process.pid), client, sessions_of(rota).keys.queue("mail", "events")
            )
    finally:
        process.kill()
        process.communicate()


class Follower:
    """A healthy reader: counts the events that it receives."""

    def __init__(self, site: Site, stack: ExitStack, **headers: str) -> None:
        client = stack.enter_context(httpx2.Client(timeout=30))
        stream = client.stream("GET", f"{site.url}/api/events", params={"topics": "jobs"}, headers=headers)
        self._reader = Reader(stack.enter_context(stream))
        self.received = 0
        self.at = ""

    def receive(self, count: int) -> None:
        """Reads until it has received that many events."""
        while self.received < count:
            message = self._reader.next()
            assert message["event"] == "changes", message
            self.at = message["id"]
            self.received += sum(change["count"] for change in message["data"]["changes"])


def stall(site: Site, stack: ExitStack, path: str = "/api/events?topics=jobs") -> socket.socket:
    """A reader that asks, and reads nothing of the answer."""
    one = stack.enter_context(socket.socket())
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    url = urlsplit(site.url)
    one.connect((url.hostname, url.port))
    one.sendall(f"GET {path} HTTP/1.1\r\nHost: {url.netloc}\r\n\r\n".encode())
    return one


def time_bursts(site: Site, follower: Follower, bursts: int) -> tuple[list[float], float]:
    """How long the healthy reader took to receive each burst, and the server's CPU time for all of them."""
    took: list[float] = []
    before = site.cpu
    for _ in range(bursts):
        began = time.perf_counter()
        site.burst()
        follower.receive(follower.received + BURST * RUNS)
        took.append(time.perf_counter() - began)
    return took, site.cpu - before


def read_what_came(one: socket.socket) -> tuple[int, str]:
    """What a stalled reader receives when it reads again: the number of events, and the id of the last message."""
    one.settimeout(1.0)
    text = b""
    with suppress(TimeoutError):
        while some := one.recv(2**16):
            text += some
    messages = [part for part in text.decode().split("\n\n") if "\ndata: " in part]
    counts = [change["count"] for part in messages for change in json.loads(part.partition("data: ")[2])["changes"]]
    ids = re.findall(r"^id: (\S+)$", text.decode(), re.MULTILINE)
    return sum(counts), ids[-1]


def test_readers_that_stop_reading_change_nothing_for_others(site: Site) -> None:
    with ExitStack() as stack:
        follower = Follower(site, stack)
        time_bursts(site, follower, 2)  # warms up
        alone, cpu_alone = time_bursts(site, follower, 4)
        before = site.rss
        for _ in range(STALLED):
            stall(site, stack)
        beside, cpu_beside = time_bursts(site, follower, 12)
        grown = site.rss - before

    assert follower.received == 18 * BURST * RUNS, "none is missed, and none told twice"
    assert statistics.median(beside) < 2 * statistics.median(alone)
    # Each of them is still written to: a message now and then, which says more the less is taken.
    assert cpu_beside / 12 < 10 * max(cpu_alone / 4, 0.02)
    assert grown < 32 * MIB


def test_a_reader_that_stalled_goes_on_exactly_where_it_was(site: Site) -> None:
    with ExitStack() as stack:
        follower = Follower(site, stack)
        site.burst(1)
        follower.receive(RUNS)
        stalled = stall(site, stack, f"/api/events?topics=jobs&after={follower.at}")
        for _ in range(3):
            site.burst()
            follower.receive(follower.received + BURST * RUNS)
        told, at = read_what_came(stalled)
        stalled.close()
        site.burst()

        again = Follower(site, stack, **{"Last-Event-ID": at})
        again.receive(4 * BURST * RUNS - told)

    assert told + again.received == 4 * BURST * RUNS


async def test_a_reader_that_takes_nothing_for_long_is_let_go(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is only room for so many. The connection is a hand-made one, whose buffers are full at once."""
    monkeypatch.setattr("rota.server.routes.events.STALLED_S", 0.2)
    sent: list[str] = []
    requests = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message["type"])
        if message["type"] == "http.response.body":
            assert app.state.rota_server.readers == 1
            await asyncio.Event().wait()

    async def receive() -> dict[str, Any]:
        for request in requests:
            return request
        await asyncio.Event().wait()
        raise AssertionError

    scope = {
        "type": "http",
        "asgi": {"spec_version": "2.3", "version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": "/api/events",
        "raw_path": b"/api/events",
        "query_string": b"",
        "root_path": "",
        "headers": [(b"host", b"127.0.0.1")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    async with asyncio.timeout(20):
        await app(scope, receive, send)

    assert sent == ["http.response.start", "http.response.body"]
    assert app.state.rota_server.readers == 0
