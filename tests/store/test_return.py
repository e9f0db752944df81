"""return: processing -> pending | failed."""

from __future__ import annotations

import pytest

from rota.core.job_record import AttemptCounts
from rota.core.state_transitions import JobState
from rota.store.report_encoding import Returned
from tests.store.driver import QUEUE, Driver, new_job, refs_of


@pytest.mark.requirement("K-11")
@pytest.mark.parametrize("started", ["started", "unstarted"])
async def test_what_is_given_back_is_pending_at_once_and_spends_nothing(driver: Driver, started: str) -> None:
    """rq #2079: a worker that stops hands its jobs over."""
    ref = await driver.one()
    (job,) = await driver.worker("w1").claim()

    assert await driver.worker("w1").hand_back(job, started) == "ok"

    assert await driver.state(ref) is JobState.PENDING
    (again,) = await driver.worker("w2").claim()
    # What never started was no attempt.
    assert again.counts == AttemptCounts(attempt=2 if started == "started" else 1, handbacks=1)


@pytest.mark.requirement("S3-18")
async def test_what_may_run_only_once_is_not_handed_back_once_started(driver: Driver) -> None:
    """At most once; what ended it is recorded."""
    started, unstarted = await driver.enqueue(new_job(at_most_once=True), new_job(at_most_once=True))
    first, second = await driver.worker().claim(2)

    await driver.worker().hand_back(first, "started")
    await driver.worker().hand_back(second, "unstarted")

    failed = (await driver.read(started)).record
    assert failed.state is JobState.FAILED
    assert failed.error is not None
    assert await driver.state(unstarted) is JobState.PENDING


async def test_all_that_a_stopping_worker_holds_comes_back_in_its_order(driver: Driver) -> None:
    refs = await driver.enqueue(*[new_job()] * 20)
    jobs = await driver.worker("w1").claim(10)

    await driver.worker("w1").store.report(QUEUE, [Returned(job.run, job.claim, "started") for job in reversed(jobs)])

    assert refs_of(await driver.worker("w2").claim(20)) == [ref.run for ref in refs]


async def test_the_same_job_twice_in_a_batch_comes_back_once(driver: Driver) -> None:
    ref = await driver.one()
    (job,) = await driver.worker().claim()

    report = Returned(job.run, job.claim, "started")
    assert await driver.worker().store.report(QUEUE, [report, report]) == {job.run: "already"}

    snapshot = await driver.read(ref)
    assert snapshot.record.counts == AttemptCounts(attempt=1, handbacks=1)
    assert len(snapshot.history) == 1
