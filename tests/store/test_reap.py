"""reap: processing -> pending | failed; told by a supervisor, or because a lease has run out."""

from __future__ import annotations

import pytest

from rota.core.job import Counts
from rota.core.states import JobState
from rota.store.bounds import CHORES, LEASE_MS
from rota.store.reports import Lost
from tests.store.driver import QUEUE, Driver, new_job, refs_of


async def test_a_job_whose_process_died_comes_back_at_once_and_is_charged_a_stall(driver: Driver) -> None:
    """S4-34, S4-35: stalls and failures are counted apart."""
    ref = await driver.one()
    (job,) = await driver.worker("w1").claim()

    assert await driver.worker("w1").lose(job) == "ok"

    assert await driver.state(ref) is JobState.PENDING
    (again,) = await driver.worker("w2").claim()
    assert again.counts == Counts(attempt=2, stalls=1)


async def test_a_job_whose_lease_expired_is_claimed_by_another_worker(driver: Driver) -> None:
    """S0-10, S0-13, S4-34, S4-35, S2-20 [T]: any worker sweeps; a crash loses no job."""
    ref = await driver.one()
    await driver.worker("w1").claim()

    await driver.advance_with_ticks(LEASE_MS - 1000)
    assert await driver.worker("w2").claim() == []
    await driver.advance_with_ticks(1000)
    (again,) = await driver.worker("w2").claim()

    assert (again.run, again.counts) == (ref.run, Counts(attempt=2, stalls=1))
    assert (await driver.read(ref)).record.worker == "w2"


async def test_all_jobs_of_a_dead_worker_come_back_in_one_pass_and_in_order(driver: Driver) -> None:
    """S0-10 [T]: not only the head of the list."""
    refs = await driver.enqueue(*[new_job()] * 60)
    await driver.worker("w1").claim(50)

    await driver.advance_with_ticks(LEASE_MS + 1000)

    assert refs_of(await driver.worker("w2").claim(60)) == [ref.run for ref in refs]


async def test_a_claim_that_reaps_says_whose_attempts_vanished(driver: Driver) -> None:
    """What its owner never heard of was no attempt, and is not among them."""
    begun, unheard = await driver.enqueue(new_job(), new_job())
    (job,) = await driver.worker("w1").claim()
    await driver.worker("w2").claim()
    await driver.advance_with_ticks(LEASE_MS - 2000)
    await driver.worker("w1").beat(job)
    await driver.worker("w2").beat()
    await driver.advance_with_ticks(LEASE_MS + 1000)

    claims = await driver.worker("w3").claims(0)

    assert claims.vanished == (begun.run,)
    assert await driver.state(unheard) is JobState.PENDING
    assert (await driver.worker("w3").claims(0)).vanished == ()


async def test_a_worker_without_free_slots_sweeps_too(driver: Driver) -> None:
    ref = await driver.one()
    await driver.worker("w1").claim()
    await driver.advance_with_ticks(LEASE_MS + 1000)

    assert await driver.worker("w2").claim(0) == []

    assert await driver.state(ref) is JobState.PENDING


@pytest.mark.parametrize("how", ["told", "lease"])
async def test_beyond_its_forgiven_stalls_a_job_is_a_dead_letter(driver: Driver, how: str) -> None:
    """S0-11, S4-21, S4-34: recorded as a stall, visible, never dropped silently."""
    ref = await driver.one(max_stalls=2)
    for attempt in range(1, 4):
        (job,) = await driver.worker("w1").claim()
        assert job.counts == Counts(attempt=attempt, stalls=attempt - 1)
        if how == "told":
            await driver.worker("w1").lose(job)
        else:
            await driver.advance_with_ticks(LEASE_MS + 1000)

    assert await driver.worker("w2").claim() == []
    snapshot = await driver.read(ref)
    assert (snapshot.record.state, snapshot.record.counts) == (JobState.FAILED, Counts(attempt=3, stalls=3))
    assert snapshot.record.error is not None
    assert (snapshot.record.error.kind, snapshot.record.error.type) == ("stall", "StallError")
    assert "w1" in snapshot.record.error.message
    assert [entry.verb for entry in snapshot.history] == ["reap"] * 3
    assert await driver.client.redrive(QUEUE, [ref]) == ["redriven"]


@pytest.mark.parametrize("how", ["told", "lease"])
async def test_what_may_run_only_once_is_not_forgiven_a_stall(driver: Driver, how: str) -> None:
    """S3-18."""
    ref = await driver.one(at_most_once=True)
    (job,) = await driver.worker("w1").claim()
    await driver.worker("w1").beat(job)

    if how == "told":
        await driver.worker("w1").lose(job)
    else:
        await driver.advance_with_ticks(LEASE_MS + 1000)
        assert await driver.worker("w2").claim() == []

    record = (await driver.read(ref)).record
    assert record.state is JobState.FAILED
    assert record.error is not None
    assert record.error.kind == "stall"


async def test_the_same_job_twice_in_a_batch_is_charged_once(driver: Driver) -> None:
    ref = await driver.one()
    (job,) = await driver.worker().claim()

    report = Lost(job.run, job.claim)
    assert await driver.worker().store.report(QUEUE, [report, report]) == {job.run: "already"}

    snapshot = await driver.read(ref)
    assert snapshot.record.counts == Counts(attempt=1, stalls=1)
    assert len(snapshot.history) == 1


async def test_more_dead_leases_than_one_call_may_move_are_swept_by_the_next_ones(driver: Driver) -> None:
    await driver.enqueue(*[new_job()] * (2 * CHORES + 1))
    await driver.worker("w1").claim(500)
    await driver.advance_with_ticks(LEASE_MS + 1000)

    waits = [(await driver.worker("w2").claims(0)).wait_ms for _ in range(3)]

    assert waits == [0, 0, None]
    assert driver.counts() == {"pending": 2 * CHORES + 1}
