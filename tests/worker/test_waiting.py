"""What a job waits for, one after the other: dependency, same id, time, lock."""

from __future__ import annotations

from typing import Any

import pytest

from rota import IdInUse, Job, JobState
from tests.worker.crew import Crew


async def obstacle(job: Job[Any]) -> str:
    """What blocks it; "" where nothing does."""
    found = (await job.refresh()).obstacle
    return found.kind if found else ""


async def test_dependency_comes_before_time_and_time_before_lock(crew: Crew) -> None:
    """S2-14, S3-1: a job that could not start yet does not stand in the way of others who want its lock."""
    await crew.start()
    parent = await crew.program.wait.enqueue("parent")
    call = crew.program.alone.using(id="x", after=[parent], lock="a", delay=3600)
    job = await call.enqueue("x", "a")

    assert await obstacle(job) == "after"
    holder = await crew.program.alone_until.using(lock="a").enqueue("holder", "a")
    await crew.noted("a")  # the lock was free

    crew.allow("parent")
    await parent.result(10)
    await crew.until(job, JobState.SCHEDULED)

    again = await crew.program.alone.using(id="x", after=[parent], lock="a").enqueue("x", "a")
    assert again.run == job.run
    assert await obstacle(job) == "lock"

    crew.allow("holder")
    await holder.result(10)
    await job.result(10)
    assert crew.notes("a") == ["holder in", "holder out", "x in", "x out"]


async def test_the_same_id_comes_before_time_and_time_before_lock(crew: Crew) -> None:
    """S4-27, S4-29, S3-1."""
    await crew.start()
    first = await crew.program.alone_until.using(id="x").enqueue("first", "x")
    await crew.noted("x")
    follow_up = await crew.program.alone_until.using(id="x", lock="a", delay=3600).enqueue("second", "x")

    assert await obstacle(follow_up) == "same_id"
    holder = await crew.program.alone_until.using(lock="a").enqueue("holder", "a")
    await crew.noted("a")

    crew.allow("first")
    await first.result(10)
    await crew.until(follow_up, JobState.SCHEDULED)

    await crew.program.alone_until.using(id="x").enqueue("second", "x")
    assert await obstacle(follow_up) == "lock"

    crew.allow("holder")
    crew.allow("second")
    await holder.result(10)
    await follow_up.result(10)
    assert crew.notes("x") == ["first in", "first out", "second in", "second out"]


async def test_a_job_that_waits_for_another_is_changed_in_place(crew: Crew) -> None:
    """S4-8: and only by a call that comes after the same jobs."""
    parent = await crew.program.echo.using(delay=3600).enqueue(0)
    job = await crew.program.echo.using(id="x", after=[parent]).enqueue("old")

    again = await crew.program.echo.using(id="x", after=[parent]).enqueue("new")
    with pytest.raises(IdInUse, match="comes after other jobs"):
        await crew.program.echo.using(id="x").enqueue("other")

    assert (again.run, again.is_new) == (job.run, False)
    record = await job.refresh()
    assert (record.state, record.arguments) == (JobState.BLOCKED, b'["new"]')
