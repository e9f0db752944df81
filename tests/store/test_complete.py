"""complete: processing -> completed."""

from __future__ import annotations

import pytest

from rota.core.ids import JobRef
from rota.core.job_options import Keep
from rota.core.job_record import AttemptCounts
from rota.core.state_transitions import JobState
from rota.store.batch_limit_constants import BATCH
from tests.store.driver import QUEUE, Driver, completed, new_job


@pytest.mark.requirement("S0-8", "S2-21", "K-10")
async def test_a_completed_job_has_its_result_and_gives_its_lease_back(driver: Driver) -> None:
    """Success removes exactly that job from processing and keeps the result."""
    ref, other = await driver.enqueue(new_job("", [1]), new_job("", [1]))
    job, _ = await driver.worker().claim(2)

    assert await driver.worker().complete(job, b'{"sum":3}') == "ok"

    record = (await driver.read(ref)).record
    assert (record.state, record.result, record.counts) == (JobState.COMPLETED, b'{"sum":3}', AttemptCounts(attempt=1))
    assert (record.worker, record.claim) == ("w1", job.claim)
    assert record.ended_at is not None
    assert record.claimed_at is not None
    assert record.claimed_at <= record.ended_at <= driver.now()
    assert await driver.state(other) is JobState.PROCESSING


@pytest.mark.requirement("S4-16")
async def test_a_null_result_takes_no_room(driver: Driver) -> None:
    """Nothing is a success too."""
    ref = await driver.one()
    (job,) = await driver.worker().claim()

    await driver.worker().complete(job)

    assert (await driver.read(ref)).record.result is None
    assert driver.hash("results") == {}


async def test_a_batch_is_judged_job_by_job(driver: Driver) -> None:
    refs = await driver.enqueue(*[new_job()] * 4)
    good, cancelled, deleted, done = await driver.worker().claim(4)
    await driver.client.cancel(refs[1])
    await driver.client.delete(refs[2])
    await driver.worker().complete(done, b'"first"')

    refused = await driver.worker().store.report(
        QUEUE, [completed(job, b'"late"') for job in (good, cancelled, deleted, done)]
    )

    assert refused == {cancelled.run: "cancelled", deleted.run: "cancelled", done.run: "already"}
    assert [await driver.state(ref) for ref in (refs[0], refs[1], refs[3])] == ["completed", "cancelled", "completed"]
    assert (await driver.read(refs[3])).record.result == b'"first"'
    assert not await driver.exists(refs[2])


async def test_the_same_report_twice_in_a_batch_counts_once(driver: Driver) -> None:
    ref = await driver.one()
    (job,) = await driver.worker().claim()

    refused = await driver.worker().store.report(QUEUE, [completed(job, b"1"), completed(job, b"2")])

    assert refused == {job.run: "already"}
    assert (await driver.read(ref)).record.result == b"1"
    assert driver.hash("meta")["completed"] == "1"


async def test_more_reports_than_one_call_may_carry_are_all_stored(driver: Driver) -> None:
    await driver.enqueue(*[new_job()] * (BATCH + 20))
    jobs = await driver.worker().claim(BATCH) + await driver.worker().claim(BATCH)

    assert await driver.worker().store.report(QUEUE, [completed(job) for job in jobs]) == {}

    assert driver.counts() == {"completed": BATCH + 20}
    assert driver.hash("meta")["completed"] == str(BATCH + 20)


async def test_jobs_of_one_batch_are_kept_each_by_its_own_rule(driver: Driver) -> None:
    refs = await driver.enqueue(*[new_job()] * 3)
    jobs = await driver.worker().claim(3)
    keeps = [Keep(finished=10), Keep(finished=0), Keep(finished=1000)]

    await driver.worker().store.report(
        QUEUE, [completed(job, b"1", keep=keep) for job, keep in zip(jobs, keeps, strict=True)]
    )
    assert [await driver.exists(ref) for ref in refs] == [True, False, True]

    driver.advance(11_000)
    await driver.client.apply_retention(QUEUE)
    assert [await driver.exists(ref) for ref in refs] == [False, False, True]


@pytest.mark.parametrize("id", ["", "chosen"])
async def test_an_id_means_the_latest_run_also_after_its_end(driver: Driver, id: str) -> None:
    ref = await driver.one(id)
    (job,) = await driver.worker().claim()
    await driver.worker().complete(job)

    assert (await driver.read(JobRef(QUEUE, ref.id))).record.ref == ref
