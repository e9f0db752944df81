"""Which job is next: priority, then the time it fell due, then the order of enqueueing; and which queue."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from tests.worker.harness import WorkerHarness


@pytest.mark.requirement("S2-2", "S2-10", "S2-11", "S2-12", "S2-34", "S0-4", "S0-7", "S4-24", "K-1")
async def test_priorities_come_first_and_within_one_it_is_first_in_first_out(harness: WorkerHarness) -> None:
    """A hundred jobs, one at a time, the queue drained."""
    await harness.rota.queue().pause()
    await harness.start(concurrency=1)
    names = ["critical", "high", "medium", "normal", "low"]
    rank = {name: place for place, name in enumerate(names)}
    chosen = [random.Random(7).choice(names) for _ in range(100)]
    order = harness.program.record_run
    await harness.enqueue_many(
        order.using(priority=name).call("ran", f"{name}-{number}") for number, name in enumerate(chosen)
    )

    await harness.rota.queue().resume()
    ran = await harness.noted("ran", 100)

    expected = sorted(enumerate(chosen), key=lambda item: (rank[item[1]], item[0]))
    assert ran == [f"{name}-{number}" for number, name in expected]


@pytest.mark.requirement("S2-13", "S2-19", "S2-34")
async def test_a_load_of_jobs_on_several_workers_runs_each_once_and_no_cancelled_one(harness: WorkerHarness) -> None:
    """And A after B and C, which are behind all others."""
    run = harness.program.record_run
    await harness.rota.queue().pause()
    jobs = await harness.enqueue_many(run.call("ran", f"{number}") for number in range(60))
    b, c = await harness.enqueue_many(run.using(priority="low").call("ran", name) for name in "BC")
    a = await run.using(after=[b, c], priority="critical").enqueue("ran", "A")
    for job in jobs[::6]:
        await job.cancel()
    await harness.start_together(3, concurrency=2)

    await harness.rota.queue().resume()
    await a.result(60)
    await asyncio.gather(*(job.result(60) for number, job in enumerate(jobs) if number % 6))

    ran = harness.notes("ran")
    assert sorted(ran) == sorted(["A", "B", "C", *(f"{number}" for number in range(60) if number % 6)])
    assert ran.index("A") > max(ran.index("B"), ran.index("C"))
    assert {await job.state() for job in jobs[::6]} == {"cancelled"}


@pytest.mark.requirement("S4-6", "S4-32", "S4-39", "Q-9")
async def test_a_scheduled_job_starts_on_time_and_never_early(harness: WorkerHarness) -> None:
    """By the server's clock, and without waiting for the next look."""
    await harness.start(concurrency=20)
    asked: list[tuple[int, str]] = []
    for delay in (0.3, 0.55, 0.8, 1.05, 1.3):
        by_delay = await harness.program.sleep.using(delay=delay).enqueue(0)
        at = datetime.fromtimestamp(harness.now_ms() / 1000, UTC) + timedelta(seconds=delay)
        by_time = await harness.program.sleep.using(run_at=at).enqueue(0)
        assert [await by_delay.state(), await by_time.state()] == ["scheduled"] * 2
        await by_delay.result(10)
        await by_time.result(10)
        for job in (by_delay, by_time):
            record = await job.refresh()
            due = record.enqueued_at + round(delay * 1000) if job is by_delay else round(at.timestamp() * 1000)
            asked.append(((record.claimed_at or 0) - due, str(job)))

    assert min(asked)[0] >= 0, "started early"
    assert max(asked)[0] < 500, "started late"


async def test_jobs_that_fall_due_while_every_slot_is_taken_keep_their_order(harness: WorkerHarness) -> None:
    """Kue #312: far-future jobs do not hold up those that are due."""
    await harness.start(concurrency=1)
    later = await harness.program.record_run.using(delay=3600).enqueue("ran", "later")
    holder = await harness.program.wait.enqueue("holder")
    await harness.noted("holder")
    second = await harness.program.record_run.using(delay=0.4).enqueue("ran", "second")
    first = await harness.program.record_run.using(delay=0.2).enqueue("ran", "first")
    urgent = await harness.program.record_run.using(delay=0.5, priority="critical").enqueue("ran", "urgent")
    await asyncio.gather(*(harness.until(job, "pending") for job in (first, second, urgent)))

    harness.allow("holder")
    await holder.result(10)

    assert await harness.noted("ran", 3) == ["urgent", "first", "second"]
    await later.cancel()


@pytest.mark.requirement("S2-10")
async def test_queues_are_served_strictly_in_the_order_given(harness: WorkerHarness) -> None:
    """The first queue is drained before the second is asked. `test_claim_queues.py` has the details.

    A claim of `bulk` that is in flight when `urgent` is resumed may bring a job: so the worker has to wait for both.
    """
    await _pause(harness, ["urgent", "bulk"])
    worker = await harness.start(queues="urgent,bulk", concurrency=1)
    await harness.until_waiting(worker, "urgent", "bulk")
    order = harness.program.record_run
    await harness.enqueue_many(order.using(queue="bulk").call("ran", f"bulk-{n}") for n in range(20))
    await harness.enqueue_many(order.using(queue="urgent").call("ran", f"urgent-{n}") for n in range(20))

    await harness.rota.queue("urgent").resume()
    await harness.rota.queue("bulk").resume()
    ran = await harness.noted("ran", 40)

    assert ran[:20] == [f"urgent-{n}" for n in range(20)]
    assert ran[20:] == [f"bulk-{n}" for n in range(20)]


async def test_a_queue_is_looked_at_as_soon_as_the_one_before_it_turns_out_to_be_empty(harness: WorkerHarness) -> None:
    """Its jobs do not wait for the next look, which here is a minute away."""
    await harness.start(queues="urgent,bulk", concurrency=1, hook="no_polling")
    order = harness.program.record_run

    for number in range(1, 11):
        await harness.enqueue_many(
            order.using(queue=queue).call("ran", queue) for queue in ["urgent"] * 3 + ["bulk"] * 3
        )
        await harness.noted("ran", 6 * number)


async def test_weights_share_the_slots_and_starve_no_queue(harness: WorkerHarness) -> None:
    """`a=3,b=1`: while both wait, a gets about three of four."""
    order = harness.program.record_run
    for queue in ("a", "b"):
        await harness.enqueue_many(order.using(queue=queue).call("ran", queue) for _ in range(200))

    await harness.start(queues="a=3,b=1", concurrency=1)
    ran = await harness.noted("ran", 400, 20)

    first = ran[:200]
    assert 110 < first.count("a") < 190
    assert ran.count("a") == ran.count("b") == 200


async def test_weights_share_many_slots_too(harness: WorkerHarness) -> None:
    order = harness.program.record_run
    for queue in ("a", "b"):
        await harness.enqueue_many(order.using(queue=queue).call("ran", queue) for _ in range(100))

    await harness.start(queues="a=3,b=1", concurrency=8)
    ran = await harness.noted("ran", 200)

    assert 55 < ran[:100].count("a") < 95
    assert ran.count("a") == ran.count("b") == 100


async def test_weights_are_kept_between_queues_of_very_different_weight(harness: WorkerHarness) -> None:
    """`a=1,b=1,c=1,d=7` gave 24, 18, 11 and 46 %."""
    for queue in "abcd":
        calls = (harness.program.count_run.using(queue=queue).call("ran", 0.01) for _ in range(400))
        await harness.enqueue_many(calls)

    await harness.start(queues="a=1,b=1,c=1,d=7", concurrency=10)
    await harness.noted("ran", 400, 30)
    ended = {queue: (await harness.rota.queue(queue).info()).counts for queue in "abcd"}

    shares = {queue: 400 - counts["pending"] for queue, counts in ended.items()}
    total = sum(shares.values())
    assert 0.62 < shares["d"] / total < 0.78, shares
    assert all(0.06 < shares[queue] / total < 0.14 for queue in "abc"), shares


@pytest.mark.requirement("S1-19", "K-11")
async def test_pause_stops_claims_and_nothing_else(harness: WorkerHarness) -> None:
    """Running handlers go on, enqueueing goes on; resuming starts what waits at once."""
    await harness.start()
    running = await harness.program.wait.enqueue("running")
    await harness.noted("running")

    await harness.rota.queue().pause()
    waiting = await harness.program.record_run.enqueue("ran", "waiting")
    scheduled = await harness.program.record_run.using(delay=0.1).enqueue("ran", "scheduled")
    harness.allow("running")

    assert await running.result(10) == "running", "its end is stored"
    await harness.until(scheduled, "pending")
    assert await waiting.state() == "pending"
    assert (await harness.rota.queue().info()).is_paused
    assert harness.notes("ran") == []

    before = harness.now_ms()
    await harness.rota.queue().resume()
    await waiting.result(10)
    assert ((await waiting.refresh()).claimed_at or 0) - before < 1000


async def _pause(harness: WorkerHarness, queues: Sequence[str]) -> None:
    for queue in queues:
        await harness.rota.queue(queue).pause()
