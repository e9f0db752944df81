"""What a job waits for, one after the other: dependency, same id, time, lock."""

from __future__ import annotations

from typing import Any

import pytest

from rota import IdInUse, Job, JobState
from tests.worker.harness import WorkerHarness


async def obstacle(job: Job[Any]) -> str:
    """What blocks it; "" where nothing does."""
    found = (await job.refresh()).obstacle
    return found.kind if found else ""


@pytest.mark.requirement("S2-14", "S3-1")
async def test_dependency_comes_before_time_and_time_before_lock(harness: WorkerHarness) -> None:
    """A job that could not start yet does not stand in the way of others who want its lock."""
    await harness.start()
    parent = await harness.program.wait.enqueue("parent")
    call = harness.program.hold_lock.using(id="x", after=[parent], lock="a", delay=3600)
    job = await call.enqueue("x", "a")

    assert await obstacle(job) == "after"
    holder = await harness.program.hold_lock_until.using(lock="a").enqueue("holder", "a")
    await harness.noted("a")  # the lock was free

    harness.allow("parent")
    await parent.result(10)
    await harness.until(job, JobState.SCHEDULED)

    again = await harness.program.hold_lock.using(id="x", after=[parent], lock="a").enqueue("x", "a")
    assert again.run == job.run
    assert await obstacle(job) == "lock"

    harness.allow("holder")
    await holder.result(10)
    await job.result(10)
    assert harness.notes("a") == ["holder in", "holder out", "x in", "x out"]


@pytest.mark.requirement("S4-27", "S4-29", "S3-1")
async def test_the_same_id_comes_before_time_and_time_before_lock(harness: WorkerHarness) -> None:
    await harness.start()
    first = await harness.program.hold_lock_until.using(id="x").enqueue("first", "x")
    await harness.noted("x")
    follow_up = await harness.program.hold_lock_until.using(id="x", lock="a", delay=3600).enqueue("second", "x")

    assert await obstacle(follow_up) == "same_id"
    holder = await harness.program.hold_lock_until.using(lock="a").enqueue("holder", "a")
    await harness.noted("a")

    harness.allow("first")
    await first.result(10)
    await harness.until(follow_up, JobState.SCHEDULED)

    await harness.program.hold_lock_until.using(id="x").enqueue("second", "x")
    assert await obstacle(follow_up) == "lock"

    harness.allow("holder")
    harness.allow("second")
    await holder.result(10)
    await follow_up.result(10)
    assert harness.notes("x") == ["first in", "first out", "second in", "second out"]


@pytest.mark.requirement("S4-8")
async def test_a_job_that_waits_for_another_is_changed_in_place(harness: WorkerHarness) -> None:
    """And only by a call that comes after the same jobs."""
    parent = await harness.program.echo.using(delay=3600).enqueue(0)
    job = await harness.program.echo.using(id="x", after=[parent]).enqueue("old")

    again = await harness.program.echo.using(id="x", after=[parent]).enqueue("new")
    with pytest.raises(IdInUse, match="depends on other jobs"):
        await harness.program.echo.using(id="x").enqueue("other")

    assert (again.run, again.is_new) == (job.run, False)
    record = await job.refresh()
    assert (record.state, record.arguments) == (JobState.BLOCKED, b'["new"]')
