"""After an outage running jobs keep their leases; and no job is charged for a claim that its worker abandoned."""

from __future__ import annotations

import pytest

from rota.core.job_record import AttemptCounts
from rota.core.state_transitions import JobState
from rota.store.job_store import LEASE_MS
from tests.store.driver import Driver, new_job, refs_of

HOUR = 3_600_000


@pytest.mark.requirement("S1-13", "S2-34", "S4-41")
async def test_after_a_hole_in_the_ticks_no_lease_is_reaped_until_a_whole_one_has_passed(driver: Driver) -> None:
    """The server was away for an hour, its workers were not."""
    ref = await driver.one()
    await driver.worker("w1").claim()
    driver.advance(HOUR)

    assert await driver.worker("w2").claim() == []
    await driver.advance_with_ticks(LEASE_MS - 1500, by="w2")
    assert await driver.worker("w2").claim() == []
    assert await driver.state(ref) is JobState.PROCESSING

    await driver.advance_with_ticks(1500, by="w2")
    assert refs_of(await driver.worker("w2").claim()) == [ref.run]


@pytest.mark.parametrize("away_ms", [2_300, 2_900])
async def test_a_hole_that_ends_right_before_a_lease_does_is_noticed(driver: Driver, away_ms: int) -> None:
    """The server went away just before the owner's next heartbeat was due, and a rival is the first to get through."""
    ref = await driver.one()
    (job,) = await driver.worker("w1").claim()
    driver.advance(LEASE_MS - away_ms - 10)
    await driver.worker("w2").claim()
    driver.advance(away_ms)

    assert await driver.worker("w2").claim() == []
    driver.advance(1_000)
    assert await driver.worker("w2").claim() == []

    assert await driver.worker("w1").beat(job) == {}
    assert (await driver.read(ref)).record.counts == AttemptCounts(attempt=1)


async def test_a_live_worker_reasserts_its_claims_after_an_outage(driver: Driver) -> None:
    ref = await driver.one()
    (job,) = await driver.worker("w1").claim()
    driver.advance(HOUR)

    assert await driver.worker("w2").claim() == []
    assert await driver.worker("w1").beat(job) == {}
    for _ in range(5):
        driver.advance(2_000)
        await driver.worker("w1").beat(job)
        assert await driver.worker("w2").claim() == []

    assert await driver.worker("w1").complete(job, b"1") == "ok"
    assert (await driver.read(ref)).record.counts == AttemptCounts(attempt=1)


async def test_what_was_finished_during_an_outage_is_acknowledged_after_it(driver: Driver) -> None:
    ref = await driver.one()
    (job,) = await driver.worker("w1").claim()
    driver.advance(HOUR)
    await driver.worker("w2").claim()

    assert await driver.worker("w1").complete(job, b'"kept"') == "ok"

    assert (await driver.read(ref)).record.result == b'"kept"'


async def test_each_new_hole_starts_the_wait_again(driver: Driver) -> None:
    ref = await driver.one()
    await driver.worker("w1").claim()
    for _ in range(5):
        driver.advance(LEASE_MS)
        assert await driver.worker("w2").claim() == []

    assert await driver.state(ref) is JobState.PROCESSING


async def test_a_clock_that_was_set_back_takes_no_lease_either(driver: Driver) -> None:
    driver.advance(HOUR)
    ref = await driver.one()
    await driver.worker("w1").claim()
    driver.advance(-HOUR)
    await driver.worker("w2").beat()
    driver.advance(HOUR + LEASE_MS)

    assert await driver.worker("w2").claim() == []

    assert await driver.state(ref) is JobState.PROCESSING


async def test_while_nothing_may_be_reaped_a_claim_says_how_long_that_lasts(driver: Driver) -> None:
    """A worker that received 0 would claim again and again, for a whole lease."""
    await driver.one()
    await driver.worker("w1").claim()
    driver.advance(HOUR)

    first = await driver.worker("w2").claims()
    second = await driver.worker("w2").claims()

    for claims in (first, second):
        assert claims.jobs == []
        assert claims.wait_ms is not None
        assert LEASE_MS - 1000 < claims.wait_ms <= LEASE_MS


async def test_a_handler_being_stopped_during_an_outage_keeps_its_place(driver: Driver) -> None:
    ref = await driver.one("x")
    (job,) = await driver.worker("w1").claim()
    await driver.client.cancel(ref)
    driver.advance(HOUR)

    await driver.worker("w2").claim()

    assert not (await driver.client.enqueue("q", [new_job("x")]))[0].is_new
    assert await driver.worker("w1").complete(job) == "cancelled"


@pytest.mark.parametrize("at_most_once", [False, True])
async def test_a_claim_whose_reply_was_lost_comes_back_uncharged(driver: Driver, at_most_once: bool) -> None:
    """Its owner lives and gave it up: the job never started, and never will under this claim."""
    ref = await driver.one(at_most_once=at_most_once, max_stalls=0)
    await driver.worker("w1").claim()
    await driver.worker("w1").beat(gives_up_last_claim=True)

    await driver.advance_with_ticks(LEASE_MS + 1000, by="w1")
    (again,) = await driver.worker("w2").claim()

    assert (again.run, again.counts) == (ref.run, AttemptCounts(attempt=1, handbacks=1))


async def test_a_claim_of_a_dead_owner_is_charged(driver: Driver) -> None:
    """Its last heartbeat is from before the claim, or right after it."""
    ref = await driver.one()
    await driver.worker("w1").beat()
    await driver.worker("w1").claim()
    await driver.worker("w1").beat()

    await driver.advance_with_ticks(LEASE_MS + 1000, by="w2")
    (again,) = await driver.worker("w2").claim()

    assert (again.run, again.counts) == (ref.run, AttemptCounts(attempt=2, stalls=1))


async def test_a_claim_that_was_named_once_is_charged_when_it_is_named_no_more(driver: Driver) -> None:
    ref = await driver.one()
    (job,) = await driver.worker("w1").claim()
    driver.advance(1_500)
    await driver.worker("w1").beat(job)

    await driver.advance_with_ticks(LEASE_MS + 1000, by="w1")
    (again,) = await driver.worker("w2").claim()

    assert (again.run, again.counts) == (ref.run, AttemptCounts(attempt=2, stalls=1))
