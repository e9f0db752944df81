"""`rota.sentry` with the real SDK, against a receiver that speaks Sentry's protocol."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest

from rota import JobFailed
from tests.servers import Server
from tests.worker.harness import WorkerHarness


class Receiver(ThreadingHTTPServer):
    """Keeps the events of all envelopes that it gets."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.raw: list[bytes] = []

    @property
    def dsn(self) -> str:
        """What `sentry_sdk.init` needs."""
        return f"http://key@127.0.0.1:{self.server_port}/1"

    @property
    def events(self) -> list[dict[str, Any]]:
        """The events in the envelopes: lines of a header for each item, and the item."""
        lines = [line for envelope in self.raw for line in envelope.splitlines()]
        items = pairwise(lines)
        return [json.loads(item) for header, item in items if json.loads(header).get("type") == "event"]


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        """Takes one envelope."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        envelope = gzip.decompress(body) if self.headers["Content-Encoding"] == "gzip" else body
        cast(Receiver, self.server).raw.append(envelope)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver on a free port."""
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()


@pytest.fixture
async def reporting(valkey: Server, namespace: str, tmp_path: Path) -> AsyncIterator[WorkerHarness]:
    """Starts workers of the program that reports."""
    with WorkerHarness(valkey, namespace, tmp_path, "tests.worker.sentry_program") as harness:
        yield harness
        await harness.rota.close()


@pytest.mark.timeout(90)
async def test_failed_attempts_are_reported_once_with_tags_and_no_arguments(
    reporting: WorkerHarness, receiver: Receiver
) -> None:
    """A worker that ends has sent all events."""
    worker = await reporting.start(environment={"ROTA_TEST_SENTRY": receiver.dsn})
    failing = await reporting.program.fail.using(id="failing").enqueue("very-secret")
    crashing = await reporting.program.crash.using(id="crashing").enqueue()
    for job in (failing, crashing):
        with pytest.raises(JobFailed):
            await job.result(20)
    worker.terminate()
    await worker.ended()

    def of(id: str) -> list[dict[str, Any]]:
        return [one for one in receiver.events if one.get("tags", {}).get("job_id") == f"default:{id}"]

    first, last = of("failing")
    assert [one["tags"]["attempt"] for one in (first, last)] == [1, 2]
    assert first["tags"] == first["tags"] | {"task": "fail", "queue": "default", "length": 11}
    assert first["transaction"] == "fail"
    assert first["exception"]["values"][-1]["type"] == "ValueError"
    assert [one["exception"]["values"][-1]["mechanism"]["handled"] for one in (first, last)] == [True, False]
    (crashed,) = of("crashing")
    assert crashed["exception"]["values"][-1]["type"] == "ProcessKilled"
    assert "length" not in crashed["tags"]
    assert len(receiver.events) == 3, [one.get("logentry") for one in receiver.events]
    assert b"very-secret" not in b"".join(receiver.raw)


@pytest.mark.timeout(90)
async def test_snooze_retry_later_and_cancel_are_not_reported(reporting: WorkerHarness, receiver: Receiver) -> None:
    worker = await reporting.start(environment={"ROTA_TEST_SENTRY": receiver.dsn})
    job = await reporting.program.later.enqueue()
    await reporting.until(job, "cancelled")
    worker.terminate()
    await worker.ended()

    assert receiver.events == []
