"""A handler that takes too long is really stopped, its slot is free again, and its siblings go on."""

from __future__ import annotations

import secrets

import pytest

from rota import JobFailed, Retry
from tests.worker.harness import Stopwatch, WorkerHarness, all_gone, failure, is_running


@pytest.mark.requirement("S1-5", "S4-38", "K-6")
@pytest.mark.parametrize("task", ["wait", "wait_in_thread", "wait_in_process"])
async def test_a_handler_is_stopped_at_its_timeout_and_fails(shared: WorkerHarness, task: str) -> None:
    """Counted as a failure, of kind timeout; the handler does not go on."""
    subject = secrets.token_hex(4)
    job = await shared.rota.tasks.get(task).using(timeout=0.5, retry=1).enqueue(subject)
    await shared.noted(subject)
    watch = Stopwatch()

    error = await failure(job)

    assert watch.seconds < 2
    assert (error.kind, error.type) == ("timeout", "Timeout")
    assert "0.5 s" in error.message
    shared.allow(subject)
    await (await shared.program.sleep.enqueue(0.2)).result(10)
    assert "end" not in shared.notes(subject)


async def test_a_timeout_is_retried_as_any_failure(shared: WorkerHarness) -> None:
    subject = secrets.token_hex(4)
    retry = Retry(attempts=2, backoff=[0.01])
    job = await shared.program.wait.using(timeout=0.3, retry=retry).enqueue(subject)

    with pytest.raises(JobFailed):
        await job.result(10)

    counts = (await job.refresh()).counts
    assert shared.notes(subject) == ["begin", "cancelled"] * 2
    assert (counts.attempt, counts.failures, counts.stalls) == (2, 2, 0)


async def test_a_thread_sees_its_stop_as_an_exception_and_in_its_context(shared: WorkerHarness) -> None:
    """It can clean up: a coroutine is cancelled, a thread gets an exception."""
    interrupted, looking = secrets.token_hex(4), secrets.token_hex(4)
    first = await shared.program.wait_in_thread.using(timeout=0.3, retry=1).enqueue(interrupted)
    second = await shared.program.watch_the_flag.using(timeout=0.3, retry=1).enqueue(looking)

    for job in (first, second):
        with pytest.raises(JobFailed):
            await job.result(10)

    assert shared.notes(interrupted) == ["begin", "cancelled True"]
    assert shared.notes(looking) == ["begin", "clean"]


async def test_what_comes_after_a_thread_is_stopped_too(shared: WorkerHarness) -> None:
    """The handler itself has ended in time, but a middleware around it has not."""
    runners = shared.workers[-1].runners("loop")
    job = await shared.program.stuck_middleware.using(timeout=0.5, retry=1).enqueue()
    watch = Stopwatch()

    error = await failure(job)

    assert error.kind == "timeout"
    assert watch.seconds < 3
    assert shared.workers[-1].runners("loop") == runners


@pytest.mark.requirement("S4-38")
async def test_a_process_is_killed_with_all_its_descendants_and_no_others(harness: WorkerHarness) -> None:
    """Children, grandchildren, and one that left the session; its siblings do not notice."""
    worker = await harness.start()
    sibling = await harness.program.wait_in_process.enqueue("sibling")
    coroutine = await harness.program.wait.enqueue("coroutine")
    job = await harness.program.start_descendants.using(timeout=2, retry=1).enqueue("parent")
    await harness.noted("sibling")
    family = [int(pid) for pid in await harness.noted("family", 3)]
    family.append(int((await harness.noted("parent"))[0]))
    assert all(map(is_running, family))

    error = await failure(job)

    assert error.kind == "timeout"
    await all_gone(family)
    harness.allow("sibling")
    harness.allow("coroutine")
    assert [await sibling.result(10), await coroutine.result(10)] == ["sibling", "coroutine"]
    assert [(await each.refresh()).counts.attempt for each in (sibling, coroutine)] == [1, 1]
    assert worker.is_alive


async def test_a_killed_process_leaves_its_slot_free(harness: WorkerHarness) -> None:
    """Kue #636: with one slot, the next job runs right after a timeout."""
    await harness.start(concurrency=1)
    job = await harness.program.sleep_in_process.using(timeout=0.5, retry=1).enqueue("slow", 60)
    following = await harness.program.add_in_process.enqueue(1, 2)

    with pytest.raises(JobFailed):
        await job.result(10)
    watch = Stopwatch()

    assert await following.result(10) == 3
    assert watch.seconds < 3


@pytest.mark.requirement("K-6")
async def test_progress_keeps_a_handler_without_timeout_alive_and_silence_ends_it(harness: WorkerHarness) -> None:
    """`timeout=None` needs a progress deadline; a handler that reports progress in time may go on."""
    await harness.start()
    options = {"timeout": None, "progress_timeout": 0.6, "retry": 1}
    lively = await harness.program.work_with_progress.using(**options).enqueue("lively", 6, 0.2)
    silent = await harness.program.work_with_progress.using(**options).enqueue("silent", 0, 0)

    error = await failure(silent)

    assert (error.kind, error.message) == (
        "timeout",
        "made no progress for 0.6 s and was stopped",
    )
    assert await lively.result(10) == "done"


async def test_a_coroutine_that_will_not_stop_loses_its_runner_and_siblings_finish(harness: WorkerHarness) -> None:
    """Spec 4: no new jobs for that runner; a sibling that finishes in time finishes; then it is killed."""
    worker = await harness.start(hook="short_stop_grace")
    (before,) = worker.runners("loop")
    sibling = await harness.program.sleep.using(timeout=30).enqueue(1.3)
    job = await harness.program.ignore_cancellation.using(timeout=0.5, retry=1).enqueue("stubborn")
    watch = Stopwatch()

    error = await failure(job, 15)

    assert error.kind == "timeout"
    assert 1 <= watch.seconds < 6
    assert await sibling.result(10) == before
    assert (await sibling.refresh()).counts.handbacks == 0
    await all_gone([before])
    assert await (await harness.program.sleep.enqueue(0)).result(10) != before
    assert harness.notes("stubborn").count("begin") == 1


@pytest.mark.parametrize("task", ["block_loop", "hold_gil", "sleep_in_thread"])
async def test_a_handler_that_blocks_past_its_timeout_is_killed_and_siblings_come_back_uncharged(
    harness: WorkerHarness, task: str
) -> None:
    """Spec 4: the runner is retired within bounds; siblings killed with it are handbacks, not stalls or failures."""
    worker = await harness.start(hook="short_stop_grace")
    (before,) = worker.runners("loop")
    siblings = [await harness.program.wait.using(timeout=60).enqueue(f"sibling-{n}") for n in range(3)]
    for n in range(3):
        await harness.noted(f"sibling-{n}")
    job = await harness.rota.tasks.get(task).using(timeout=0.5, retry=1).enqueue("blocker", 60)
    await harness.noted("blocker")
    watch = Stopwatch()

    error = await failure(job, 15)

    assert error.kind == "timeout"
    assert watch.seconds < 8
    await all_gone([before])
    for n, sibling in enumerate(siblings):
        harness.allow(f"sibling-{n}")
        assert await sibling.result(10) == f"sibling-{n}"
        counts = (await sibling.refresh()).counts
        assert (counts.failures, counts.stalls, counts.handbacks) == (0, 0, 1)


async def test_a_retired_runner_gets_no_new_jobs_and_a_new_one_takes_them_meanwhile(harness: WorkerHarness) -> None:
    worker = await harness.start(hook="short_stop_grace")
    (before,) = worker.runners("loop")
    job = await harness.program.block_loop.using(timeout=0.3, retry=1).enqueue("blocker", 60)
    await harness.noted("blocker")

    with pytest.raises(JobFailed):
        await job.result(15)
    after = await (await harness.program.sleep.enqueue(0)).result(10)

    assert after != before
    assert worker.runners("loop") == [after]
