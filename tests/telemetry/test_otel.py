"""`rota.otel` up close: what is carried, how it is switched on, and what happens without a collector."""

from __future__ import annotations

import importlib.metadata
import logging
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import baggage, context
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from rota import InvalidOption, Job, Rota, Snooze, StoreUnavailable, Update
from rota.client.middleware import AMBIENT
from rota.install_command import install_command
from rota.otel import OpenTelemetry, RotaInstrumentor, sdk_setup
from rota.otel.job_middleware import MAX_CREATE_SPANS, MAX_HEADER
from rota.testing import run_jobs
from rota.worker.app_loader import COLLECTORS, instrument
from tests.client.manual_worker import run_python
from tests.servers import OwnServers, Server
from tests.telemetry.collector import Collector
from tests.worker.harness import WorkerHarness

FAMILY = ("parent", "child")


class Tracing:
    """A provider of the test's own, and the spans that it saw."""

    def __init__(self) -> None:
        self._seen = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._seen))
        self.tracer = self.provider.get_tracer("test")

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self._seen.get_finished_spans() if span.name == name]


@pytest.fixture
def tracing() -> Iterator[Tracing]:
    tracing = Tracing()
    yield tracing
    tracing.provider.shutdown()


@pytest.fixture
async def rota(valkey: Server, namespace: str, tracing: Tracing) -> AsyncIterator[Rota]:
    """A client whose jobs are traced."""
    rota = Rota(valkey.url, namespace=namespace, middleware=[OpenTelemetry(tracer_provider=tracing.provider)])
    yield rota
    await rota.close()


@pytest.fixture
def add(rota: Rota) -> Any:
    @rota.task
    async def add(a: int, b: int = 1) -> int:
        return a + b

    return add


async def test_without_telemetry_a_record_has_no_trace_of_it(valkey: Server, namespace: str) -> None:
    rota = Rota(valkey.url, namespace=namespace)

    @rota.task
    async def add(a: int) -> int:
        return a

    job = await add.enqueue(1)

    assert add.call(1).job.body == b"\nadd\n[1]"
    assert (await job.refresh()).options.trace == {}
    await rota.close()


@pytest.mark.parametrize(("propagation", "is_child", "linked"), [("parent", 1, 1), ("link", 0, 1), ("none", 0, 0)])
async def test_propagation_says_whether_attempts_are_in_the_trace_or_linked_to_it(
    rota: Rota, add: Any, tracing: Tracing, propagation: Any, is_child: bool, linked: int
) -> None:
    rota.middleware[:] = [OpenTelemetry(propagation=propagation, tracer_provider=tracing.provider)]
    await add.enqueue(1)
    await run_jobs(rota)

    (created,), (attempt,) = tracing.named("enqueue default"), tracing.named("process default")
    assert created.context is not None
    assert attempt.context is not None
    assert (attempt.context.trace_id == created.context.trace_id) is bool(is_child)
    assert [link.context.span_id for link in attempt.links] == [created.context.span_id] * linked


def test_a_propagation_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InvalidOption, match="none of parent, link, none"):
        OpenTelemetry(propagation="child")  # type: ignore[arg-type]


async def test_an_enqueue_that_fails_is_a_span_that_failed(own_server: OwnServers, tracing: Tracing) -> None:
    server = own_server()
    traced = OpenTelemetry(tracer_provider=tracing.provider)
    rota = Rota(server.url, patience=0.1, middleware=[traced])

    @rota.task
    async def add(a: int) -> int:
        return a

    server.kill()
    with pytest.raises(StoreUnavailable):
        await add.enqueue(1)

    (span,) = tracing.named("enqueue default")
    assert not span.status.is_ok
    assert (span.attributes or {})["error.type"] == "rota.errors.StoreUnavailable"
    await rota.close()


async def test_a_large_batch_shares_one_context(rota: Rota, add: Any, tracing: Tracing) -> None:
    jobs = await rota.enqueue_many(add.call(n) for n in range(MAX_CREATE_SPANS + 1))

    (batch,) = tracing.named("enqueue default")
    assert batch.kind is SpanKind.CLIENT
    assert batch.context is not None
    assert tracing.named("create default") == []
    first = jobs[0]
    assert isinstance(first, Job)
    assert f"{batch.context.span_id:016x}" in (await first.refresh()).options.trace["traceparent"]


async def test_the_same_id_again_takes_the_trace_of_the_data(rota: Rota, add: Any, tracing: Tracing) -> None:
    async def trace_of(job: Job[int]) -> str:
        return (await job.refresh()).options.trace_id

    job = await add.using(id="x", delay=60).enqueue(1)
    before = await trace_of(job)
    await add.using(id="x", delay=60, on_same_id=Update(data=False)).enqueue(2)
    kept = await trace_of(job)
    await add.using(id="x", delay=60).enqueue(3)

    assert before == kept != await trace_of(job)


async def test_baggage_travels_unless_it_is_long(rota: Rota, add: Any) -> None:
    seen: list[object] = []

    @rota.task
    async def look() -> None:
        seen.append(baggage.get_baggage("tenant"))

    for tenant in ("acme", "a" * MAX_HEADER):
        token = context.attach(baggage.set_baggage("tenant", tenant))
        await look.enqueue()
        context.detach(token)
        await run_jobs(rota)

    assert seen == ["acme", None]


async def test_a_snooze_is_no_error(rota: Rota, tracing: Tracing) -> None:
    @rota.task
    async def nap() -> None:
        raise Snooze(60)

    await nap.enqueue()
    await run_jobs(rota)

    (span,) = tracing.named("process default")
    assert span.status.is_ok or span.status.is_unset
    assert (span.attributes or {})["rota.job.outcome"] == "snoozed"


# --- switching it on ---------------------------------------------------------------------------------------------


def test_opentelemetry_instrument_finds_what_traces_every_client_made_from_then_on() -> None:
    (found,) = importlib.metadata.entry_points(group="opentelemetry_instrumentor", name="rota")
    instrumentor = found.load()()
    assert isinstance(instrumentor, RotaInstrumentor)
    try:
        instrumentor.instrument(skip_dep_check=True)
        instrumentor.instrument()
        assert [type(one) for one in Rota("redis://nowhere").middleware] == [OpenTelemetry]
    finally:
        instrumentor.uninstrument()
    assert AMBIENT == []
    assert Rota("redis://nowhere").middleware == []


def test_without_a_collector_in_the_environment_nothing_is_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in COLLECTORS:
        monkeypatch.delenv(name, raising=False)
    rota = Rota("redis://nowhere")

    instrument(rota)

    assert rota.middleware == []


def test_a_collector_without_the_package_is_said_and_does_no_harm(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("TRACE_EXPORTER_URL", "http://127.0.0.1:9")
    monkeypatch.setitem(sys.modules, "rota.otel", None)
    rota = Rota("redis://nowhere")

    with caplog.at_level(logging.WARNING):
        instrument(rota)

    assert rota.middleware == []
    assert "TRACE_EXPORTER_URL is set, but jobs are not traced" in caplog.text
    assert install_command("otlp") in caplog.text


#: Enqueues a job whose handler enqueues another, and runs both.
PARENT_AND_CHILD = """
import asyncio, sys
from rota import Rota
from rota.testing import run_jobs
from rota.worker.app_loader import instrument

rota = Rota(namespace=sys.argv[1])

@rota.task
async def child() -> None: ...

@rota.task
async def parent() -> None:
    await child.enqueue()

async def main() -> None:
    await parent.enqueue()
    await run_jobs(rota)
    await rota.close()

instrument(rota)
asyncio.run(main())
"""


@pytest.mark.requirement("S2-30")
@pytest.mark.parametrize("protocol", ["grpc", "http/protobuf"])
def test_a_receiver_gets_one_trace_of_a_job_and_the_job_that_its_handler_enqueues(
    valkey: Server, namespace: str, tmp_path: Path, protocol: str
) -> None:
    """Under the name of the service, over either protocol, and with the metrics."""
    with Collector() as collector:
        environment = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.grpc_url if protocol == "grpc" else collector.url,
            "OTEL_EXPORTER_OTLP_PROTOCOL": protocol,
            "OTEL_SERVICE_NAME": "redis-job-service",
        }
        ended = run_python(PARENT_AND_CHILD, namespace, cwd=tmp_path, url=valkey.url, env=environment)
        assert ended.returncode == 0, ended.stderr

    by_task = {(span.name, span.attributes["rota.job.task"]): span for span in collector.spans}
    assert by_task.keys() == {(name, task) for name in ("enqueue default", "process default") for task in FAMILY}
    assert {span.service for span in collector.spans} == {"redis-job-service"}
    assert len({span.trace_id for span in collector.spans}) == 1
    enqueued, ran = [by_task[name, "child"] for name in ("enqueue default", "process default")]
    assert enqueued.parent_id == by_task["process default", "parent"].span_id
    assert ran.parent_id == enqueued.span_id
    assert {point.attributes["rota.job.task"] for point in collector.metric("rota.job.end_to_end")} == set(FAMILY)


@pytest.mark.requirement("S2-28", "S2-30")
def test_the_protocol_is_that_of_the_variables_and_of_the_port(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def chosen(**variables: str) -> tuple[bool, bool]:
        with monkeypatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            return sdk_setup._is_grpc("traces"), sdk_setup._is_grpc("metrics")

    assert chosen() == (False, False)
    assert chosen(OTEL_EXPORTER_OTLP_PROTOCOL="grpc") == (True, True)
    assert chosen(OTEL_EXPORTER_OTLP_PROTOCOL="grpc", OTEL_EXPORTER_OTLP_TRACES_PROTOCOL="http/protobuf") == (
        False,
        True,
    )
    assert chosen(TRACE_EXPORTER_URL="http://collector:4317") == (True, False)
    assert chosen(TRACE_EXPORTER_URL="http://collector:4318") == (False, False)
    assert chosen(TRACE_EXPORTER_URL="http://a:4317", OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf") == (False, False)
    assert chosen(OTEL_EXPORTER_OTLP_PROTOCOL="http/json") == (False, False)
    assert "http/json is not supported" in caplog.text


@pytest.mark.requirement("S2-28")
async def test_a_collector_that_never_answers_holds_up_neither_jobs_nor_the_end(
    valkey: Server, namespace: str, tmp_path: Path
) -> None:
    """`TRACE_EXPORTER_URL` names one. It accepts connections and never replies."""
    with (
        socket.create_server(("127.0.0.1", 0)) as hole,
        WorkerHarness(valkey, namespace, tmp_path, "tests.telemetry.app") as harness,
    ):
        address = f"http://127.0.0.1:{hole.getsockname()[1]}"
        worker = await harness.start(
            queues="fast",
            environment={
                "TRACE_EXPORTER_URL": address,
                "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": f"{address}/v1/metrics",
                "OTEL_BSP_SCHEDULE_DELAY": "10",
                "OTEL_BSP_MAX_QUEUE_SIZE": "64",
                "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "16",
                "OTEL_METRIC_EXPORT_INTERVAL": "50",
            },
        )
        jobs = await harness.enqueue_many(harness.program.tick.call(n) for n in range(300))

        for number, job in enumerate(jobs):
            assert await job.result(20) == number
        worker.terminate()

        assert await worker.ended(15) == 0
        await harness.rota.close()
