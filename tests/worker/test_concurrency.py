"""How many jobs a worker runs at once, and when it renews its processes."""

from __future__ import annotations

import asyncio

import pytest

from rota.core.slot_autosizing import MAX_SLOTS, WorkerLoad, next_slots
from tests.eventually import eventually
from tests.worker.harness import Stopwatch, WorkerHarness


@pytest.mark.requirement("S0-6", "S1-6", "S2-11")
async def test_no_more_jobs_run_at_once_than_there_are_slots(harness: WorkerHarness) -> None:
    """The limit is reached and never passed, in all ways to run together."""
    await harness.start(concurrency=3)
    jobs = await harness.enqueue_many(harness.program.count_concurrent.call("rub") for _ in range(60))

    for job in jobs:
        await job.result(20)

    at_once = [int(count) for count in harness.notes("rub")]
    assert max(at_once) == 3
    assert len(at_once) == 60


async def test_the_limit_holds_over_processes_threads_and_loop_together(harness: WorkerHarness) -> None:
    worker = await harness.start("--processes", "2", concurrency=4)
    tasks = [harness.program.wait, harness.program.wait_in_thread, harness.program.wait_in_process]
    jobs = [await tasks[number % 3].enqueue(f"job-{number}") for number in range(9)]

    async def processing() -> int:
        return (await harness.rota.queue().counts())["processing"]

    await eventually(lambda: sum(bool(harness.notes(f"job-{number}")) for number in range(9)) == 4)
    assert await processing() == 4
    for number in range(9):
        harness.allow(f"job-{number}")
    for job in jobs:
        await job.result(20)
    assert len(worker.runners("loop")) == 2


async def test_loop_processes_share_the_jobs(harness: WorkerHarness) -> None:
    """`--processes 2`: two loops, both used."""
    await harness.start("--processes", "2", concurrency=8)

    async def nap(seconds: float) -> list[int]:
        jobs = await harness.enqueue_many(harness.program.sleep.call(seconds) for _ in range(8))
        return [await job.result(20) for job in jobs]

    async def both_have_started() -> bool:  # the worker is registered as soon as one has
        return len(set(await nap(0.01))) == 2

    await eventually(both_have_started)

    pids = await nap(0.2)

    assert sorted(pids.count(pid) for pid in set(pids)) == [4, 4]


@pytest.mark.requirement("S0-15", "S3-7", "S2-17")
async def test_two_workers_never_claim_the_same_job(harness: WorkerHarness) -> None:
    """Any number of workers share a queue, and each job runs once."""
    await harness.start_together(2)
    jobs = await harness.enqueue_many(harness.program.record_run.call("ran", str(number)) for number in range(500))

    await asyncio.gather(*(job.result(20) for job in jobs))

    ran = harness.notes("ran")
    assert len(ran) == len(set(ran)) == 500
    workers = {(await job.refresh()).worker for job in jobs}
    assert workers == {worker.id for worker in harness.workers}, "both had a share"


@pytest.mark.requirement("S4-40")
async def test_auto_grows_while_jobs_wait_and_the_cpu_is_free(harness: WorkerHarness) -> None:
    """Sleepy handlers and a backlog give it more slots, step by step."""
    worker = await harness.start(concurrency="auto")
    first = (await harness.info(worker)).info["slots"]
    await harness.enqueue_many(harness.program.sleep.call(1.0) for _ in range(200))

    async def has_grown() -> bool:
        return (await harness.rota.queue().counts())["processing"] >= first * 2

    await eventually(has_grown, 15)


@pytest.mark.requirement("S4-40")
async def test_auto_does_not_grow_when_the_cpu_is_not_free(harness: WorkerHarness) -> None:
    """Handlers that use the CPU get little company: the loop lags behind, and that is noticed."""
    worker = await harness.start(concurrency="auto")
    first = (await harness.info(worker)).info["slots"]
    await harness.enqueue_many(harness.program.burn_cpu.call(0.4) for _ in range(60))
    watch = Stopwatch()

    while watch.seconds < 6:
        # Not the jobs it holds: some of them are claimed ahead of a slot.
        assert (await harness.info(worker)).info["slots"] <= first * 2
        await asyncio.sleep(0.1)


def load(**changes: float) -> WorkerLoad:
    """A worker with every slot busy, work waiting, and CPU to spare."""
    usual: dict[str, float] = {"slots": 10, "busy": 10, "has_backlog": True, "cpu": 0.2, "lag_ms": 5}
    return WorkerLoad(**(usual | changes))  # type: ignore[arg-type]


@pytest.mark.requirement("S4-40")
@pytest.mark.parametrize(
    ("seen", "wanted"),
    [
        (load(), 12),
        (load(slots=1, busy=1), 2),
        (load(slots=100, busy=100), 125),
        (load(slots=MAX_SLOTS, busy=MAX_SLOTS), MAX_SLOTS),
        (load(busy=9), 10),
        (load(has_backlog=False), 10),
        (load(cpu=0.8), 10),
        (load(cpu=1.0), 10),
        (load(cpu=1.0, lag_ms=60), 8),
        (load(lag_ms=60), 10),
        (load(lag_ms=500), 8),
        (load(lag_ms=500, busy=0, has_backlog=False), 8),
        (load(slots=1, busy=1, lag_ms=500), 1),
    ],
)
def test_slots_grow_by_a_quarter_and_shrink_by_a_fifth(seen: WorkerLoad, wanted: int) -> None:
    """Grows while all slots are busy, jobs wait and CPU is free; shrinks when the loop lags."""
    assert next_slots(seen) == wanted


def test_slots_stay_within_bounds_whatever_is_seen() -> None:
    slots = 4
    for step in range(200):
        slots = next_slots(load(slots=slots, busy=slots, lag_ms=500 if step % 40 > 20 else 0))
        assert 1 <= slots <= MAX_SLOTS


async def test_burst_ends_when_nothing_is_left_to_do(harness: WorkerHarness) -> None:
    jobs = await harness.enqueue_many(harness.program.record_run.call("ran", str(number)) for number in range(25))
    later = await harness.program.record_run.using(delay=3600).enqueue("ran", "later")

    worker = harness.launch("--burst", concurrency=4)

    assert await worker.ended(20) == 0
    assert {await job.state() for job in jobs} == {"completed"}
    assert await later.state() == "scheduled"


async def test_burst_on_an_empty_queue_ends_at_once(harness: WorkerHarness) -> None:
    worker = harness.launch("--burst")

    assert await worker.ended(10) == 0


async def test_a_process_is_renewed_after_so_many_jobs_and_none_is_lost(harness: WorkerHarness) -> None:
    worker = await harness.start("--max-jobs", "5", concurrency=4)
    jobs = await harness.enqueue_many(harness.program.sleep.call(0.01) for _ in range(40))

    pids = [await job.result(30) for job in jobs]

    assert len(set(pids)) >= 3
    # What it had when it reached its number is finished there: no more than the other slots.
    assert max(pids.count(pid) for pid in set(pids)) <= 5 + 3
    records = [await job.refresh() for job in jobs]
    assert {record.counts.attempt for record in records} == {1}
    await eventually(lambda: len(worker.runners("loop")) == 1)


async def test_a_process_that_has_grown_too_large_is_renewed(harness: WorkerHarness) -> None:
    worker = await harness.start("--max-rss", "150", concurrency=1)
    (before,) = worker.runners("loop")
    jobs = await harness.enqueue_many(harness.program.leak_memory.call(10) for _ in range(45))

    pids = [await job.result(30) for job in jobs]

    assert pids[0] == before
    assert len(set(pids)) >= 2
    await eventually(lambda: len(worker.runners("loop")) == 1)
