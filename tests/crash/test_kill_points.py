"""A worker is killed at each point between claim and acknowledgement: no job is lost, and each ends once."""

from __future__ import annotations

import signal
from typing import Final

import pytest

from rota import JobState
from tests.worker.crew import Crew

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


@pytest.mark.parametrize("point", POINTS)
async def test_every_job_ends_exactly_once_wherever_its_worker_was_killed(crew: Crew, point: str) -> None:
    """S0-3, S0-5, S0-8, S4-1, S4-32, S3-17, K-18: claimed, run and acknowledged in steps that can each be the last."""
    victim = await crew.start(hook=point)
    await crew.rota.queue().pause()
    jobs = await crew.enqueue_many(crew.program.count_run.call(f"job-{number}", 0.2) for number in range(JOBS))

    crew.allow("death")
    if point == "before_claim":
        # A claim that was on its way when death was allowed must find nothing: the next one is the last.
        assert await victim.ended(15) == -signal.SIGKILL
    await crew.rota.queue().resume()
    assert await victim.ended(15) == -signal.SIGKILL
    crew.outlive()
    await crew.start()

    for job in jobs:
        await job.result(20)
    for number, job in enumerate(jobs):
        verbs = [entry.verb for entry in await job.history()]
        effects = len(crew.notes(f"job-{number}"))
        assert verbs.count("complete") == 1
        assert verbs[-1] == "complete"
        assert effects == POINTS[point] if POINTS[point] else effects >= 1
        assert (await job.refresh()).counts.failures == 0
    info = await crew.rota.queue().info()
    assert info.counts == {state.value: JOBS if state is JobState.COMPLETED else 0 for state in JobState}
    assert info.totals["completed"] == JOBS
