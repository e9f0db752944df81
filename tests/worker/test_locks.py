"""Locks, with real workers: two jobs of one lock never run at the same time, and no other job waits for them."""

from __future__ import annotations

import pytest

from rota import JobState
from tests.eventually import eventually
from tests.worker.harness import WorkerHarness


def overlaps(notes: list[str]) -> list[str]:
    """What was noted while another job held the lock."""
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


@pytest.mark.requirement("S3-1", "S3-2", "S3-8", "S3-9", "S3-15")
async def test_two_jobs_of_a_lock_never_run_at_the_same_time_on_any_number_of_workers(harness: WorkerHarness) -> None:
    """Forty jobs of four locks, on two workers with ten slots each."""
    await harness.start_together(2)
    locks = [f"account:{number % 4}" for number in range(40)]

    jobs = await harness.enqueue_many(
        harness.program.hold_lock.using(lock=lock).call(f"job{number}", lock) for number, lock in enumerate(locks)
    )

    for job in jobs:
        await job.result(30)
    for lock in set(locks):
        notes = harness.notes(lock)
        assert len(notes) == 20
        assert overlaps(notes) == []


@pytest.mark.requirement("S3-3", "S3-4", "S3-10")
async def test_other_jobs_do_not_wait_behind_a_locked_job(harness: WorkerHarness) -> None:
    """Those behind it are served while it waits, and it keeps its place in the lane."""
    await harness.start(concurrency=5)
    holder = await harness.program.hold_lock_until.using(lock="a").enqueue("first", "a")
    await harness.noted("a")
    behind = [await harness.program.hold_lock.using(lock="a").enqueue(f"job{n}", "a") for n in range(20)]

    others = [await harness.program.add.enqueue(n, n) for n in range(10)]

    assert [await job.result(10) for job in others] == [2 * n for n in range(10)]
    assert {await job.state() for job in behind} == {JobState.BLOCKED}
    explained = await behind[0].explain()
    assert explained.startswith(f"blocked: lock a is held by {holder.ref} for ")
    harness.allow("first")
    for job in behind:
        await job.result(10)
    entered = [line.split(" ")[0] for line in harness.notes("a") if line.endswith("in")]
    assert entered == ["first", *(f"job{n}" for n in range(20))]


@pytest.mark.requirement("S3-7", "S3-11")
async def test_the_next_of_a_lane_starts_at_once_on_a_quiet_queue(harness: WorkerHarness) -> None:
    """Releasing a lock is a push, not the next look of an idle worker."""
    await harness.start()
    first = await harness.program.hold_lock_until.using(lock="a").enqueue("first", "a")
    await harness.noted("a")
    second = await harness.program.echo.using(lock="a").enqueue(2)

    harness.allow("first")
    await second.result(10)

    ended, begun = (await first.refresh()).ended_at, (await second.refresh()).claimed_at
    assert ended is not None
    assert begun is not None
    assert begun - ended < 1_000, "an idle worker looks for itself only every 2 s"


@pytest.mark.requirement("S3-8", "S3-12", "S3-17")
async def test_a_killed_holder_loses_its_lock_with_its_lease(harness: WorkerHarness) -> None:
    """A worker that dies holds a lock no longer than its lease."""
    holder = await harness.start()
    first = await harness.program.hold_lock_until.using(lock="a").enqueue("first", "a")
    await harness.noted("a")
    second = await harness.program.echo.using(lock="a").enqueue(2)
    await harness.start()

    holder.kill()
    harness.expire_leases(holder)
    harness.allow("first")

    assert await second.result(20) == 2
    await first.result(20)
    assert (await first.refresh()).counts.stalls == 1


@pytest.mark.requirement("S3-11")
async def test_a_cancelled_holder_keeps_its_lock_until_its_handler_has_stopped(harness: WorkerHarness) -> None:
    """Nothing ever overlaps."""
    await harness.start()
    first = await harness.program.slow_to_stop.using(lock="a").enqueue("slow")
    await harness.noted("slow")
    second = await harness.program.hold_lock.using(lock="a").enqueue("second", "slow")

    await first.cancel()

    assert await second.state() is JobState.BLOCKED
    await eventually(lambda: "stopped" in " ".join(harness.notes("slow")), 20)
    await second.result(20)
    notes = harness.notes("slow")
    assert notes.index("stopped") < notes.index("second in")


@pytest.mark.parametrize("end", ["failed", "retried"])
async def test_a_job_in_backoff_does_not_hold_its_lock(harness: WorkerHarness, end: str) -> None:
    await harness.start()
    delay = 3600 if end == "retried" else 0
    first = await harness.program.fail.using(lock="a", retry=[2, 1][end == "failed"]).enqueue("RetryLater", delay)
    second = await harness.program.echo.using(lock="a", delay=0.1).enqueue(2)

    assert await second.result(10) == 2
    assert await first.state() is (JobState.SCHEDULED if end == "retried" else JobState.FAILED)
