"""Cancelling a job while it waits, while it runs, and in the very moment it ends."""

from __future__ import annotations

import asyncio
import secrets

import pytest

from rota import JobCancelled, JobNotFound, WrongState
from tests.eventually import eventually
from tests.scale import IS_LONG
from tests.worker.crew import Crew, Stopwatch, is_running

ROUNDS = 200 if IS_LONG else 25


@pytest.mark.parametrize("task", ["wait", "wait_in_thread", "wait_in_process"])
async def test_a_running_job_is_cancelled_at_once_and_its_handler_stops_within_a_second(
    shared: Crew, task: str
) -> None:
    """S2-6, S2-19: the state is CANCELLED at once; the handler is really stopped; nothing runs it again."""
    subject = secrets.token_hex(4)
    job = await shared.rota.tasks.get(task).enqueue(subject)
    (begun,) = await shared.noted(subject)

    assert await job.cancel("changed my mind") == "processing"
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


async def test_a_cancel_that_is_not_heard_is_learnt_all_the_same(crew: Crew) -> None:
    """S3-13: the subscription was cut in that moment; what was said meanwhile is asked for."""
    await crew.start()
    job = await crew.program.wait.enqueue("subject")
    await crew.noted("subject")

    with crew.redis() as client:
        client.client_kill_filter(_type="pubsub")
        await job.cancel()
    watch = Stopwatch()

    await crew.noted("subject", 2, 5)
    assert watch.seconds < 2


async def test_a_thread_that_has_not_begun_yet_is_stopped_as_well(crew: Crew) -> None:
    """Its runner is held up, so that claim and cancel arrive together: neither may be forgotten."""
    worker = await crew.start(concurrency=5)
    (runner,) = worker.runners("loop")
    blocker = await crew.program.block_loop.enqueue("blocker", 1.5)
    await crew.noted("blocker")
    thread = await crew.program.wait_in_thread.enqueue("thread")
    coroutine = await crew.program.wait.enqueue("coroutine")
    await crew.until(thread, "processing")
    await crew.until(coroutine, "processing")

    await thread.cancel()
    await coroutine.cancel()
    await blocker.result(10)

    await eventually(lambda: not _stopping(crew, thread.run) and not _stopping(crew, coroutine.run), 3)
    assert crew.notes("thread") == crew.notes("coroutine") == []
    assert worker.runners("loop") == [runner], "nothing was retired"


async def test_a_process_that_is_still_starting_never_runs_a_cancelled_job(crew: Crew) -> None:
    """The kill comes before there is anything to kill."""
    await crew.start(concurrency=20)
    subjects = [f"early-{number}" for number in range(8)]
    jobs = [await crew.program.wait_in_process.enqueue(subject) for subject in subjects]

    for job in jobs:
        await crew.until(job, "processing")
        await job.cancel()

    await eventually(lambda: not any(_stopping(crew, job.run) for job in jobs), 5)
    assert await (await crew.program.add_in_process.enqueue(1, 2)).result(10) == 3
    for subject in subjects:
        crew.allow(subject)
    assert not [subject for subject in subjects if "end" in crew.notes(subject)]


async def test_a_waiting_job_is_cancelled_and_never_runs(crew: Crew) -> None:
    """S2-19, S2-34, S4-13, S4-39: pending or scheduled, it is gone from the line."""
    await crew.rota.queue().pause()
    await crew.start()
    pending = await crew.program.order.enqueue("ran", "pending")
    scheduled = await crew.program.order.using(delay=0.2).enqueue("ran", "scheduled")

    assert [await pending.cancel(), await scheduled.cancel()] == ["cancelled", "cancelled"]
    await crew.rota.queue().resume()
    await (await crew.program.nap.using(delay=0.5).enqueue(0)).result(10)

    assert crew.notes("ran") == []


async def test_only_waiting_leaves_a_running_job_alone_and_says_so(shared: Crew) -> None:
    """S4-13: an active job is untouched."""
    subject = secrets.token_hex(4)
    job = await shared.program.wait.enqueue(subject)
    await shared.noted(subject)

    assert await job.cancel(only_waiting=True) == "processing"

    shared.allow(subject)
    assert await job.result(10) == subject


async def test_a_finished_job_cannot_be_cancelled(shared: Crew) -> None:
    """S2-6: refused, and nothing changes."""
    job = await shared.program.add.enqueue(1, 2)
    await job.result(10)

    with pytest.raises(WrongState):
        await job.cancel()

    assert await job.state() == "completed"


async def test_a_job_that_is_deleted_while_it_runs_is_stopped_and_leaves_no_ghost(shared: Crew) -> None:
    """S2-7, Kue #804: the handler stops, and what it reports makes no new record."""
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


async def test_cancel_against_complete_has_one_winner_and_says_which(shared: Crew) -> None:
    """S2-19: a cancel that comes after the last check is not overwritten, a completion is not either."""
    winners = set[str]()
    for number in range(ROUNDS):
        job = await shared.program.nap.enqueue(0.005)
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


def _stopping(crew: Crew, run: str | None) -> bool:
    """True until the worker has confirmed that the handler has ended."""
    with crew.redis() as client:
        return client.zscore(crew.key("stopping"), run or "") is not None
