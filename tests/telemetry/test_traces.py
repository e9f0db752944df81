"""One trace, from the call that enqueued a job to the end of all that came of it: with the real SDK, over OTLP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from rota import Job, JobFailed, WorkflowFailed
from rota.otel import OpenTelemetry
from rota.otel.metrics import JOB_SECONDS
from rota.server import create_app
from tests.eventually import eventually
from tests.server.api import open_api
from tests.servers import Server
from tests.telemetry.collector import Collector, SeenSpan
from tests.telemetry.shop import shop_and_collector
from tests.worker.harness import WorkerHarness

#: Two supervisors' worth of processes are started, once for all tests of this file.


#: The trace that a caller of the HTTP API names.
CALLER: Final = "4bf92f3577b34da6a3ce929d0e0e4736"


@dataclass(slots=True)
class Story:
    """A day at the shop, as the collector saw it."""

    collector: Collector
    trace_id: str
    jobs: dict[str, Job[Any]]
    log: list[dict[str, Any]]

    def attempts(self, name: str) -> list[SeenSpan]:
        """The attempts of a job, the first first."""
        found = self.collector.of_job(self.jobs[name].id, "process")
        return sorted(found, key=lambda span: span.attributes["rota.job.attempt"])

    def creation(self, name: str) -> SeenSpan:
        """The span that enqueued a job."""
        (found,) = self.collector.of_job(self.jobs[name].id, "enqueue")
        return found


@pytest.fixture(scope="module")
def story(valkey: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with shop_and_collector(valkey, tmp_path_factory.mktemp("traces")) as (harness, collector):
        yield asyncio.run(_tell(harness, collector))


async def _tell(harness: WorkerHarness, collector: Collector) -> Story:
    shop = harness.program
    provider = TracerProvider(resource=Resource.create({"service.name": "shop"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{collector.url}/v1/traces")))
    harness.rota.middleware.append(OpenTelemetry(tracer_provider=provider))
    tracer = provider.get_tracer("shop")
    jobs: dict[str, Job[Any]] = {}

    # The SERVER span stands for the request that a web framework's own instrumentation would trace.
    with tracer.start_as_current_span("POST /orders") as request:
        jobs["charge"] = await shop.charge.enqueue(7)
        jobs["pack"] = await shop.pack.using(after=[jobs["charge"]]).enqueue(7)
        jobs["send"] = await shop.send.enqueue("a@b.c")
        jobs["later"] = await shop.tick.using(delay=0.2).enqueue(1)
        jobs["hang"] = await shop.hang.enqueue()
        jobs["sync"] = await asyncio.to_thread(shop.tick.enqueue_sync, 2)
        await harness.rota.enqueue_many(shop.tick.call(n) for n in range(3))
        flow = harness.rota.workflow("order")
        first = flow.step(shop.step.call("pick")).undo(shop.unstep.call("pick"))
        flow.step(shop.step.call("ship"), after=[first])
        await flow.commit()
    app = create_app(harness.rota, auth="none")
    caller = {"traceparent": f"00-{CALLER}-00f067aa0ba902b7-01"}
    async with open_api(app) as api:
        for name, type_ in (("posted", "charge"), ("dependent", "pack")):
            body = {"type": type_, "data": [8], "dependencies": [jobs["posted"].id] if name == "dependent" else []}
            answer = await api.request("POST", "/api/jobs", json=body, headers=caller)
            jobs[name] = harness.rota.job(answer.json()["jobId"])
        await api.request("GET", "/api/jobs/none", headers=caller)
        await api.request("GET", "/healthz", headers=caller)
    harness.rota.middleware.clear()
    jobs["plain"] = await shop.tick.enqueue(3)  # this producer is not traced
    worker = await harness.start(
        "--log-format",
        "json",
        queues="default=1,mail=1,slow=1,fast=1,flow=1",
        environment={
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
            "OTEL_BSP_SCHEDULE_DELAY": "50",
            "OTEL_METRIC_EXPORT_INTERVAL": "200",
            "OTEL_SERVICE_NAME": "shop-worker",
        },
    )
    await asyncio.gather(*(job.result(20) for name, job in jobs.items() if name not in ("send", "hang")))
    jobs["label"] = harness.rota.job(await jobs["pack"].result(1))
    await jobs["label"].result(20)
    for name in ("send", "hang"):
        with pytest.raises(JobFailed):
            await jobs[name].result(20)
    with pytest.raises(WorkflowFailed):
        await flow.result(20)
    provider.force_flush()
    expected = {"process mail-fail": 1, "process slow": 1, "process flow": 3, "process fast": 6, "process default": 8}
    await eventually(lambda: all(len(collector.named(name)) >= count for name, count in expected.items()), 20)
    await eventually(lambda: len(collector.metric("rota.job.end_to_end")) >= 4, 20)
    worker.terminate()
    assert await worker.ended() == 0
    await harness.rota.close()
    provider.shutdown()
    lines = [json.loads(line) for line in worker.log.splitlines() if line.startswith("{")]
    return Story(collector, f"{request.get_span_context().trace_id:032x}", jobs, lines)


@pytest.mark.requirement("S2-30")
def test_one_trace_reaches_from_the_request_to_the_dependents_attempt(story: Story) -> None:
    """Through an enqueue, retries, a dependent in a thread, and a job that this one enqueues, in a process."""
    for name in ("charge", "pack", "label", "send", "later", "sync"):
        spans = [story.creation(name), *story.attempts(name)]
        assert {span.trace_id for span in spans} == {story.trace_id}, name
    (request,) = story.collector.named("POST /orders")
    assert story.creation("charge").parent_id == request.span_id
    assert story.creation("label").parent_id == story.attempts("pack")[0].span_id


@pytest.mark.requirement("S2-30")
def test_one_trace_reaches_from_a_callers_post_to_the_dependents_attempt(story: Story) -> None:
    """A caller in any language names its trace; a span per request, and everything that came of it."""
    posts = story.collector.named("POST /api/jobs")

    assert [(span.kind, span.attributes["http.response.status_code"]) for span in posts] == [("SERVER", 201)] * 2
    for name, post in zip(("posted", "dependent"), posts, strict=True):
        spans = [post, story.creation(name), *story.attempts(name)]
        assert {span.trace_id for span in spans} == {CALLER}, name
        assert story.creation(name).parent_id == post.span_id
    assert len(story.attempts("posted")) == 2, "a retry among them"


def test_a_request_is_named_by_its_route_and_probes_are_not_traced(story: Story) -> None:
    (missing,) = story.collector.named("GET /api/jobs/{job_id}")

    assert (missing.attributes["http.response.status_code"], missing.is_error) == (404, False)
    assert missing.attributes["url.path"] == "/api/jobs/none"
    assert not [span for span in story.collector.spans if span.attributes.get("url.path") == "/healthz"]


def test_retries_are_attempts_of_their_own_and_belong_to_the_enqueue(story: Story) -> None:
    first, second = story.attempts("charge")
    created = story.creation("charge")

    assert (first.kind, created.kind) == ("CONSUMER", "PRODUCER")
    assert first.parent_id == second.parent_id == created.span_id
    assert first.links == second.links == (created.span_id,)
    assert [span.attributes["rota.job.outcome"] for span in (first, second)] == ["retried", "completed"]
    assert (first.is_error, first.events, first.attributes["error.type"]) == (True, ("exception",), "ConnectionError")
    assert not second.is_error


def test_a_failure_handler_belongs_to_the_job_that_failed(story: Story) -> None:
    (handled,) = story.collector.named("process mail-fail")
    created = story.creation("send")

    assert handled.trace_id == story.trace_id
    assert handled.links == (created.span_id,)
    assert handled.attributes["rota.job.task"] == "send.on_failure"
    assert story.attempts("send")[0].attributes["rota.job.outcome"] == "failed"


def test_steps_and_compensations_of_a_workflow_belong_to_its_trace(story: Story) -> None:
    spans = story.collector.named("process flow")

    assert sorted(span.attributes["rota.job.task"] for span in spans) == ["step", "step", "unstep"]
    assert {span.trace_id for span in spans} == {story.trace_id}
    assert len({span.attributes["rota.workflow.id"] for span in spans}) == 1


def test_spans_say_what_the_conventions_ask_for(story: Story) -> None:
    created, attempt = story.creation("charge"), story.attempts("charge")[0]

    assert created.name == "enqueue default"
    assert (
        created.attributes.items()
        >= {
            "messaging.system": "rota",
            "messaging.operation.name": "enqueue",
            "messaging.operation.type": "send",
            "messaging.destination.name": "default",
            "messaging.message.id": story.jobs["charge"].id,
            "rota.job.task": "charge",
        }.items()
    )
    assert created.attributes["messaging.message.body.size"] > 0
    assert created.attributes["server.address"]
    assert attempt.name == "process default"
    assert (
        attempt.attributes.items()
        >= {
            "messaging.operation.type": "process",
            "rota.job.attempt": 1,
            "rota.job.run": story.jobs["charge"].run,
        }.items()
    )
    assert attempt.attributes["rota.job.wait_seconds"] >= 0
    assert (created.service, attempt.service) == ("shop", "shop-worker")


def test_jobs_enqueued_together_have_a_span_each_inside_that_of_the_batch(story: Story) -> None:
    batch = next(s for s in story.collector.named("enqueue fast") if "messaging.batch.message_count" in s.attributes)
    creates = story.collector.named("create fast")

    assert (batch.kind, batch.attributes["messaging.batch.message_count"]) == ("CLIENT", 3)
    assert [span.parent_id for span in creates] == [batch.span_id] * 3
    parents = {span.parent_id for span in story.collector.named("process fast")}
    assert parents > {span.span_id for span in creates}


def test_an_attempt_that_is_stopped_at_its_timeout_says_so(story: Story) -> None:
    (attempt,) = story.attempts("hang")

    assert (attempt.is_error, attempt.attributes["rota.job.outcome"]) == (True, "timeout")


def test_a_job_without_a_trace_begins_a_trace_of_its_own(story: Story) -> None:
    (attempt,) = story.attempts("plain")

    assert (attempt.parent_id, attempt.links) == ("", ())
    assert attempt.trace_id != story.trace_id


def test_metrics_have_buckets_for_seconds_and_count_what_happened(story: Story) -> None:
    runs = story.collector.metric("messaging.process.duration")
    outcomes = {(p.attributes["rota.job.task"], p.attributes["rota.job.outcome"]): p.value for p in runs}

    assert outcomes["charge", "retried"] == outcomes["charge", "completed"] == 2
    assert outcomes["hang", "timeout"] == outcomes["send", "failed"] == 1
    assert outcomes["tick", "completed"] == 6
    for name in ("messaging.process.duration", "rota.job.wait", "rota.job.end_to_end"):
        assert {(point.unit, point.bounds) for point in story.collector.metric(name)} == {("s", JOB_SECONDS)}
    assert {point.value for point in story.collector.metric("rota.job.in_flight")} == {0}
    waits = {p.attributes["rota.job.task"]: p.value for p in story.collector.metric("rota.job.wait")}
    assert waits["charge"] == 2, "only the first attempt of a job has waited since its enqueue"


def test_what_handlers_log_names_the_job_and_its_trace(story: Story) -> None:
    said = {line["message"]: line for line in story.log if line["logger"] == "shop"}
    packing, attempt = said["packing 7"], story.attempts("pack")[0]

    assert (
        packing.items()
        >= {
            "job_id": story.jobs["pack"].id,
            "queue": "default",
            "task": "pack",
            "attempt": 1,
            "trace_id": story.trace_id,
            "span_id": attempt.span_id,
        }.items()
    )
    assert said["labelling 7"]["trace_id"] == story.trace_id, "in a process of its own"
    assert said["told of ValueError"]["trace_id"] == story.trace_id, "in a failure handler"


def test_what_the_supervisor_logs_of_a_job_names_its_trace(story: Story) -> None:
    failed = next(line for line in story.log if "failed for good" in line["message"])

    assert (failed["logger"], failed["job_id"]) == ("rota.worker", story.jobs["send"].id)
    assert failed["trace_id"] == story.trace_id
