"""A worker is killed at each point between claim and acknowledgement: no job is lost, and each ends once."""

from __future__ import annotations

import signal
from typing import Final

import pytest

from rota import JobState
from tests.worker.harness import WorkerHarness

JOBS: Final = 5
#: Where it dies -> how often each handler must have run in the end; None where that depends on the instant.
POINTS: Final[dict[str, int | None]] = {
    "before_claim": 1,
    "after_claim": 1,
    "after_dispatch": None,
    "after_handler": None,
    "before_report": None,
    "after_report": None,
}


@pytest.mark.requirement("S0-3", "S0-5", "S0-8", "S4-1", "S4-32", "S3-17", "K-18")
@pytest.mark.parametrize("point", POINTS)
async def test_every_job_ends_exactly_once_wherever_its_worker_was_killed(harness: WorkerHarness, point: str) -> None:
    """Claimed, run and acknowledged in steps that can each be the last."""
    victim = await harness.start(hook=point)
    await harness.rota.queue().pause()
    jobs = await harness.enqueue_many(harness.program.count_run.call(f"job-{number}", 0.2) for number in range(JOBS))

    harness.allow("death")
    if point == "before_claim":
        # A claim that was on its way when death was allowed must find nothing: the next one is the last.
        assert await victim.ended(15) == -signal.SIGKILL
    await harness.rota.queue().resume()
    assert await victim.ended(15) == -signal.SIGKILL
    harness.outlive()
    await harness.start()

    for job in jobs:
        await job.result(20)
    for number, job in enumerate(jobs):
        verbs = [entry.verb for entry in await job.history()]
        effects = len(harness.notes(f"job-{number}"))
        assert verbs.count("complete") == 1
        assert verbs[-1] == "complete"
        assert effects == POINTS[point] if POINTS[point] else effects >= 1
        assert (await job.refresh()).counts.failures == 0
    info = await harness.rota.queue().info()
    assert info.counts == {state.value: JOBS if state is JobState.COMPLETED else 0 for state in JobState}
    assert info.totals["completed"] == JOBS


@pytest.mark.parametrize("point", ["before_report", "after_report"])
async def test_a_cancelled_job_is_released_once_wherever_its_worker_was_killed(
    harness: WorkerHarness, point: str
) -> None:
    """The worker dies before or after it confirms that the handler has stopped: the lock and the id are free again."""
    victim = await harness.start(hook=point)
    program = harness.program
    job = await program.count_run.using(id="one", lock="l").enqueue("cancelled", 60)
    await harness.noted("cancelled", 1)
    waiting = await program.count_run.using(lock="l").enqueue("next", 0.0)

    harness.allow("death")
    await job.cancel()
    assert await victim.ended(15) == -signal.SIGKILL
    harness.outlive()
    await harness.start()

    await waiting.result(20)
    again = await program.count_run.using(id="one").enqueue("again", 0.0)
    await again.result(20)
    assert again.run != job.run
    assert await job.state() is JobState.CANCELLED
    assert [len(harness.notes(name)) for name in ("cancelled", "next", "again")] == [1, 1, 1]
