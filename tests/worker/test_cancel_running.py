"""`Update(cancel_running=True)`: the newest call replaces the one that runs."""

from __future__ import annotations

from rota import JobState, Update
from tests.worker.harness import WorkerHarness

NEWEST_ONLY = Update(cancel_running=True)


async def test_a_newer_call_cancels_the_running_one_and_runs_when_it_has_stopped(harness: WorkerHarness) -> None:
    await harness.start()
    wait = harness.program.wait.using(id="report", on_same_id=NEWEST_ONLY)
    first = await wait.enqueue("first")
    await harness.noted("first")

    second = await wait.enqueue("second")
    await harness.noted("second")

    assert harness.notes("first") == ["begin", "cancelled"]
    record = await first.refresh()
    assert record.state is JobState.CANCELLED
    assert record.reason == "its id was enqueued again with cancel_running"
    third = await wait.enqueue("third")
    harness.allow("third")
    await third.result(20)
    assert (await second.refresh()).state is JobState.CANCELLED


async def test_without_a_running_one_nothing_is_cancelled(harness: WorkerHarness) -> None:
    """A job of that id that waits is updated, as ever; other jobs stay as they are."""
    wait = harness.program.wait.using(id="report", on_same_id=NEWEST_ONLY)
    other = await harness.program.wait.enqueue("other")

    jobs = [await wait.enqueue(subject) for subject in ("first", "second")]

    assert jobs[0].run == jobs[1].run
    assert (await jobs[0].refresh()).state is JobState.PENDING
    assert (await other.refresh()).state is JobState.PENDING
