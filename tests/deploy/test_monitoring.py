"""Every panel and rule that is shipped, asked of a real Prometheus after a real load. Grafana itself is not run."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import signal
import subprocess
import threading
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import pytest

from deploy.dashboards import DASHBOARDS, FOLDER, dashboard, written
from rota import Every, Rota
from rota.client.session import checked_session
from rota.monitoring.health_reader import HealthReader
from rota.monitoring.prometheus import CONTENT_TYPE, metrics_text
from rota.store.autoscaler_lease_decisions_and_demand import PlannerInfo, ScalingDecision
from rota.worker.monitoring.http_server import HttpResponse, HttpServer
from tests.deploy.prometheus import ROOT, SHIPPED, Prometheus, config, program
from tests.eventually import eventually, eventually_sync
from tests.servers import free_port, new_server
from tests.worker.harness import WorkerHarness

#: uid, title of the panel, its queries.
#: Seconds for what a look of Prometheus brings.
SCRAPE_S: Final = 60.0
PANELS: Final = [
    pytest.param([target["expr"] for target in panel["targets"]], id=f"{uid}: {panel['title']}")
    for uid in DASHBOARDS
    for panel in dashboard(uid)["panels"]
]


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Has watched a server and a worker through a busy moment, in which everything happened once."""
    folder, namespace = tmp_path_factory.mktemp("prometheus"), f"watched{secrets.token_hex(4)}"
    program("prometheus")
    with (
        new_server("valkey", tcp=True, appendonly="yes", maxmemory="500mb", maxmemory_policy="noeviction") as store,
        WorkerHarness(store, namespace, folder, "tests.telemetry.app") as harness,
        _scraped(Rota(store.url, namespace=namespace)) as server,
    ):
        port = free_port()
        with Prometheus(config(server, f"127.0.0.1:{port}", folder), folder) as prometheus:
            asyncio.run(_work(harness, port, prometheus))
            yield prometheus


@contextmanager
def _scraped(rota: Rota) -> Generator[str]:
    """Serves the text of a scrape, as Rota's server does."""
    loop = asyncio.new_event_loop()
    health = HealthReader(rota)

    async def metrics() -> HttpResponse:
        return HttpResponse(HTTPStatus.OK, CONTENT_TYPE, await metrics_text(rota, health.findings))

    port = HttpServer("127.0.0.1", 0, {"/metrics": metrics})
    thread = threading.Thread(target=loop.run_forever, name="scraped")
    thread.start()
    asyncio.run_coroutine_threadsafe(port.open(), loop).result(10)
    try:
        yield port.address.removeprefix("http://")
    finally:
        port.close()
        asyncio.run_coroutine_threadsafe(rota.close(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _work(harness: WorkerHarness, port: int, prometheus: Prometheus) -> None:
    shop = harness.program
    worker = await harness.start("--metrics-port", str(port), queues="default,mail,fast,flow")
    await shop.tick.using(queue="unserved").enqueue()
    await _all_kinds(harness)
    await _autoscale(harness)
    # Rates need two looks, and growth in between.
    await eventually(
        lambda: prometheus.query("rota_worker_in_flight") and prometheus.query("rota_jobs_total"), SCRAPE_S
    )
    async with _busy(harness):
        await _all_kinds(harness)
        os.kill(worker.runners("loop")[0], signal.SIGKILL)
        await eventually(lambda: max(prometheus.query("rota:failure_ratio:rate5m"), default=0) > 0, SCRAPE_S)
    await harness.rota.close()


async def _autoscale(harness: WorkerHarness) -> None:
    """An autoscaler is at work, for as long as the metrics are read."""
    session = await checked_session(harness.rota)
    lease = await session.scaling.take_lease("planner", PlannerInfo(max_workers=5, target_wait_ms=60_000))
    decision = ScalingDecision(at=harness.now_ms(), wanted=2, running=1, booting=1, reasons=["4 jobs wait."])
    await session.scaling.record(lease.fence, 1, decision, is_kept=True)
    with harness.redis() as client:
        client.hset(session.keys.shared("planner"), "until", harness.now_ms() + 3_600_000)


@asynccontextmanager
async def _busy(harness: WorkerHarness) -> AsyncGenerator[None]:
    """Jobs come and go all the while."""

    async def enqueue() -> None:
        while True:
            jobs = await harness.enqueue_many(harness.program.tick.call(n) for n in range(20))
            await jobs[-1].result(10)

    task = asyncio.create_task(enqueue())
    yield
    task.cancel()


async def _all_kinds(harness: WorkerHarness) -> None:
    shop, rota = harness.program, harness.rota
    jobs = [
        await shop.charge.using(lock="account:7").enqueue(7),
        *await harness.enqueue_many(shop.tick.call(n) for n in range(50)),
    ]
    await rota.schedules.put("hourly", Every(timedelta(hours=1)), shop.tick.call())
    failed = await shop.send.enqueue("a@b.c")
    flow = rota.workflow("order", on_failure="hold")
    flow.step(shop.step.call("ship"))
    await flow.commit()
    for job in jobs:
        await job.result(20)
    await harness.until(failed, "failed", 20)
    await failed.redrive()
    await harness.until(failed, "failed", 20)


def has_data(prometheus: Prometheus, query: str) -> None:
    """A killed process, or a scrape that took too long, may be missing from one evaluation."""
    eventually_sync(lambda: bool(prometheus.query(query)), SCRAPE_S)


def has_values(prometheus: Prometheus, query: str, values: list[float]) -> None:
    """The same for what is known exactly."""

    def are_found() -> bool:
        assert prometheus.query(query) == values, query
        return True

    eventually_sync(are_found, SCRAPE_S)


@pytest.mark.parametrize("queries", PANELS)
def test_every_panel_has_data_after_a_load(prometheus: Prometheus, queries: list[str]) -> None:
    for query in queries:
        has_data(prometheus, query.replace("$queue", ".*"))


def test_every_recording_has_data_after_a_load(prometheus: Prometheus) -> None:
    records = [rule["name"] for rule in prometheus.rules() if rule["type"] == "recording"]

    assert len(records) > 10
    for name in records:
        has_data(prometheus, name)


def test_every_alert_watches_figures_that_exist(prometheus: Prometheus) -> None:
    """What is compared has data, on both sides of every `and` and `unless`; whether it fires, promtool tests."""
    alerts = [rule for rule in prometheus.rules() if rule["type"] == "alerting"]

    assert len(alerts) > 20
    for alert in alerts:
        for clause in re.split(r"\s+(?:and|unless)\s+", alert["query"]):
            compared, _, bound = re.split(r"\s(==|>|<)\s(?=[\d.]+$)", clause)
            has_data(prometheus, compared)
            assert float(bound) >= 0


def test_nothing_is_counted_twice_or_lost(prometheus: Prometheus) -> None:
    """The figures are those of the jobs that were enqueued."""
    has_values(prometheus, 'rota_queue_jobs{queue="unserved",state="pending"}', [1])
    has_values(prometheus, 'rota_jobs_total{queue="mail",task="send",outcome="failed"}', [4])
    has_values(prometheus, 'rota_redriven_total{queue="mail"}', [2])
    has_values(prometheus, 'sum(rota_worker_attempt_seconds_count{task="charge",outcome="retried"})', [2])


def test_an_alert_that_must_fire_does(prometheus: Prometheus) -> None:
    """Jobs failed for good, and one queue has no worker: the first alert fires at once, the other after its delay."""
    found = {rule["name"]: rule for rule in prometheus.rules()}

    eventually_sync(lambda: prometheus.query('ALERTS{alertname="RotaDeadLetters",alertstate="firing"}'), SCRAPE_S)
    has_values(prometheus, 'ALERTS{alertname="RotaQueueUnserved",alertstate="pending",queue="unserved"}', [1])
    assert found["RotaStoreDown"]["state"] == "inactive"


# --- without a load ----------------------------------------------------------------------------------------------


def test_the_alerts_fire_when_they_should_and_only_then() -> None:
    promtool("test", "rules", str(ROOT / "tests" / "deploy" / "alerts_fire.yml"))


def test_rules_and_configuration_are_what_prometheus_takes(tmp_path: Path) -> None:
    promtool("check", "rules", *map(str, sorted((SHIPPED / "rules").glob("*.yml"))))
    (tmp_path / "prometheus.yml").write_text(config("server:8080", "worker:9400", tmp_path))
    promtool("check", "config", str(tmp_path / "prometheus.yml"))


def promtool(*words: str) -> None:
    done = subprocess.run([program("promtool"), *words], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


def test_every_alert_leads_to_a_section_that_says_what_to_do() -> None:
    alerts = (SHIPPED / "rules" / "alerts.yml").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    sections = {heading.lower() for heading in re.findall(r"^### (\w+)$", page, re.MULTILINE)}
    linked = re.findall(r"runbook_url: docs/operations\.md#(\w+)$", alerts, re.MULTILINE)

    assert len(linked) == len(re.findall(r"- alert: ", alerts))
    assert set(linked) <= sections, f"no section: {set(linked) - sections}"


@pytest.mark.parametrize("uid", DASHBOARDS)
def test_the_dashboards_are_what_their_source_says(uid: str) -> None:
    assert (FOLDER / f"{uid}.json").read_text(encoding="utf-8") == written(uid), "run python -m deploy.dashboards"


def test_panels_of_a_dashboard_do_not_overlap() -> None:
    for uid in DASHBOARDS:
        cells: set[tuple[int, int]] = set()
        for panel in dashboard(uid)["panels"]:
            place: dict[str, Any] = panel["gridPos"]
            taken = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
            assert not taken & cells, f"{uid}: {panel['title']}"
            cells |= taken


@pytest.mark.requirement("S2-31")
def test_the_compose_stack_has_every_part_and_mounts_files_that_exist() -> None:
    """Collector, Tempo, Prometheus and Grafana, each with a configuration of its own kind."""
    text = (ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8")
    services = re.findall(r"^  (\w+):$", text.partition("services:")[2], re.MULTILINE)

    assert services == [
        *["valkey", "server", "admin", "autoscaler", "worker"],
        *["collector", "tempo", "prometheus", "grafana"],
    ]
    for path in re.findall(r"\./([\w/.]+):/", text):
        assert (ROOT / "deploy" / path).exists(), path
    tempo = (ROOT / "deploy" / "otel" / "tempo.yaml").read_text(encoding="utf-8")
    assert "storage:" in tempo
    assert "exporters:" not in tempo
