"""reap: processing -> pending | failed; told by a supervisor, or because a lease has run out."""

from __future__ import annotations

import pytest

from rota.core.job_record import AttemptCounts
from rota.core.state_transitions import JobState
from rota.store.batch_limit_constants import HOUSEKEEPING_BATCH
from rota.store.job_store import LEASE_MS
from rota.store.report_encoding import Lost
from tests.store.driver import QUEUE, Driver, new_job, refs_of


@pytest.mark.requirement("S4-34", "S4-35")
async def test_a_job_whose_process_died_comes_back_at_once_and_is_charged_a_stall(driver: Driver) -> None:
    """Stalls and failures are counted apart."""
    ref = await driver.one()
    (job,) = await driver.worker("w1").claim()

    assert await driver.worker("w1").lose(job) == "ok"

    assert await driver.state(ref) is JobState.PENDING
    (again,) = await driver.worker("w2").claim()
    assert again.counts == AttemptCounts(attempt=2, stalls=1)


@pytest.mark.requirement("S0-10", "S0-13", "S4-34", "S4-35", "S2-20")
async def test_a_job_whose_lease_expired_is_claimed_by_another_worker(driver: Driver) -> None:
    """Any worker sweeps; a crash loses no job."""
    ref = await driver.one()
    await driver.worker("w1").claim()

    await driver.advance_with_ticks(LEASE_MS - 1000)
    assert await driver.worker("w2").claim() == []
    await driver.advance_with_ticks(1000)
    (again,) = await driver.worker("w2").claim()

    assert (again.run, again.counts) == (ref.run, AttemptCounts(attempt=2, stalls=1))
    assert (await driver.read(ref)).record.worker == "w2"


@pytest.mark.requirement("S0-10")
async def test_all_jobs_of_a_dead_worker_come_back_in_one_pass_and_in_order(driver: Driver) -> None:
    """Not only the head of the list."""
    refs = await driver.enqueue(*[new_job()] * 60)
    await driver.worker("w1").claim(50)

    await driver.advance_with_ticks(LEASE_MS + 1000)

    assert refs_of(await driver.worker("w2").claim(60)) == [ref.run for ref in refs]


async def test_a_claim_that_reaps_says_whose_attempts_vanished(driver: Driver) -> None:
    """A claim that its owner gave up was no attempt, and is not among them."""
    begun, given_up = await driver.enqueue(new_job(), new_job())
    (job,) = await driver.worker("w1").claim()
    await driver.worker("w2").claim()
    await driver.advance_with_ticks(LEASE_MS - 2000)
    await driver.worker("w1").beat(job)
    await driver.worker("w2").beat(gives_up_last_claim=True)
    await driver.advance_with_ticks(LEASE_MS + 1000)

    claims = await driver.worker("w3").claims(0)

    assert claims.lost_runs == (begun.run,)
    assert await driver.state(given_up) is JobState.PENDING
    assert (await driver.worker("w3").claims(0)).lost_runs == ()


async def test_a_worker_without_free_slots_sweeps_too(driver: Driver) -> None:
    ref = await driver.one()
    await driver.worker("w1").claim()
    await driver.advance_with_ticks(LEASE_MS + 1000)

    assert await driver.worker("w2").claim(0) == []

    assert await driver.state(ref) is JobState.PENDING


@pytest.mark.requirement("S0-11", "S4-21", "S4-34")
@pytest.mark.parametrize("how", ["told", "lease"])
async def test_beyond_its_forgiven_stalls_a_job_is_a_dead_letter(driver: Driver, how: str) -> None:
    """Recorded as a stall, visible, never dropped silently."""
    ref = await driver.one(max_stalls=2)
    for attempt in range(1, 4):
        (job,) = await driver.worker("w1").claim()
        assert job.counts == AttemptCounts(attempt=attempt, stalls=attempt - 1)
        if how == "told":
            await driver.worker("w1").lose(job)
        else:
            await driver.advance_with_ticks(LEASE_MS + 1000)

    assert await driver.worker("w2").claim() == []
    snapshot = await driver.read(ref)
    assert (snapshot.record.state, snapshot.record.counts) == (JobState.FAILED, AttemptCounts(attempt=3, stalls=3))
    assert snapshot.record.error is not None
    assert (snapshot.record.error.kind, snapshot.record.error.type) == ("stall", "StallError")
    assert "w1" in snapshot.record.error.message
    assert [entry.verb for entry in snapshot.history] == ["reap"] * 3
    assert await driver.client.redrive(QUEUE, [ref]) == ["redriven"]


@pytest.mark.requirement("S3-18")
@pytest.mark.parametrize("how", ["told", "lease"])
async def test_what_may_run_only_once_is_not_forgiven_a_stall(driver: Driver, how: str) -> None:
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


@pytest.mark.parametrize("at_most_once", [False, True])
async def test_a_heartbeat_from_before_the_reply_does_not_prove_that_a_claim_was_not_received(
    driver: Driver, *, at_most_once: bool
) -> None:
    """Round trips of 1.7 s: the worker has the job after that, starts it, and dies before the next heartbeat."""
    ref = await driver.one(at_most_once=at_most_once)
    await driver.worker("w1").claim()
    await driver.advance_with_ticks(1_600)
    await driver.worker("w1").beat()

    await driver.advance_with_ticks(LEASE_MS)
    again = await driver.worker("w2").claim()

    record = (await driver.read(ref)).record
    assert record.counts.stalls == 1
    assert record.state is (JobState.FAILED if at_most_once else JobState.PROCESSING)
    assert len(again) == (0 if at_most_once else 1)


async def test_a_claim_after_the_one_that_was_given_up_is_charged(driver: Driver) -> None:
    ref = await driver.one()
    worker = driver.worker("w1")
    await worker.claim()
    await worker.beat(gives_up_last_claim=True)
    await driver.advance_with_ticks(LEASE_MS + 1000)
    (job,) = await worker.claim()
    assert job.counts == AttemptCounts(attempt=1, handbacks=1)

    await driver.advance_with_ticks(LEASE_MS + 1000)
    await driver.worker("w2").claim(0)

    assert (await driver.read(ref)).record.counts == AttemptCounts(attempt=1, stalls=1, handbacks=1)


async def test_the_same_job_twice_in_a_batch_is_charged_once(driver: Driver) -> None:
    ref = await driver.one()
    (job,) = await driver.worker().claim()

    report = Lost(job.run, job.claim)
    assert await driver.worker().store.report(QUEUE, [report, report]) == {job.run: "already"}

    snapshot = await driver.read(ref)
    assert snapshot.record.counts == AttemptCounts(attempt=1, stalls=1)
    assert len(snapshot.history) == 1


async def test_more_dead_leases_than_one_call_may_move_are_swept_by_the_next_ones(driver: Driver) -> None:
    await driver.enqueue(*[new_job()] * (2 * HOUSEKEEPING_BATCH + 1))
    await driver.worker("w1").claim(500)
    await driver.advance_with_ticks(LEASE_MS + 1000)

    waits = [(await driver.worker("w2").claims(0)).wait_ms for _ in range(3)]

    assert waits == [0, 0, None]
    assert driver.counts() == {"pending": 2 * HOUSEKEEPING_BATCH + 1}


async def test_a_crash_beside_other_jobs_is_counted_and_not_charged(driver: Driver) -> None:
    """The next claim returns the count, and its worker runs the job in isolation. The count ends with the run."""
    ref = await driver.one(max_stalls=0)
    what_happened = "the process running this job and 9 others exited with code 3"
    for crashes in range(3):
        (job,) = await driver.worker().claim()
        assert job.counts == AttemptCounts(attempt=crashes + 1, handbacks=crashes, crashes=crashes)
        report = Lost(job.run, job.claim, "uncharged", what_happened)
        assert await driver.worker().store.report(QUEUE, [report]) == {}
        assert await driver.worker().store.report(QUEUE, [report]) == {job.run: "already"}

    snapshot = await driver.read(ref)
    assert snapshot.record.state is JobState.PENDING
    assert snapshot.record.counts == AttemptCounts(attempt=3, handbacks=3, crashes=3)
    assert snapshot.record.ended_at is None
    assert {(entry.verb, entry.note) for entry in snapshot.history} == {("return", what_happened)}
    (job,) = await driver.worker().claim()
    assert await driver.worker().complete(job)
    record = (await driver.read(ref)).record
    assert (record.state, record.counts.crashes) == (JobState.COMPLETED, 0)
    assert record.ended_at is not None


async def test_a_job_that_may_run_only_once_fails_after_a_crash_beside_other_jobs(driver: Driver) -> None:
    ref = await driver.one(at_most_once=True)
    (job,) = await driver.worker().claim()

    await driver.worker().store.report(QUEUE, [Lost(job.run, job.claim, "uncharged", "its process is gone")])

    record = (await driver.read(ref)).record
    assert record.state is JobState.FAILED
    assert record.reason == "its process died, and it may run only once"
