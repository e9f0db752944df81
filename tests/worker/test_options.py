"""Options of a job that the worker has to respect: expiry, only once, retention."""

from __future__ import annotations

import contextlib

import pytest

from rota import JobCancelled, JobFailed, JobNotFound
from tests.eventually import eventually
from tests.worker.harness import WorkerHarness, failure


async def test_a_job_that_could_not_start_in_time_is_cancelled_within_a_second(harness: WorkerHarness) -> None:
    """Spec 3: with that reason, also while every slot is taken."""
    await harness.start(concurrency=1)
    holder = await harness.program.wait.enqueue("holder")
    await harness.noted("holder")
    job = await harness.program.record_run.using(expires=0.5).enqueue("ran", "late")
    scheduled = await harness.program.record_run.using(expires=0.5, delay=30).enqueue("ran", "later")

    for each in (job, scheduled):
        with pytest.raises(JobCancelled, match="expired"):
            await each.result(10)
        record = await each.refresh()
        assert 500 <= (record.ended_at or 0) - record.enqueued_at <= 1500
    harness.allow("holder")
    await holder.result(10)
    assert harness.notes("ran") == []


async def test_on_an_idle_worker_of_a_paused_queue_expiry_is_prompt_too(harness: WorkerHarness) -> None:
    await harness.start()
    await harness.rota.queue().pause()
    job = await harness.program.record_run.using(expires=0.4).enqueue("ran", "late")

    with pytest.raises(JobCancelled):
        await job.result(10)

    record = await job.refresh()
    assert 400 <= (record.ended_at or 0) - record.enqueued_at <= 1400


async def test_a_job_that_started_in_time_does_not_expire(harness: WorkerHarness) -> None:
    """Not started for the first time by then: a retry is no first start."""
    await harness.start()
    job = await harness.program.fail.using(expires=0.3, retry=3).enqueue("RetryLater", 0.6, times=1)

    assert await job.result(10) == "attempt 2"


@pytest.mark.requirement("S3-18")
@pytest.mark.parametrize("kind", ["ValueError", "RetryLater"])
async def test_at_most_once_means_one_attempt(shared: WorkerHarness, kind: str) -> None:
    """No retry, whatever the handler asks for."""
    details = [0.01] if kind == "RetryLater" else []
    job = await shared.program.fail.using(at_most_once=True, retry=5).enqueue(kind, *details)

    with pytest.raises(JobFailed):
        await job.result(10)

    assert (await job.refresh()).counts.attempt == 1


@pytest.mark.requirement("S3-18")
async def test_at_most_once_forgives_no_stall(harness: WorkerHarness) -> None:
    """Its process died, and how far it came is unknown."""
    await harness.start()
    job = await harness.program.exit_process.using(at_most_once=True).enqueue()

    error = await failure(job)

    assert error.kind == "stall"
    assert len(harness.notes("die")) == 1


async def test_finished_jobs_are_kept_by_age_and_count(harness: WorkerHarness) -> None:
    """Kue #582, arq #432: kept as asked, and then forgotten."""
    from rota import Keep

    await harness.start()
    brief = await harness.program.add.using(keep=0).enqueue(1, 2)
    few = [await harness.program.add.using(keep=Keep(finished_count=2)).enqueue(1, n) for n in range(5)]
    for job in few:
        with contextlib.suppress(JobNotFound):  # whichever two ended last are kept
            await job.result(10)

    async def is_gone() -> bool:
        try:
            await brief.refresh()
        except JobNotFound:
            return True
        return False

    await eventually(is_gone)
    kept = 0
    for job in few:
        try:
            await job.refresh()
            kept += 1
        except JobNotFound:
            pass
    assert kept == 2
