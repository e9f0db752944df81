"""promote: scheduled -> pending, in the next claim of any worker."""

from __future__ import annotations

import pytest

from rota.core.state_transitions import JobState
from rota.store.batch_limit_constants import HOUSEKEEPING_BATCH
from tests.store.driver import Driver, new_job, refs_of, run_of

MINUTE = 60_000


@pytest.mark.requirement("S4-24", "K-3")
async def test_due_jobs_become_pending_in_the_order_of_their_times(driver: Driver) -> None:
    """kue #312: far-future ones do not starve due ones."""
    far, second, first = await driver.enqueue(
        new_job(due=f"+{600 * MINUTE}"), new_job(due=f"+{2 * MINUTE}"), new_job(due=f"+{MINUTE}")
    )

    driver.advance(3 * MINUTE)

    assert refs_of(await driver.worker().claim(5)) == [first.run, second.run]
    assert await driver.state(far) is JobState.SCHEDULED


async def test_priority_survives_the_wait(driver: Driver) -> None:
    low, normal, high, lowest, highest = await driver.enqueue(
        *(new_job(due="+60000", priority=priority) for priority in (10, 0, -10, 100, -100))
    )
    driver.advance(MINUTE)

    assert refs_of(await driver.worker().claim(5)) == [ref.run for ref in (highest, high, normal, low, lowest)]


async def test_a_promoted_job_takes_its_place_by_the_time_it_became_due(driver: Driver) -> None:
    early = await driver.one(due="+60000")
    driver.advance(2 * MINUTE)
    later = await driver.one()

    assert refs_of(await driver.worker().claim(2)) == [early.run, later.run]


async def test_jobs_due_in_the_same_millisecond_start_in_the_order_they_were_made(driver: Driver) -> None:
    when = str(driver.now() + MINUTE)
    refs = await driver.enqueue(*[new_job(due=when)] * 300)
    driver.advance(MINUTE)

    assert refs_of(await driver.worker().claim(300)) == [ref.run for ref in refs]


async def test_more_due_jobs_than_one_call_may_move_are_promoted_by_the_next_ones(driver: Driver) -> None:
    refs = await driver.enqueue(*[new_job(due="+60000")] * 1_200)
    driver.advance(MINUTE)

    first = await driver.worker().claims(0)
    assert first.wait_ms == 0
    assert driver.counts() == {"pending": 10 * HOUSEKEEPING_BATCH, "scheduled": 1_200 - 10 * HOUSEKEEPING_BATCH}

    claimed: list[str] = []
    while jobs := await driver.worker().claim(500):
        claimed += refs_of(jobs)
    assert claimed == [ref.run for ref in refs]


@pytest.mark.requirement("S4-6", "Q-9")
async def test_nothing_starts_before_its_time_however_often_one_asks(driver: Driver) -> None:
    due = {
        run_of(ref): 20 * number
        for number, ref in enumerate(await driver.enqueue(*[new_job(due=f"+{20 * number}") for number in range(30)]))
    }
    made_at = driver.now() - 5_000
    started: dict[str, int] = {}
    while len(started) < len(due):
        asked_at = driver.now()
        for job in await driver.worker().claim(5):
            started[job.run] = driver.now()
        assert asked_at - made_at < 60_000, "jobs are late"
        driver.advance(7)

    records = driver.hash("jobs")
    for run, delay in due.items():
        enqueued_at = int(records[run].partition("\n")[0].split(" ")[1])
        assert started[run] >= enqueued_at + delay
