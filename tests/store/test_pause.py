"""pause: stops claims of a queue for everyone, and nothing else."""

from __future__ import annotations

from rota.core.states import JobState
from rota.store.bounds import LEASE_MS
from tests.store.driver import QUEUE, Driver, new_job, refs_of


async def test_a_paused_queue_gives_nothing_out_until_it_is_opened(driver: Driver) -> None:
    """S1-19, K-11, D-5."""
    ref = await driver.one()

    await driver.client.pause(QUEUE, wanted="paused")
    assert await driver.worker("w1").claim() == []
    assert await driver.worker("w2").claim() == []

    await driver.client.pause(QUEUE, wanted="open")
    assert refs_of(await driver.worker("w1").claim()) == [ref.run]


async def test_everything_else_goes_on_in_a_paused_queue(driver: Driver) -> None:
    done, stalled, late, expiring = await driver.enqueue(
        new_job(), new_job(), new_job(due="+60000"), new_job(due="+3600000", expiry="+60000")
    )
    job, _ = await driver.worker("w1").claim(2)
    await driver.client.pause(QUEUE, wanted="paused")

    assert (await driver.client.enqueue(QUEUE, [new_job()]))[0].is_new
    assert await driver.worker("w1").complete(job) == "ok"
    await driver.advance_with_ticks(60_000 + LEASE_MS)
    assert await driver.worker("w2").claim(5) == []

    assert [await driver.state(ref) for ref in (done, stalled, late, expiring)] == [
        JobState.COMPLETED, JobState.PENDING, JobState.PENDING, JobState.CANCELLED
    ]  # fmt: skip


async def test_a_pause_is_of_one_queue(driver: Driver) -> None:
    ref = await driver.one(queue="q-fail")
    await driver.client.pause(QUEUE, wanted="paused")

    assert refs_of(await driver.worker().claim(queue="q-fail")) == [ref.run]


async def test_opening_wakes_workers_and_a_queue_that_was_open_wakes_nobody(driver: Driver) -> None:
    await driver.client.pause(QUEUE, wanted="paused")
    await driver.worker("w1").claim()

    with driver.inbox("w1") as inbox:
        await driver.client.pause(QUEUE, wanted="open")
        assert inbox.told() == [f"wake {QUEUE}"]
        await driver.worker("w1").claim()
        await driver.client.pause(QUEUE, wanted="open")
        assert inbox.told() == []
