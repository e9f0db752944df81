"""Attempts whose process, or whole worker, was killed: no trace lacks them. With the real SDK, over OTLP."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from rota import Job, JobFailed, JobState
from rota.otel import OpenTelemetry
from tests.eventually import eventually
from tests.servers import Server
from tests.telemetry.collector import Collector, SeenSpan
from tests.telemetry.shop import shop_and_collector
from tests.worker.harness import WorkerHarness, WorkerProcess

#: Three workers one after the other, and a thread that does not listen for five seconds: once for all tests here.


@dataclass(slots=True)
class Story:
    """A day on which much was killed, as the collector saw it."""

    collector: Collector
    trace_id: str
    jobs: dict[str, Job[Any]]
    vanished_worker: str

    def attempts(self, name: str) -> list[SeenSpan]:
        """The attempts of a job, the first first."""
        found = self.collector.of_job(self.jobs[name].id, "process")
        return sorted(found, key=lambda span: span.attributes["rota.job.attempt"])


@pytest.fixture(scope="module")
def story(valkey: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with shop_and_collector(valkey, tmp_path_factory.mktemp("killed")) as (harness, collector):
        yield asyncio.run(_tell(harness, collector))


async def _tell(harness: WorkerHarness, collector: Collector) -> Story:
    shop, rota = harness.program, harness.rota
    provider = TracerProvider()
    rota.middleware.append(OpenTelemetry(tracer_provider=provider))

    def attempts_of(job: Job[Any]) -> list[SeenSpan]:
        return collector.of_job(job.id, "process")

    async def start() -> WorkerProcess:
        # What a runner would send by itself comes too late: only what is seen to counts here.
        return await harness.start(
            "--grace",
            "0",
            queues="deadly",
            environment={
                "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{collector.url}/v1/traces",
                "OTEL_BSP_SCHEDULE_DELAY": "60000",
            },
        )

    request = provider.get_tracer("shop").start_span("POST /orders")
    jobs: dict[str, Job[Any]] = {}
    with trace.use_span(request):
        jobs["vanished"] = await shop.toil.enqueue("vanished")
    first = await start()
    await eventually(lambda: "toiling at vanished" in first.log, 20)
    first.kill()
    harness.outlive()
    second = await start()
    # Before `crash` is enqueued: it kills the runner that notifies the middleware, and then another one does it again.
    await eventually(lambda: attempts_of(jobs["vanished"]), 20)
    await eventually(lambda: "toiling at vanished" in second.log, 20)

    with trace.use_span(request):
        for name in ("cancelled", "left"):
            jobs[name] = await shop.toil.enqueue(name)
        jobs["crash"] = await shop.crash.enqueue(2)
        jobs["grind"] = await shop.grind.enqueue()
        jobs["doze"] = await shop.doze.enqueue()
    await eventually(lambda: "toiling at cancelled" in second.log, 20)
    await jobs["cancelled"].cancel()
    for name in ("grind", "doze"):
        with pytest.raises(JobFailed):
            await jobs[name].result(30)
    assert await jobs["crash"].result(20) == 3
    await eventually(lambda: all(attempts_of(jobs[name]) for name in ("vanished", "cancelled", "grind", "doze")), 20)
    await eventually(lambda: {1, 2} <= {span.attributes["rota.job.attempt"] for span in attempts_of(jobs["crash"])}, 20)
    await eventually(lambda: "toiling at left" in second.log, 20)
    second.terminate()
    assert await second.ended(20) == 0
    await harness.until(jobs["left"], JobState.PENDING)
    await rota.close()
    provider.shutdown()
    return Story(collector, f"{request.get_span_context().trace_id:032x}", jobs, first.id)


def test_an_attempt_that_killed_its_process_says_so_each_time(story: Story) -> None:
    """Also when the process that is to tell of the first is killed by the second: then it may be told of twice."""
    attempts = story.attempts("crash")
    killed = [span for span in attempts if span.attributes["rota.job.attempt"] < 3]

    assert {span.attributes["rota.job.attempt"] for span in killed} == {1, 2}
    # The last attempt is exported when its process ends, unless the process is killed before, as on a busy machine.
    assert {span.attributes["rota.job.outcome"] for span in attempts if span not in killed} <= {"completed"}
    for span in killed:
        assert (span.is_error, span.attributes["error.type"]) == (True, "killed")
        assert span.status == "killed: its process was killed by SIGKILL"


def test_a_process_that_was_killed_at_its_timeout_says_so(story: Story) -> None:
    for name in ("grind", "doze"):
        span = story.attempts(name)[-1]
        assert (span.is_error, span.attributes["rota.job.outcome"]) == (True, "timeout"), name
        assert span.status == "timeout: ran for more than 0.3 s and was stopped"
        assert span.ended_ns - span.began_ns >= 0.3e9


def test_a_process_that_was_killed_because_its_job_was_cancelled_is_no_error(story: Story) -> None:
    span = story.attempts("cancelled")[-1]

    assert (span.is_error, span.attributes["rota.job.outcome"]) == (False, "cancelled")


def test_attempts_killed_by_a_stopping_worker_are_reported_before_it_exits(story: Story) -> None:
    span = story.attempts("left")[-1]

    assert (span.is_error, span.status) == (True, "stopped: its worker stopped")


def test_the_attempt_of_a_killed_worker_is_reported_by_the_next_worker(story: Story) -> None:
    span = story.attempts("vanished")[0]

    assert (span.is_error, span.attributes["rota.job.outcome"]) == (True, "stalled")
    assert span.status == f"stalled: worker {story.vanished_worker} vanished"
    assert span.attributes["rota.job.attempt"] == 1
    assert span.began_ns < span.ended_ns


def test_they_belong_to_the_trace_of_the_enqueue_and_are_linked_to_it(story: Story) -> None:
    spans = [span for name in story.jobs for span in story.attempts(name)]

    assert {span.trace_id for span in spans} == {story.trace_id}
    assert {span.kind for span in spans} == {"CONSUMER"}
    assert all(span.links == (span.parent_id,) for span in spans)
    assert all(span.service == "rota" for span in spans)


def test_no_attempt_is_missing_and_none_is_reported_twice_by_a_live_worker(story: Story) -> None:
    for name in story.jobs:
        numbers = [span.attributes["rota.job.attempt"] for span in story.attempts(name)]
        known = numbers if name != "crash" else sorted(set(numbers))
        assert known == list(range(1, len(known) + 1)), name
