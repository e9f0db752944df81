"""A worker confirms that the handler of a cancelled run has stopped: then its lock, its id and its dependents go on."""

from __future__ import annotations

import pytest

from rota.core.job_options import Keep
from rota.core.state_transitions import JobState
from rota.store.job_store import LEASE_MS
from tests.store.driver import QUEUE, Driver, new_job, refs_of


@pytest.mark.parametrize("verb", ["cancel", "delete"])
@pytest.mark.parametrize("keep", [3600.0, 0.0])
async def test_a_confirmed_cancel_frees_the_id_and_the_lock(driver: Driver, verb: str, keep: float) -> None:
    ref = await driver.one("x", lock="l", keep=Keep(finished=keep))
    (job,) = await driver.worker().claim()
    other = await driver.one(lock="l")
    await (driver.client.cancel(ref) if verb == "cancel" else driver.client.delete(ref))
    assert await driver.worker("w2").claim() == [], "the lock is held until the handler has stopped"

    assert await driver.worker().confirm_cancelled_run_stopped(job) == "ok"

    assert driver.index("stopping") == {}
    assert refs_of(await driver.worker("w2").claim()) == [other.run]
    (made,) = await driver.client.enqueue(QUEUE, [new_job("x")])
    assert made.is_new
    driver.check()


async def test_a_confirmed_cancel_notifies_dependents(driver: Driver) -> None:
    parent = await driver.one("p")
    (job,) = await driver.worker().claim()
    child = await driver.after(parent)
    await driver.client.cancel(parent)
    assert await driver.state(child) is JobState.BLOCKED

    await driver.worker().confirm_cancelled_run_stopped(job)
    await driver.post()

    assert await driver.state(child) is JobState.CANCELLED
    driver.check()


@pytest.mark.parametrize("keep", [3600.0, 0.0])
async def test_a_cancel_that_is_confirmed_twice_is_released_once(driver: Driver, keep: float) -> None:
    ref = await driver.one("x", keep=Keep(finished=keep))
    (job,) = await driver.worker().claim()
    await driver.client.cancel(ref)
    await driver.worker().confirm_cancelled_run_stopped(job)
    again = await driver.one("x")
    before = driver.dump()

    assert await driver.worker().confirm_cancelled_run_stopped(job) == ("ok" if keep else "missing")

    assert driver.dump() == before
    assert await driver.state(again) is JobState.PENDING


async def test_a_worker_killed_before_it_confirms_holds_the_id_for_its_lease(driver: Driver) -> None:
    ref = await driver.one("x")
    (job,) = await driver.worker("w1").claim()
    await driver.client.cancel(ref)

    await driver.advance_with_ticks(LEASE_MS + 1000)
    await driver.worker("w2").claim()
    assert driver.index("stopping") == {}

    assert await driver.worker("w1").confirm_cancelled_run_stopped(job) == "ok", "it comes late, and changes nothing"
    assert await driver.state(ref) is JobState.CANCELLED
    driver.check()


async def test_a_cancel_that_a_failover_lost_is_carried_out_when_it_is_confirmed(driver: Driver) -> None:
    ref = await driver.one("x", lock="l")
    (job,) = await driver.worker().claim()
    other = await driver.one(lock="l")

    assert await driver.worker().confirm_cancelled_run_stopped(job) == "ok"

    assert await driver.state(ref) is JobState.CANCELLED
    assert refs_of(await driver.worker("w2").claim()) == [other.run]
    driver.check()


async def test_a_claim_that_lost_its_run_confirms_nothing(driver: Driver) -> None:
    ref = await driver.one("x")
    (late,) = await driver.worker("w1").claim()
    await driver.worker("w1").lose(late)
    await driver.worker("w2").claim()
    await driver.client.cancel(ref)
    before = driver.dump()

    assert await driver.worker("w1").confirm_cancelled_run_stopped(late) == "lease_lost"

    assert driver.dump() == before


async def test_an_attempt_that_ended_before_the_cancel_has_nothing_to_confirm(driver: Driver) -> None:
    ref = await driver.one("x")
    (job,) = await driver.worker().claim()
    await driver.worker().complete(job)
    before = driver.dump()

    assert await driver.worker().confirm_cancelled_run_stopped(job) == "already"

    assert driver.dump() == before
    assert await driver.state(ref) is JobState.COMPLETED
