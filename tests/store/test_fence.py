"""A worker that lost its lease changes nothing, whatever it says."""

from __future__ import annotations

import pytest

from rota.core.ids import JobRef
from rota.core.job_record import AttemptCounts
from rota.core.state_transitions import JobState
from rota.store.claim_replies import ClaimedJob
from rota.store.job_store import LEASE_MS
from tests.store.driver import ENDS, QUEUE, Driver, new_job

#: What a heartbeat may touch: the time it came.
SIGNS_OF_LIFE = ("meta", "heartbeats")


async def _overtaken(driver: Driver, how: str) -> tuple[JobRef, ClaimedJob, ClaimedJob | None]:
    """A run that w1 claimed and lost: to w2, or to its end."""
    ref = await driver.one("x")
    (late,) = await driver.worker("w1").claim()
    await driver.worker("w1").beat(late)
    await driver.advance_with_ticks(LEASE_MS + 2000, by="w2")
    (job,) = await driver.worker("w2").claim()
    assert job.run == late.run
    if how == "claimed by another":
        return ref, late, job
    if how == "completed by another":
        await driver.worker("w2").complete(job, b'"w2"')
    elif how == "failed by another":
        await driver.worker("w2").fail(job)
    elif how == "retried by another":
        await driver.worker("w2").fail(job, "+60000")
    elif how == "claimed again by itself":
        await driver.worker("w2").hand_back(job)
        (job,) = await driver.worker("w1").claim()
        return ref, late, job
    return ref, late, None


OVERTAKEN = [
    "claimed by another",
    "completed by another",
    "failed by another",
    "retried by another",
    "claimed again by itself",
]


@pytest.mark.requirement("S0-12", "S4-36")
@pytest.mark.parametrize("how", OVERTAKEN)
@pytest.mark.parametrize("verb", ENDS)
async def test_a_late_report_changes_nothing(driver: Driver, verb: str, how: str) -> None:
    """Queasy [V]: a late finish must not delete the new owner's record."""
    ref, late, job = await _overtaken(driver, how)
    before = driver.dump()

    assert await driver.worker("w1").end(late, verb) == "lease_lost"

    assert driver.dump() == before
    if job is not None:
        assert await driver.state(ref) is JobState.PROCESSING
        owner = driver.worker("w1" if how == "claimed again by itself" else "w2")
        assert await owner.complete(job, b'"right"') == "ok"


@pytest.mark.parametrize("how", OVERTAKEN)
async def test_late_progress_changes_nothing(driver: Driver, how: str) -> None:
    """kue #1204: a late progress call put a failed job back among the active ones."""
    _, late, _ = await _overtaken(driver, how)
    before = driver.dump()

    await driver.worker("w1").store.save_progress(QUEUE, [(late.run, late.claim, "9", "10", "late")])

    assert driver.dump() == before


@pytest.mark.parametrize("how", OVERTAKEN)
async def test_a_late_log_line_changes_nothing(driver: Driver, how: str) -> None:
    _, late, _ = await _overtaken(driver, how)
    before = driver.dump()

    assert not await driver.worker("w1").store.append_log(QUEUE, late.run, late.claim, 1, ["info late"])

    assert driver.dump() == before


@pytest.mark.requirement("S4-33")
@pytest.mark.parametrize("how", OVERTAKEN)
async def test_a_late_heartbeat_changes_nothing_and_is_refused(driver: Driver, how: str) -> None:
    _, late, _ = await _overtaken(driver, how)
    before = driver.dump(*SIGNS_OF_LIFE)

    assert await driver.worker("w1").beat(late) == {late.run: "lost"}

    assert driver.dump(*SIGNS_OF_LIFE) == before


@pytest.mark.parametrize("forged", ["1.", "1", "1.w1", "1.w1-16 ", "2.w1-16", "-", "%d+.*", " ", ""])
async def test_only_the_whole_claim_counts(driver: Driver, forged: str) -> None:
    """A number that is reissued after lost writes does not match, because the token does not."""
    ref = await driver.one()
    (job,) = await driver.worker("w1").claim()
    assert job.claim == "1.w1-16"
    fake = job._replace(claim=forged)
    worker = driver.worker("w1")
    before = driver.dump(*SIGNS_OF_LIFE)

    for verb in ENDS:
        assert await worker.end(fake, verb) == "lease_lost"
    assert not await worker.store.append_log(QUEUE, fake.run, fake.claim, 1, ["info x"])
    assert await worker.beat(fake) == {fake.run: "lost"}

    assert driver.dump(*SIGNS_OF_LIFE) == before
    assert await driver.state(ref) is JobState.PROCESSING


@pytest.mark.parametrize("verb", ENDS)
async def test_a_report_on_what_never_existed_creates_nothing(driver: Driver, verb: str) -> None:
    """kue #559: a field update must never create half a record."""
    await driver.one()
    ghost = ClaimedJob(QUEUE, "00000zzzz", "1.w1-16", AttemptCounts(attempt=1), b"")
    before = driver.dump()

    assert await driver.worker("w1").end(ghost, verb) == "missing"

    assert driver.dump() == before


async def test_a_claim_of_another_run_is_no_claim(driver: Driver) -> None:
    await driver.enqueue(new_job(), new_job())
    (mine,) = await driver.worker("w1").claim()
    (others,) = await driver.worker("w2").claim()
    before = driver.dump()

    assert await driver.worker("w1").complete(others._replace(claim=mine.claim)) == "lease_lost"

    assert driver.dump() == before
