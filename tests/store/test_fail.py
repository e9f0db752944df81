"""fail: processing -> scheduled | pending | failed."""

from __future__ import annotations

import pytest

from rota.core.job_options import Keep
from rota.core.job_record import AttemptCounts, ErrorRecord
from rota.core.job_record_codec import encode_error
from rota.core.state_transitions import JobState
from rota.store.report_encoding import Failed
from tests.store.driver import QUEUE, Driver, new_job, refs_of, run_of

MINUTE = 60_000


@pytest.mark.requirement("S0-9", "S1-3", "S2-20", "S4-17")
async def test_a_failed_attempt_waits_out_its_delay_and_runs_again(driver: Driver) -> None:
    """Retried with one more failure, not before its time."""
    ref = await driver.one()
    (job,) = await driver.worker().claim()
    failed_at = driver.now()

    assert await driver.worker().fail(job, "+60000") == "ok"

    record = (await driver.read(ref)).record
    assert (record.state, record.counts) == (JobState.SCHEDULED, AttemptCounts(attempt=1, failures=1))
    assert record.due_at is not None
    assert record.due_at >= failed_at + MINUTE
    assert record.error is not None
    assert (record.error.type, record.error.message) == ("ValueError", "boom")
    driver.advance(MINUTE - 1000)
    assert await driver.worker().claim() == []
    driver.advance(1000)
    (again,) = await driver.worker().claim()
    assert (again.run, again.counts) == (ref.run, AttemptCounts(attempt=2, failures=1))


@pytest.mark.requirement("S4-20")
async def test_the_time_of_the_next_attempt_may_be_given(driver: Driver) -> None:
    """An error's own time replaces the backoff."""
    ref = await driver.one()
    (job,) = await driver.worker().claim()
    when = driver.now() + 5 * MINUTE

    await driver.worker().fail(job, str(when))

    assert (await driver.read(ref)).record.due_at == when


async def test_a_retry_without_delay_is_pending_at_once(driver: Driver) -> None:
    ref = await driver.one()
    (job,) = await driver.worker().claim()

    await driver.worker().fail(job, "")

    assert await driver.state(ref) is JobState.PENDING


async def test_a_retry_keeps_its_priority(driver: Driver) -> None:
    urgent, _ = await driver.enqueue(new_job(priority=-15), new_job())
    (job,) = await driver.worker().claim()
    await driver.worker().fail(job, "+1000")
    driver.advance(1000)
    plain, again = await driver.enqueue(new_job(), new_job(priority=-15))

    assert refs_of(await driver.worker().claim(5))[:2] == [urgent.run, again.run]
    assert plain.run != urgent.run


@pytest.mark.requirement("S0-11", "S2-20", "S4-18", "S4-19", "S4-21")
async def test_the_last_failure_makes_a_dead_letter_with_all_that_is_known(driver: Driver) -> None:
    """Kept to be looked at, never dropped."""
    ref = await driver.one("order-7", arguments={"a": 1})
    (job,) = await driver.worker().claim()
    error = ErrorRecord(
        kind="permanent", type="CardDeclined", message="no", traceback="File …\n", attributes={"code": 51, "€": [None]}
    )

    report = Failed(job.run, job.claim, "final", Keep().retention(JobState.FAILED), encode_error(error))
    assert await driver.worker().report(report) == "ok"

    snapshot = await driver.read(ref)
    assert (snapshot.record.state, snapshot.record.error) == (JobState.FAILED, error)
    assert snapshot.record.counts == AttemptCounts(attempt=1, failures=1)
    assert snapshot.record.ended_at is not None
    assert snapshot.record.arguments == b'{"a": 1}'
    (entry,) = snapshot.history
    assert (entry.verb, entry.state, entry.worker, entry.attempt) == ("fail", "failed", "w1", 1)
    assert entry.note == "CardDeclined: no"


async def test_each_failure_leaves_a_line_of_history_and_the_last_hundred_stay(driver: Driver) -> None:
    ref = await driver.one()
    for _ in range(105):
        (job,) = await driver.worker().claim()
        await driver.worker().fail(job, "")

    history = (await driver.read(ref)).history

    assert [entry.attempt for entry in history] == list(range(6, 106))


@pytest.mark.parametrize("letter", ["x", "é", "€", "😀", "a\nb", '"\\'])
async def test_a_long_message_of_any_letters_is_cut_in_the_history_and_kept_in_the_error(
    driver: Driver, letter: str
) -> None:
    refs = await driver.enqueue(*[new_job()] * 4)
    messages = ["-" * shift + letter * 800 for shift in range(4)]
    for job, message in zip(await driver.worker().claim(4), messages, strict=True):
        await driver.worker().fail(job, message=message)

    for ref, message in zip(refs, messages, strict=True):
        snapshot = await driver.read(ref)
        assert snapshot.record.error is not None
        assert snapshot.record.error.message == message
        (entry,) = snapshot.history
        assert 100 < len(entry.note.encode()) <= 500
        assert f"ValueError: {message}".startswith(entry.note)


@pytest.mark.parametrize(
    "error",
    [
        b'{"type":"X","message":"m","attributes":{"deep":' + b"[" * 2000 + b"]" * 2000 + b"}}",
        b'{"type":null,"message":5}',
        b'{"type":{},"message":[]}',
        b'"text"',
        b"not json",
        b"",
        b"\xff",
    ],
    ids=["deep", "null", "objects", "text", "junk", "empty", "bytes"],
)
async def test_no_error_can_leave_a_failure_half_stored(driver: Driver, error: bytes) -> None:
    """The script reads the error for the history; what it cannot read it leaves out."""
    refs = await driver.enqueue(new_job(), new_job())
    first, second = await driver.worker().claim(2)
    rule = Keep().retention(JobState.FAILED)

    await driver.worker().report(Failed(first.run, first.claim, "final", rule, error))
    await driver.worker().report(Failed(second.run, second.claim, "+1000", rule, error))

    assert driver.counts() == {"failed": 1, "scheduled": 1}
    driver.check()
    assert driver.hash("runs")[run_of(refs[0])].startswith("failed ")


async def test_progress_starts_again_with_the_next_attempt(driver: Driver) -> None:
    """Spec 11: progress resets on retry."""
    ref = await driver.one()
    (job,) = await driver.worker().claim()
    await driver.worker().store.save_progress(QUEUE, [(job.run, job.claim, "5", "10", "half")])

    await driver.worker().fail(job, "")

    assert (await driver.read(ref)).record.progress is None
