"""update: what a run that waits was asked for is changed; nothing else about it, and nothing of one at work."""

from __future__ import annotations

import pytest

from rota.core.ids import JobRef
from rota.core.same_id_policy import Update
from tests.store.driver import QUEUE, Driver, body, new_job, parts


async def update(
    driver: Driver, ref: JobRef, replaced: Update, *, seen: str = "", due: str = "", priority: int = 0
) -> str:
    """Changes a run to have the argument 9, in these parts."""
    digest = seen or (await driver.read(ref)).digest
    new = body([9], priority=priority)
    return await driver.client.update(
        ref, seen_digest=digest, parts=replaced, priority=priority, due=due, expiry="", body=new
    )


async def test_a_waiting_run_is_changed_in_the_parts_that_are_named(driver: Driver) -> None:
    ref = await driver.one("a", arguments=[1], tags=("kept",), priority=3)

    assert await update(driver, ref, parts(data=True)) == "updated"
    record = (await driver.read(ref)).record
    assert (record.arguments, record.options.priority) == (b"[9]", 3)

    assert await update(driver, ref, parts(options=True), priority=-7) == "updated"
    assert (await driver.read(ref)).record.options.priority == -7


async def test_a_run_moves_to_its_new_place_and_time(driver: Driver) -> None:
    first, second = await driver.enqueue(new_job("first"), new_job("second"))

    assert await update(driver, second, parts(options=True), priority=-5) == "updated"
    assert [job.run for job in await driver.worker().claim(1)] == [second.run]
    assert await update(driver, first, parts(run_at=True), due="+60000") == "updated"
    assert (await driver.read(first)).record.state == "scheduled"
    assert await update(driver, first, parts(run_at=True)) == "updated"
    assert [job.run for job in await driver.worker().claim(1)] == [first.run]


async def test_an_idle_worker_is_woken(driver: Driver) -> None:
    ref = await driver.one("a", due="+60000")
    driver.redis.zadd(driver.key("idle"), {"w1": driver.now()})

    await update(driver, ref, parts(run_at=True), due="+10")

    assert driver.redis.zcard(driver.key("idle")) == 0


async def test_a_dead_letter_keeps_its_place_and_gets_new_arguments(driver: Driver) -> None:
    dead = await driver.dead_letter("dead")
    before = (await driver.read(dead)).record

    assert await update(driver, dead, parts(data=True, options=True, run_at=True), due="+5000", priority=9) == "updated"

    record = (await driver.read(dead)).record
    assert (record.state, record.arguments, record.options.priority) == ("failed", b"[9]", before.options.priority)
    assert record.ended_at == before.ended_at


@pytest.mark.parametrize("state", ["processing", "completed", "cancelled", "missing", "changed"])
async def test_what_cannot_be_changed_stays_as_it_is(driver: Driver, state: str) -> None:
    ref = await driver.one("a")
    seen = (await driver.read(ref)).digest
    if state in ("processing", "completed"):
        (job,) = await driver.worker().claim()
        if state == "completed":
            await driver.worker().complete(job)
    elif state == "cancelled":
        await driver.client.cancel(ref)
    elif state == "missing":
        await driver.client.delete(ref)
    else:
        seen = "0" * 40
    before = driver.dump("reply")

    outcome = await update(driver, ref, parts(data=True, options=True, run_at=True), seen=seen, priority=1)

    assert outcome == {"completed": "ended completed", "cancelled": "ended cancelled"}.get(state, state)
    assert driver.dump("reply") == before


async def test_a_run_behind_a_lock_stays_in_its_lane(driver: Driver) -> None:
    holder, waiter, last = await driver.enqueue(*[new_job(id, lock="l") for id in ("holder", "waiter", "last")])

    assert await update(driver, last, parts(options=True), priority=-5) == "updated"

    states = [(await driver.read(ref)).record.state.value for ref in (holder, waiter, last)]
    assert sorted(states) == ["blocked", "blocked", "pending"]
    assert (await driver.read(last)).record.state == "pending", "the first of its lane, because none has started"


async def test_a_token_makes_one_job_whatever_has_become_of_it(driver: Driver) -> None:
    keyed = new_job("x")._replace(idempotency_token="token")
    (made,) = await driver.client.enqueue(QUEUE, [keyed])
    (job,) = await driver.worker().claim()
    await driver.worker().complete(job)
    await driver.client.delete(JobRef(QUEUE, "x", made.run))

    (again,) = await driver.client.enqueue(QUEUE, [keyed])
    (other,) = await driver.client.enqueue(QUEUE, [new_job("x")._replace(idempotency_token="another")])

    assert (again.outcome, again.run) == ("again", made.run)
    assert other.outcome == "made"
