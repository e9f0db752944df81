"""snooze: processing -> scheduled | pending."""

from __future__ import annotations

from rota.core.job_record import AttemptCounts
from rota.core.state_transitions import JobState
from tests.store.driver import QUEUE, Driver

MINUTE = 60_000


async def test_a_snoozed_job_runs_later_and_spends_no_failure(driver: Driver) -> None:
    ref = await driver.one()
    (job,) = await driver.worker().claim()

    assert await driver.worker().snooze(job, "+60000") == "ok"

    assert await driver.state(ref) is JobState.SCHEDULED
    driver.advance(MINUTE - 1000)
    assert await driver.worker().claim() == []
    driver.advance(1000)
    (again,) = await driver.worker().claim()
    assert again.counts == AttemptCounts(attempt=2, snoozes=1)


async def test_a_snooze_of_no_time_is_pending_at_once(driver: Driver) -> None:
    ref = await driver.one()
    (job,) = await driver.worker().claim()

    await driver.worker().snooze(job, "+0")

    assert await driver.state(ref) is JobState.PENDING


async def test_a_snooze_is_in_the_history_and_resets_progress(driver: Driver) -> None:
    ref = await driver.one()
    (job,) = await driver.worker().claim()
    await driver.worker().store.save_progress(QUEUE, [(job.run, job.claim, "1", "2", "")])

    await driver.worker().snooze(job, "+60000")

    snapshot = await driver.read(ref)
    assert snapshot.record.progress is None
    assert [(entry.verb, entry.state, entry.attempt) for entry in snapshot.history] == [("snooze", "scheduled", 1)]
