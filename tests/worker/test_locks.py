"""Locks, with real workers: two jobs of one lock never run at the same time, and nobody else waits for them."""

from __future__ import annotations

import pytest

from rota import JobState
from tests.eventually import eventually
from tests.worker.crew import Crew


def overlaps(notes: list[str]) -> list[str]:
    """What was noted while somebody else was inside."""
    inside, found = "", list[str]()
    for line in notes:
        name, _, way = line.partition(" ")
        if way == "in":
            if inside:
                found.append(f"{name} came in while {inside} was there")
            inside = name
        elif inside == name:
            inside = ""
    return found


async def test_two_jobs_of_a_lock_never_run_at_the_same_time_on_any_number_of_workers(crew: Crew) -> None:
    """S3-1, S3-2, S3-8, S3-9, S3-15: forty jobs of four locks, on two workers with ten slots each."""
    await crew.start_together(2)
    locks = [f"account:{number % 4}" for number in range(40)]

    jobs = await crew.enqueue_many(
        crew.program.alone.using(lock=lock).call(f"job{number}", lock) for number, lock in enumerate(locks)
    )

    for job in jobs:
        await job.result(30)
    for lock in set(locks):
        notes = crew.notes(lock)
        assert len(notes) == 20
        assert overlaps(notes) == []


async def test_nobody_waits_behind_a_locked_job(crew: Crew) -> None:
    """S3-3, S3-4, S3-10: those behind it are served while it waits, and it keeps its place in the lane."""
    await crew.start(concurrency=5)
    holder = await crew.program.alone_until.using(lock="a").enqueue("first", "a")
    await crew.noted("a")
    behind = [await crew.program.alone.using(lock="a").enqueue(f"job{n}", "a") for n in range(20)]

    others = [await crew.program.add.enqueue(n, n) for n in range(10)]

    assert [await job.result(10) for job in others] == [2 * n for n in range(10)]
    assert {await job.state() for job in behind} == {JobState.BLOCKED}
    explained = await behind[0].explain()
    assert explained.startswith(f"blocked: lock a is held by {holder.ref} for ")
    crew.allow("first")
    for job in behind:
        await job.result(10)
    entered = [line.split(" ")[0] for line in crew.notes("a") if line.endswith("in")]
    assert entered == ["first", *(f"job{n}" for n in range(20))]


async def test_the_next_of_a_lane_starts_at_once_on_a_quiet_queue(crew: Crew) -> None:
    """S3-7, S3-11: releasing a lock is a push, not the next look of an idle worker."""
    await crew.start()
    first = await crew.program.alone_until.using(lock="a").enqueue("first", "a")
    await crew.noted("a")
    second = await crew.program.echo.using(lock="a").enqueue(2)

    crew.allow("first")
    await second.result(10)

    ended, begun = (await first.refresh()).ended_at, (await second.refresh()).claimed_at
    assert ended is not None
    assert begun is not None
    assert begun - ended < 1_000, "an idle worker looks for itself only every 2 s"


async def test_a_killed_holder_loses_its_lock_with_its_lease(crew: Crew) -> None:
    """S3-8, S3-12, S3-17: whoever dies holds nobody up for longer than its lease."""
    holder = await crew.start()
    first = await crew.program.alone_until.using(lock="a").enqueue("first", "a")
    await crew.noted("a")
    second = await crew.program.echo.using(lock="a").enqueue(2)
    await crew.start()

    holder.kill()
    crew.expire_leases(holder)
    crew.allow("first")

    assert await second.result(20) == 2
    await first.result(20)
    assert (await first.refresh()).counts.stalls == 1


async def test_a_cancelled_holder_keeps_its_lock_until_its_handler_has_stopped(crew: Crew) -> None:
    """S3-11: nothing ever overlaps."""
    await crew.start()
    first = await crew.program.slow_to_stop.using(lock="a").enqueue("slow")
    await crew.noted("slow")
    second = await crew.program.alone.using(lock="a").enqueue("second", "slow")

    await first.cancel()

    assert await second.state() is JobState.BLOCKED
    await eventually(lambda: "stopped" in " ".join(crew.notes("slow")), 20)
    await second.result(20)
    notes = crew.notes("slow")
    assert notes.index("stopped") < notes.index("second in")


@pytest.mark.parametrize("end", ["failed", "retried"])
async def test_a_job_in_backoff_does_not_hold_its_lock(crew: Crew, end: str) -> None:
    await crew.start()
    delay = 3600 if end == "retried" else 0
    first = await crew.program.fail.using(lock="a", retry=[2, 1][end == "failed"]).enqueue("RetryLater", delay)
    second = await crew.program.echo.using(lock="a", delay=0.1).enqueue(2)

    assert await second.result(10) == 2
    assert await first.state() is (JobState.SCHEDULED if end == "retried" else JobState.FAILED)
