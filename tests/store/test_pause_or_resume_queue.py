"""pause: stops claims of a queue for everyone, and nothing else."""

from __future__ import annotations

import pytest

from rota.core.state_transitions import JobState
from rota.store.job_store import LEASE_MS
from tests.store.driver import QUEUE, Driver, new_job, refs_of
from tests.store.late_copies import recorded


@pytest.mark.requirement("S1-19", "K-11", "D-5")
async def test_a_paused_queue_gives_nothing_out_until_it_is_opened(driver: Driver) -> None:
    ref = await driver.one()

    await driver.client.pause_queue(QUEUE, wanted="paused")
    assert await driver.worker("w1").claim() == []
    assert await driver.worker("w2").claim() == []

    await driver.client.pause_queue(QUEUE, wanted="open")
    assert refs_of(await driver.worker("w1").claim()) == [ref.run]


async def test_everything_else_goes_on_in_a_paused_queue(driver: Driver) -> None:
    done, stalled, late, expiring = await driver.enqueue(
        new_job(), new_job(), new_job(due="+60000"), new_job(due="+3600000", expiry="+60000")
    )
    job, _ = await driver.worker("w1").claim(2)
    await driver.client.pause_queue(QUEUE, wanted="paused")

    assert (await driver.client.enqueue(QUEUE, [new_job()]))[0].is_new
    assert await driver.worker("w1").complete(job) == "ok"
    await driver.advance_with_ticks(60_000 + LEASE_MS)
    assert await driver.worker("w2").claim(5) == []

    assert [await driver.state(ref) for ref in (done, stalled, late, expiring)] == [
        JobState.COMPLETED,
        JobState.PENDING,
        JobState.PENDING,
        JobState.CANCELLED,
    ]


@pytest.mark.parametrize(("late", "newer"), [("paused", "open"), ("open", "paused")])
async def test_a_pause_that_arrives_late_reverts_nothing(driver: Driver, late: str, newer: str) -> None:
    with recorded(driver) as recording:
        await driver.client.pause_queue(QUEUE, wanted=late)
    await driver.client.pause_queue(QUEUE, wanted=newer)
    before = driver.dump()

    assert await recording.send_again("pause_or_resume_queue") == late.encode()

    assert driver.dump() == before


async def test_a_pause_is_of_one_queue(driver: Driver) -> None:
    ref = await driver.one(queue="q-fail")
    await driver.client.pause_queue(QUEUE, wanted="paused")

    assert refs_of(await driver.worker().claim(queue="q-fail")) == [ref.run]


async def test_resuming_wakes_workers_unless_the_queue_was_not_paused(driver: Driver) -> None:
    await driver.client.pause_queue(QUEUE, wanted="paused")
    await driver.worker("w1").claim()

    with driver.inbox("w1") as inbox:
        await driver.client.pause_queue(QUEUE, wanted="open")
        assert inbox.told() == [f"wake {QUEUE}"]
        await driver.worker("w1").claim()
        await driver.client.pause_queue(QUEUE, wanted="open")
        assert inbox.told() == []
