"""Which job is next: priority, then the time it fell due, then the order of enqueueing; and which queue."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from tests.worker.crew import Crew


async def test_priorities_come_first_and_within_one_it_is_first_in_first_out(crew: Crew) -> None:
    """S2-2, S2-10, S2-11, S2-12, S2-34, S0-4, S0-7, S4-24, K-1: a hundred jobs, one at a time, the queue drained."""
    await crew.rota.queue().pause()
    await crew.start(concurrency=1)
    names = ["critical", "high", "medium", "normal", "low"]
    rank = {name: place for place, name in enumerate(names)}
    chosen = [random.Random(7).choice(names) for _ in range(100)]
    order = crew.program.order
    await crew.enqueue_many(
        order.using(priority=name).call("ran", f"{name}-{number}") for number, name in enumerate(chosen)
    )

    await crew.rota.queue().resume()
    ran = await crew.noted("ran", 100)

    expected = sorted(enumerate(chosen), key=lambda item: (rank[item[1]], item[0]))
    assert ran == [f"{name}-{number}" for number, name in expected]


async def test_a_scheduled_job_starts_on_time_and_never_early(crew: Crew) -> None:
    """S4-6, S4-32, S4-39, Q-9: by the server's clock, and without waiting for the next look."""
    await crew.start(concurrency=20)
    asked: list[tuple[int, str]] = []
    for delay in (0.3, 0.55, 0.8, 1.05, 1.3):
        by_delay = await crew.program.nap.using(delay=delay).enqueue(0)
        at = datetime.fromtimestamp(crew.now_ms() / 1000, UTC) + timedelta(seconds=delay)
        by_time = await crew.program.nap.using(run_at=at).enqueue(0)
        assert [await by_delay.state(), await by_time.state()] == ["scheduled"] * 2
        await by_delay.result(10)
        await by_time.result(10)
        for job in (by_delay, by_time):
            record = await job.refresh()
            due = record.enqueued_at + round(delay * 1000) if job is by_delay else round(at.timestamp() * 1000)
            asked.append(((record.claimed_at or 0) - due, str(job)))

    assert min(asked)[0] >= 0, "started early"
    assert max(asked)[0] < 500, "started late"


async def test_jobs_that_fall_due_while_every_slot_is_taken_keep_their_order(crew: Crew) -> None:
    """Kue #312: far-future jobs do not hold up those that are due."""
    await crew.start(concurrency=1)
    later = await crew.program.order.using(delay=3600).enqueue("ran", "later")
    holder = await crew.program.wait.enqueue("holder")
    await crew.noted("holder")
    second = await crew.program.order.using(delay=0.4).enqueue("ran", "second")
    first = await crew.program.order.using(delay=0.2).enqueue("ran", "first")
    urgent = await crew.program.order.using(delay=0.5, priority="critical").enqueue("ran", "urgent")
    await asyncio.gather(*(crew.until(job, "pending") for job in (first, second, urgent)))

    crew.allow("holder")
    await holder.result(10)

    assert await crew.noted("ran", 3) == ["urgent", "first", "second"]
    await later.cancel()


async def test_queues_are_served_strictly_in_the_order_given(crew: Crew) -> None:
    """S2-10: the first queue is drained before the second is looked at."""
    await _pause(crew, ["urgent", "bulk"])
    await crew.start(queues="urgent,bulk", concurrency=1)
    order = crew.program.order
    await crew.enqueue_many(order.using(queue="bulk").call("ran", f"bulk-{n}") for n in range(20))
    await crew.enqueue_many(order.using(queue="urgent").call("ran", f"urgent-{n}") for n in range(20))

    await crew.rota.queue("urgent").resume()
    await crew.rota.queue("bulk").resume()
    ran = await crew.noted("ran", 40)

    assert ran[:20] == [f"urgent-{n}" for n in range(20)]
    assert ran[20:] == [f"bulk-{n}" for n in range(20)]


async def test_a_queue_is_looked_at_as_soon_as_the_one_before_it_turns_out_to_be_empty(crew: Crew) -> None:
    """Its jobs do not wait for the next look, which here is a minute away."""
    await crew.start(queues="urgent,bulk", concurrency=1, hook="relying_on_pushes")
    order = crew.program.order

    for number in range(1, 11):
        await crew.enqueue_many(order.using(queue=queue).call("ran", queue) for queue in ["urgent"] * 3 + ["bulk"] * 3)
        await crew.noted("ran", 6 * number)


async def test_weights_share_the_slots_and_starve_nobody(crew: Crew) -> None:
    """`a=3,b=1`: while both wait, a gets about three of four."""
    order = crew.program.order
    for queue in ("a", "b"):
        await crew.enqueue_many(order.using(queue=queue).call("ran", queue) for _ in range(200))

    await crew.start(queues="a=3,b=1", concurrency=1)
    ran = await crew.noted("ran", 400, 20)

    first = ran[:200]
    assert 110 < first.count("a") < 190
    assert ran.count("a") == ran.count("b") == 200


async def test_weights_share_many_slots_too(crew: Crew) -> None:
    order = crew.program.order
    for queue in ("a", "b"):
        await crew.enqueue_many(order.using(queue=queue).call("ran", queue) for _ in range(100))

    await crew.start(queues="a=3,b=1", concurrency=8)
    ran = await crew.noted("ran", 200)

    assert 55 < ran[:100].count("a") < 95
    assert ran.count("a") == ran.count("b") == 100


async def test_pause_stops_claims_and_nothing_else(crew: Crew) -> None:
    """S1-19, K-11: running handlers go on, enqueueing goes on; resuming starts what waits at once."""
    await crew.start()
    running = await crew.program.wait.enqueue("running")
    await crew.noted("running")

    await crew.rota.queue().pause()
    waiting = await crew.program.order.enqueue("ran", "waiting")
    scheduled = await crew.program.order.using(delay=0.1).enqueue("ran", "scheduled")
    crew.allow("running")

    assert await running.result(10) == "running", "its end is stored"
    await crew.until(scheduled, "pending")
    assert await waiting.state() == "pending"
    assert (await crew.rota.queue().info()).is_paused
    assert crew.notes("ran") == []

    before = crew.now_ms()
    await crew.rota.queue().resume()
    await waiting.result(10)
    assert ((await waiting.refresh()).claimed_at or 0) - before < 1000


async def _pause(crew: Crew, queues: Sequence[str]) -> None:
    for queue in queues:
        await crew.rota.queue(queue).pause()
