"""Cancelling a job while it waits, while it runs, and in the very moment it ends."""

from __future__ import annotations

import asyncio
import secrets

import pytest

from rota import JobCancelled, JobNotFound, WrongState
from tests.eventually import eventually
from tests.scale import IS_LONG
from tests.worker.harness import Stopwatch, WorkerHarness, is_running

ROUNDS = 200 if IS_LONG else 25


@pytest.mark.requirement("S2-6", "S2-19")
@pytest.mark.parametrize("task", ["wait", "wait_in_thread", "wait_in_process"])
async def test_a_running_job_is_cancelled_at_once_and_its_handler_stops_within_a_second(
    shared: WorkerHarness, task: str
) -> None:
    """The state is CANCELLED at once; the handler is really stopped; nothing runs it again."""
    subject = secrets.token_hex(4)
    job = await shared.rota.tasks.get(task).enqueue(subject)
    (begun,) = await shared.noted(subject)

    assert await job.cancel("changed my mind") == "stopping"
    watch = Stopwatch()
    assert await job.state() == "cancelled"
    with pytest.raises(JobCancelled, match="changed my mind"):
        await job.result(1)

    if task == "wait_in_process":
        pid = int(begun.split()[1])
        await eventually(lambda: not is_running(pid), 2)
    else:
        await shared.noted(subject, 2, 2)
        assert shared.notes(subject)[1].startswith("cancelled")
    assert watch.seconds < 1
    shared.allow(subject)
    await eventually(lambda: not _stopping(shared, job.run), 2)
    counts = (await job.refresh()).counts
    assert (counts.attempt, counts.failures, await job.state()) == (1, 0, "cancelled")


@pytest.mark.requirement("S3-13")
async def test_a_cancel_whose_notification_is_lost_is_noticed_by_the_heartbeat(harness: WorkerHarness) -> None:
    """The subscription was cut in that moment; the next heartbeat makes up for the lost message."""
    await harness.start()
    job = await harness.program.wait.enqueue("subject")
    await harness.noted("subject")

    with harness.redis() as client:
        client.client_kill_filter(_type="pubsub")
        await job.cancel()
    watch = Stopwatch()

    await harness.noted("subject", 2, 5)
    assert watch.seconds < 2


async def test_a_thread_that_has_not_begun_yet_is_stopped_as_well(harness: WorkerHarness) -> None:
    """Its runner is held up, so that claim and cancel arrive together: neither may be forgotten."""
    worker = await harness.start(concurrency=5)
    (runner,) = worker.runners("loop")
    blocker = await harness.program.block_loop.enqueue("blocker", 1.5)
    await harness.noted("blocker")
    thread = await harness.program.wait_in_thread.enqueue("thread")
    coroutine = await harness.program.wait.enqueue("coroutine")
    await harness.until(thread, "processing")
    await harness.until(coroutine, "processing")

    await thread.cancel()
    await coroutine.cancel()
    await blocker.result(10)

    await eventually(lambda: not _stopping(harness, thread.run) and not _stopping(harness, coroutine.run), 3)
    assert harness.notes("thread") == harness.notes("coroutine") == []
    assert worker.runners("loop") == [runner], "nothing was retired"


async def test_a_process_that_is_still_starting_never_runs_a_cancelled_job(harness: WorkerHarness) -> None:
    """The kill comes before there is anything to kill."""
    await harness.start(concurrency=20)
    subjects = [f"early-{number}" for number in range(8)]
    jobs = [await harness.program.wait_in_process.enqueue(subject) for subject in subjects]

    for job in jobs:
        await harness.until(job, "processing")
        await job.cancel()

    await eventually(lambda: not any(_stopping(harness, job.run) for job in jobs), 5)
    assert await (await harness.program.add_in_process.enqueue(1, 2)).result(10) == 3
    for subject in subjects:
        harness.allow(subject)
    assert not [subject for subject in subjects if "end" in harness.notes(subject)]


@pytest.mark.requirement("S2-19", "S2-34", "S4-13", "S4-39")
async def test_a_waiting_job_is_cancelled_and_never_runs(harness: WorkerHarness) -> None:
    """Pending or scheduled, it is gone from the line."""
    await harness.rota.queue().pause()
    await harness.start()
    pending = await harness.program.record_run.enqueue("ran", "pending")
    scheduled = await harness.program.record_run.using(delay=0.2).enqueue("ran", "scheduled")

    assert [await pending.cancel(), await scheduled.cancel()] == ["cancelled", "cancelled"]
    await harness.rota.queue().resume()
    await (await harness.program.sleep.using(delay=0.5).enqueue(0)).result(10)

    assert harness.notes("ran") == []


@pytest.mark.requirement("S4-13")
async def test_only_waiting_leaves_a_running_job_alone_and_says_so(shared: WorkerHarness) -> None:
    """An active job is untouched."""
    subject = secrets.token_hex(4)
    job = await shared.program.wait.enqueue(subject)
    await shared.noted(subject)

    assert await job.cancel(only_waiting=True) == "left_running"

    shared.allow(subject)
    assert await job.result(10) == subject


@pytest.mark.requirement("S2-6")
async def test_a_finished_job_cannot_be_cancelled(shared: WorkerHarness) -> None:
    """Refused, and nothing changes."""
    job = await shared.program.add.enqueue(1, 2)
    await job.result(10)

    with pytest.raises(WrongState):
        await job.cancel()

    assert await job.state() == "completed"


@pytest.mark.requirement("S2-7")
async def test_a_job_that_is_deleted_while_it_runs_is_stopped_and_leaves_no_ghost(shared: WorkerHarness) -> None:
    """Kue #804: the handler stops, and what it reports makes no new record."""
    subject = secrets.token_hex(4)
    job = await shared.program.wait.enqueue(subject)
    await shared.noted(subject)

    await job.delete()

    await shared.noted(subject, 2, 3)
    assert shared.notes(subject) == ["begin", "cancelled"]
    await eventually(lambda: not _stopping(shared, job.run), 3)
    with pytest.raises(JobNotFound):
        await job.refresh()
    with shared.redis() as client:
        assert not client.hexists(shared.key("runs"), job.run or "")


@pytest.mark.requirement("S2-19")
async def test_cancel_against_complete_has_one_winner_and_says_which(shared: WorkerHarness) -> None:
    """A cancel that comes after the last check is not overwritten, a completion is not either."""
    winners = set[str]()
    for number in range(ROUNDS):
        job = await shared.program.sleep.enqueue(0.005)
        await asyncio.sleep(0.001 * (number % 15))
        try:
            await job.cancel()
            expected = "cancelled"
        except WrongState as error:
            expected = error.state
        try:
            await job.result(5)
            found = "completed"
        except JobCancelled:
            found = "cancelled"

        assert found == expected == await job.state()
        winners.add(found)
    assert winners == {"cancelled", "completed"}, "the race was not one"


def _stopping(harness: WorkerHarness, run: str | None) -> bool:
    """True until the worker has confirmed that the handler has ended."""
    with harness.redis() as client:
        return client.zscore(harness.key("stopping"), run or "") is not None
