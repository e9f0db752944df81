"""progress: how far an attempt has come."""

from __future__ import annotations

import pytest

from tests.store.driver import QUEUE, Driver, new_job


@pytest.mark.requirement("S2-18", "K-8")
async def test_progress_is_readable_while_the_job_runs(driver: Driver) -> None:
    """Done, total, a note, and since when."""
    ref = await driver.one()
    (job,) = await driver.worker().claim()
    driver.advance(10_000)

    await driver.worker().store.save_progress(QUEUE, [(job.run, job.claim, "25", "100", "at the letter ñ of it")])

    progress = (await driver.read(ref)).record.progress
    assert progress is not None
    assert (progress.done, progress.total, progress.note) == (25, 100, "at the letter ñ of it")
    assert progress.percent == 25
    assert progress.at - progress.started_at >= 10_000
    assert progress.per_second is not None
    assert 2 < progress.per_second <= 2.5
    assert progress.seconds_left is not None
    assert progress.seconds_left >= 30


async def test_the_latest_progress_replaces_the_one_before(driver: Driver) -> None:
    ref = await driver.one()
    (job,) = await driver.worker().claim()

    for done in ("1", "2", "2.5"):
        await driver.worker().store.save_progress(QUEUE, [(job.run, job.claim, done, "4", "")])

    progress = (await driver.read(ref)).record.progress
    assert progress is not None
    assert (progress.done, progress.note) == (2.5, "")


async def test_progress_of_several_jobs_travels_together_and_each_is_judged_by_itself(driver: Driver) -> None:
    refs = await driver.enqueue(*[new_job()] * 3)
    jobs = await driver.worker().claim(3)
    await driver.worker().complete(jobs[1])

    await driver.worker().store.save_progress(QUEUE, [(job.run, job.claim, "1", "2", "") for job in jobs])

    assert [(await driver.read(ref)).record.progress is not None for ref in refs] == [True, False, True]


async def test_progress_tells_of_one_attempt(driver: Driver) -> None:
    ref = await driver.one()
    (job,) = await driver.worker().claim()
    await driver.worker().store.save_progress(QUEUE, [(job.run, job.claim, "9", "10", "")])

    await driver.worker().hand_back(job)
    await driver.worker("w2").claim()

    assert (await driver.read(ref)).record.progress is None
