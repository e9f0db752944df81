"""expire: a job that has not started in time is cancelled."""

from __future__ import annotations

from rota.core.job import Keep
from rota.core.states import JobState
from rota.store.bounds import CHORES
from tests.store.driver import Driver, new_job, refs_of

MINUTE = 60_000


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
        assert (record.state, record.reason) == (JobState.CANCELLED, "expired: it had not started in time")
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
    await driver.enqueue(*[new_job(expiry="+60000")] * (2 * CHORES + 1))
    driver.advance(MINUTE)

    waits = [(await driver.worker().claims(0)).wait_ms for _ in range(3)]

    assert waits == [0, 0, None]
    assert driver.counts() == {"cancelled": 2 * CHORES + 1}


async def test_an_expired_job_frees_its_id(driver: Driver) -> None:
    await driver.one("x", expiry="+60000")
    driver.advance(MINUTE)
    await driver.worker().claim(0)

    assert await driver.one("x")
