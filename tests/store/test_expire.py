"""expire: a job that has not started in time is cancelled."""

from __future__ import annotations

import pytest

from rota.core.job_options import Keep
from rota.core.same_id_policy import Update
from rota.core.state_transitions import JobState
from rota.store.batch_limit_constants import HOUSEKEEPING_BATCH
from rota.store.job_store import LEASE_MS
from tests.store.driver import Driver, new_job, refs_of

MINUTE = 60_000
LATE = "expired: it had not started in time"


async def test_a_job_that_has_not_started_in_time_is_cancelled_with_that_reason(driver: Driver) -> None:
    pending, scheduled = await driver.enqueue(
        new_job("a", expiry="+60000"), new_job("b", due=f"+{60 * MINUTE}", expiry="+60000")
    )
    driver.advance(MINUTE - 1000)
    await driver.worker().claim(0)
    assert await driver.state(pending) is JobState.PENDING

    driver.advance(1000)
    assert await driver.worker().claim(5) == []

    for ref in (pending, scheduled):
        record = (await driver.read(ref)).record
        assert (record.state, record.reason) == (JobState.CANCELLED, LATE)
        assert record.ended_at is not None


async def test_a_job_that_has_started_does_not_expire_and_neither_do_its_retries(driver: Driver) -> None:
    ref = await driver.one(expiry="+60000")
    (job,) = await driver.worker().claim()
    await driver.worker().fail(job, f"+{2 * MINUTE}")
    driver.advance(3 * MINUTE)

    assert refs_of(await driver.worker().claim()) == [ref.run]


async def test_an_expiry_may_be_a_time(driver: Driver) -> None:
    ref = await driver.one(expiry=str(driver.now() + MINUTE))
    driver.advance(MINUTE)

    await driver.worker().claim(0)

    assert await driver.state(ref) is JobState.CANCELLED


async def test_an_expired_job_is_kept_by_its_own_rule(driver: Driver) -> None:
    gone, kept = await driver.enqueue(
        new_job(expiry="+60000", keep=Keep(finished=0)), new_job(expiry="+60000", keep=Keep(finished=10))
    )
    driver.advance(MINUTE)

    await driver.worker().claim(0)

    assert [await driver.exists(ref) for ref in (gone, kept)] == [False, True]


async def test_more_late_jobs_than_one_call_may_move_expire_with_the_next_ones(driver: Driver) -> None:
    await driver.enqueue(*[new_job(expiry="+60000")] * (2 * HOUSEKEEPING_BATCH + 1))
    driver.advance(MINUTE)

    waits = [(await driver.worker().claims(0)).wait_ms for _ in range(3)]

    assert waits == [0, 0, None]
    assert driver.counts() == {"cancelled": 2 * HOUSEKEEPING_BATCH + 1}


async def test_an_expired_job_frees_its_id(driver: Driver) -> None:
    await driver.one("x", expiry="+60000")
    driver.advance(MINUTE)
    await driver.worker().claim(0)

    assert await driver.one("x")


async def test_one_that_is_given_back_unstarted_must_still_start_in_time(driver: Driver) -> None:
    soon, late = await driver.enqueue(new_job(expiry=f"+{MINUTE}"), new_job(expiry=f"+{2 * MINUTE}"))
    for job in await driver.worker().claim(2):
        await driver.worker().hand_back(job, "unstarted")
    driver.advance(MINUTE)

    assert refs_of(await driver.worker().claim(2)) == [late.run]
    record = (await driver.read(soon)).record
    assert (record.state, record.reason, record.counts.handbacks) == (JobState.CANCELLED, LATE, 1)
    driver.check()


async def test_one_that_is_given_back_unstarted_when_its_time_is_over_never_starts(driver: Driver) -> None:
    ref = await driver.one(expiry=f"+{MINUTE}")
    (job,) = await driver.worker().claim()
    driver.advance(2 * MINUTE)
    await driver.worker().hand_back(job, "unstarted")

    assert await driver.worker().claim() == []
    assert await driver.state(ref) is JobState.CANCELLED


async def test_one_whose_claim_was_given_up_never_starts_when_its_time_is_over(driver: Driver) -> None:
    ref = await driver.one(expiry=f"+{LEASE_MS // 2}")
    await driver.worker("deaf").claim()
    await driver.worker("deaf").beat(gives_up_last_claim=True)
    await driver.advance_with_ticks(LEASE_MS + 2_000, by="deaf")

    assert await driver.worker("other").claim() == []
    assert (await driver.read(ref)).record.reason == LATE
    driver.check()


async def test_one_that_has_started_and_is_given_back_does_not_expire(driver: Driver) -> None:
    ref = await driver.one(expiry=f"+{MINUTE}")
    (first,) = await driver.worker().claim()
    await driver.worker().fail(first, "")
    (second,) = await driver.worker().claim()
    await driver.worker().hand_back(second, "unstarted")
    driver.advance(2 * MINUTE)

    assert refs_of(await driver.worker().claim()) == [ref.run]


@pytest.mark.parametrize("way", ["in place", "merged"])
async def test_a_deadline_given_again_runs_from_then_on(driver: Driver, way: str) -> None:
    ref = await driver.one("x", expiry=f"+{2 * MINUTE}")
    claimed = await driver.worker().claim() if way == "merged" else []
    driver.advance(MINUTE)
    await driver.client.enqueue("q", [new_job("x", expiry=f"+{2 * MINUTE}", again=Update())])
    for job in claimed or await driver.worker().claim():
        await driver.worker().hand_back(job, "unstarted")

    driver.advance(MINUTE)
    await driver.worker().claim(0)
    assert await driver.state(ref) is JobState.PENDING
    driver.advance(MINUTE)
    await driver.worker().claim(0)
    assert (await driver.read(ref)).record.reason == LATE
    driver.check()
