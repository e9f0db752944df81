"""A worker's own port: /metrics for Prometheus, /healthz and /readyz for a service manager."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from rota import Rota
from rota.store.job_store import LEASE_MS
from rota.worker import WorkerConfig
from rota.worker.monitoring import health as health_module
from rota.worker.monitoring.http_server import HttpResponse, HttpServer, plain
from tests.eventually import eventually
from tests.servers import OwnServers, Server
from tests.telemetry.scrape import Scrape
from tests.worker.harness import WorkerHarness, WorkerProcess, failure


class Page(NamedTuple):
    status: int
    kind: str
    text: str

    @property
    def checks(self) -> dict[str, str]:
        return json.loads(self.text)["checks"]


def get(worker: WorkerProcess, path: str) -> Page:
    """A page of the worker's; its log says where it listens."""
    found = re.search(r"/readyz on (http://\S+)", worker.log)
    assert found is not None, worker.log
    try:
        with urllib.request.urlopen(f"{found[1]}{path}", timeout=10) as answer:
            return Page(answer.status, answer.headers["Content-Type"], answer.read().decode())
    except urllib.error.HTTPError as error:
        with error:
            return Page(error.code, error.headers["Content-Type"], error.read().decode())


@pytest.fixture
async def harness(valkey: Server, namespace: str, tmp_path: Path) -> AsyncIterator[WorkerHarness]:
    with WorkerHarness(valkey, namespace, tmp_path, "tests.telemetry.app") as harness:
        yield harness
        await harness.rota.close()


async def test_a_worker_tells_prometheus_what_it_did_and_a_probe_that_it_is_well(harness: WorkerHarness) -> None:
    shop = harness.program
    worker = await harness.start("--metrics-port", "0", queues="default,mail,fast")
    jobs = await harness.enqueue_many(shop.tick.call(n) for n in range(5))
    for job in [*jobs, await shop.charge.enqueue(7)]:
        await job.result(10)
    await failure(await shop.send.enqueue("a@b.c"))
    os.kill(worker.runners("loop")[0], signal.SIGKILL)
    await eventually(lambda: _has_a_new_runner(worker), 20)

    page, seen = get(worker, "/metrics"), Scrape(get(worker, "/metrics").text)

    def attempts(task: str, queue: str, outcome: str) -> float:
        return seen("rota_worker_attempt_seconds_count", task=task, queue=queue, outcome=outcome)

    assert (page.status, page.kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert seen("rota_worker_claims_total", queue="fast") == 5
    assert attempts("tick", "fast", "completed") == 5
    assert attempts("charge", "default", "retried") == attempts("charge", "default", "completed") == 1
    assert attempts("send", "mail", "failed") == attempts("send.on_failure", "mail-fail", "completed") == 1
    assert (seen("rota_worker_capacity"), seen("rota_worker_in_flight")) == (10, 0)
    assert seen("rota_worker_runner_ends_total", kind="loop", how="died") == 1
    assert {"rota_worker_loop_lag_seconds", "rota_worker_memory_bytes", "rota_worker_info"} <= seen.names
    assert all(seen("rota_worker_healthy", check=check) == 1 for check in ("state", "server", "leases", "runners"))
    assert (get(worker, "/healthz").status, get(worker, "/readyz").status) == (200, 200)
    assert get(worker, "/other").status == 404


async def test_a_worker_whose_server_is_away_is_alive_and_not_ready(
    own_server: OwnServers, namespace: str, tmp_path: Path
) -> None:
    server = own_server(appendonly="yes")
    with WorkerHarness(server, namespace, tmp_path, "tests.telemetry.app") as harness:
        worker = await harness.start("--metrics-port", "0", queues="fast")
        assert get(worker, "/readyz").status == 200

        server.kill()
        await eventually(lambda: get(worker, "/readyz").status == 503, 20)
        away = get(worker, "/readyz")

        assert away.checks["server"].startswith("the server has not answered for")
        assert away.checks["runners"] == "ok"
        assert get(worker, "/healthz").status == 200, "a restart would not help"

        server.start()
        await eventually(lambda: get(worker, "/readyz").status == 200, 20)
        await harness.rota.close()


async def test_a_port_that_is_taken_is_a_configuration_error(harness: WorkerHarness) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        worker = harness.launch("--metrics-port", str(port), queues="fast")

        assert await worker.ended(20) == 6
    assert f"cannot listen on 127.0.0.1:{port}" in worker.log


def test_without_being_asked_a_worker_listens_nowhere() -> None:
    assert WorkerConfig(app="tasks:rota").metrics_port is None
    assert WorkerConfig(app="tasks:rota").metrics_host == "127.0.0.1"


def _has_a_new_runner(worker: WorkerProcess) -> bool:
    seen = Scrape(get(worker, "/metrics").text)
    died = seen("rota_worker_runner_ends_total", kind="loop", how="died")
    return (died, seen("rota_worker_runners", kind="loop")) == (1, 1)


# --- up close ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET /page?x=1 HTTP/1.1\r\nHost: a\r\n\r\n", b"HTTP/1.1 200 OK"),
        (b"HEAD /page HTTP/1.1\r\n\r\n", b"HTTP/1.1 200 OK"),
        (b"POST /page HTTP/1.1\r\n\r\n", b"HTTP/1.1 405 Method Not Allowed"),
        (b"GET /none HTTP/1.1\r\n\r\n", b"HTTP/1.1 404 Not Found"),
        (b"GET /broken HTTP/1.1\r\n\r\n", b"HTTP/1.1 500 Internal Server Error"),
        (b"nonsense\r\n\r\n", b"HTTP/1.1 400 Bad Request"),
        (b"GET /\xff HTTP/1.1\r\n\r\n", b"HTTP/1.1 404 Not Found"),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 20_000 + b"\r\n\r\n", b""),
        (b"GET", b""),
    ],
)
async def test_a_port_answers_what_it_knows_and_survives_the_rest(sent: bytes, status: bytes) -> None:
    async def page() -> HttpResponse:
        return plain(HTTPStatus.OK, "here")

    async def broken() -> HttpResponse:
        raise RuntimeError("no")

    port = HttpServer("127.0.0.1", 0, {"/page": page, "/broken": broken})
    await port.open()
    reader, writer = await asyncio.open_connection("127.0.0.1", int(port.address.rpartition(":")[2]))
    writer.write(sent)
    writer.write_eof()
    try:
        answer = await reader.read()
    except ConnectionError:  # it hung up while more was being sent
        answer = b""
    writer.close()
    port.close()

    assert answer.partition(b"\r\n")[0] == status
    assert answer.endswith(b"here\n") == sent.startswith(b"GET /page")


class _Part:
    """Stands for a part of a worker, in whatever state."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


async def test_a_worker_that_gets_no_answer_while_others_do_is_stuck(
    valkey: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`/healthz` is never green while stuck: here the server answers, and the worker's own loop is stuck."""
    monkeypatch.setattr(health_module, "ANSWER_S", -1.0)
    monkeypatch.setattr(health_module, "STUCK_S", 0.0)
    runner = _Part(kind="loop", is_retired=False, is_ready=True)
    worker: Any = _Part(
        state="active",
        claim_loop=_Part(answered_at=0.0),
        queues=_Part(durations=_Part(lease_ms=LEASE_MS)),
        heartbeat=_Part(accepted_at=float("inf")),
        pool=_Part(runners=[runner]),
    )
    rota = Rota(valkey.url)
    health = health_module.Health(worker, rota)

    stuck = await health.alive()
    worker.state = "draining"
    drained = await health.alive()

    assert stuck.status == 503
    assert "the server has not answered" in stuck.text
    assert drained.status == 200, "a draining worker may have no calls to send"
    await rota.close()
