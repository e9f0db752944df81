"""The same id again, with real workers: one run at a time, one follow-up, and no way around a limit."""

from __future__ import annotations

import pytest

from rota import JobState, Update
from tests.eventually import eventually
from tests.worker.harness import WorkerHarness


@pytest.mark.requirement("S4-26", "S4-27", "S4-29", "Q-9")
async def test_runs_of_one_id_never_overlap_and_many_calls_make_one_follow_up(harness: WorkerHarness) -> None:
    """With the default time, which is now, on ten free slots."""
    await harness.start()
    first = await harness.program.hold_lock_until.using(id="one").enqueue("first", "one")
    await harness.noted("one")

    again = [await harness.program.hold_lock_until.using(id="one").enqueue(f"again{n}", "one") for n in range(10)]

    assert len({job.run for job in again}) == 1
    assert await again[0].state() is JobState.BLOCKED
    assert (await again[0].explain()).startswith(f"blocked: waits for {first.ref}")
    harness.allow("first")
    harness.allow("again9")
    await again[0].result(10)
    assert harness.notes("one") == ["first in", "first out", "again9 in", "again9 out"]


@pytest.mark.requirement("S4-29")
async def test_a_follow_up_starts_at_once_when_the_running_one_has_ended(harness: WorkerHarness) -> None:
    """Also where its time was not to be changed."""
    await harness.start()
    first = await harness.program.hold_lock_until.using(id="one").enqueue("first", "one")
    await harness.noted("one")
    waiting = harness.program.hold_lock.using(id="two", on_same_id=Update(run_at=False))
    follow_up = await harness.program.hold_lock_until.using(id="one", on_same_id=Update(run_at=False)).enqueue(
        "next", "one"
    )

    harness.allow("first")
    harness.allow("next")
    await follow_up.result(10)

    ended, begun = (await first.refresh()).ended_at, (await follow_up.refresh()).claimed_at
    assert (begun or 0) - (ended or 0) < 1_000
    assert await (await waiting.enqueue("x", "two")).result(10) is None, "no such job: it is made, whatever the flags"


@pytest.mark.requirement("S4-12", "S4-30")
async def test_a_job_that_enqueues_itself_and_keeps_failing_reaches_its_limit(harness: WorkerHarness) -> None:
    """The follow-up merges into the run that is tried again, and its failures stay."""
    await harness.start()
    job = await harness.program.enqueue_self_and_fail.using(id="me").enqueue(0)

    await eventually(lambda: len(harness.notes("self")) >= 4, 20)
    await harness.until(job, JobState.FAILED)

    assert harness.notes("self")[:4] == ["0 0", "1 1", "2 2", "3 3"]
    # The fourth failure was its last: what it had enqueued meanwhile is a run of its own.
    newest = await harness.rota.job("default:me").refresh()
    assert newest.ref.run != job.run


@pytest.mark.requirement("S4-30")
async def test_a_client_that_waits_for_a_merged_follow_up_gets_the_result(harness: WorkerHarness) -> None:
    """The handle of the second call means the one run that is left."""
    await harness.start()
    fail = harness.program.fail.using(id="x", retry=3)
    first = await fail.enqueue("RetryLater", 0.3, times=1)
    follow_up = await harness.program.fail.using(id="x", on_same_id=Update(data=False)).enqueue(
        "RetryLater", 0.3, times=1
    )

    assert await follow_up.result(10) == await first.result(10)
