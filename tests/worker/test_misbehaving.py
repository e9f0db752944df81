"""Handlers that end loops, swallow errors or raise odd ones: the outcome of each is reported, and only of its own."""

from __future__ import annotations

import re
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rota import JobFailed
from tests.eventually import eventually
from tests.servers import Server
from tests.worker.harness import WorkerHarness, all_gone, failure


@pytest.fixture
async def harness(valkey: Server, namespace: str, tmp_path: Path) -> AsyncIterator[WorkerHarness]:
    """Starts workers of the misbehaving program."""
    with WorkerHarness(valkey, namespace, tmp_path, "tests.worker.misbehaving") as harness:
        yield harness
        await harness.rota.close()


# --- the event loop ----------------------------------------------------------------------------------------------


async def test_sys_exit_in_a_child_task_is_the_outcome_of_its_own_job_alone(harness: WorkerHarness) -> None:
    """asyncio ends a loop in which a task raises SystemExit: every other job was reported as failed."""
    worker = await harness.start()
    (runner,) = worker.runners("loop")
    neighbours = [await harness.program.wait.enqueue(f"job-{n}") for n in range(3)]
    for number in range(3):
        await harness.noted(f"job-{number}")

    awaited = await harness.program.exit_in_child_task.enqueue(True)
    forgotten = await harness.program.exit_in_child_task.enqueue(False)

    assert (await failure(awaited)).type == "SystemExit"
    assert await forgotten.result(10) == "done"
    assert await (await harness.program.stop_loop.enqueue()).result(10) == "done"
    for number in range(3):
        harness.allow(f"job-{number}")
    assert [await job.result(10) for job in neighbours] == ["job-0", "job-1", "job-2"]
    assert {(await job.refresh()).counts.attempt for job in neighbours} == {1}
    assert worker.runners("loop") == [runner]


async def test_jobs_of_a_runner_that_ends_by_itself_are_returned_uncharged(harness: WorkerHarness) -> None:
    """A task group of the lifespan fails, and with it the runner: no job is the reason."""
    worker = await harness.start()
    (runner,) = worker.runners("loop")
    jobs = [await harness.program.wait.enqueue("on the loop"), await harness.program.wait_in_thread.enqueue("thread")]
    await harness.noted("on")
    await harness.noted("thread")

    harness.allow("background-fails")
    await all_gone([runner], 20)
    harness.allow("on the loop")
    harness.allow("thread")

    assert [await job.result(20) for job in jobs] == ["on the loop", "thread"]
    for job in jobs:
        counts = (await job.refresh()).counts
        assert (counts.attempt, counts.failures, counts.stalls, counts.handbacks) == (2, 0, 0, 1)
    assert "the feed is gone" in worker.log, worker.log


@pytest.mark.parametrize(
    ("kind", "reason"), [("number", "404"), ("none", ""), ("surrogate", "?"), ("object", "{'code': 1}")]
)
async def test_any_reason_to_cancel_is_recorded_as_text(harness: WorkerHarness, kind: str, reason: str) -> None:
    """A number could not be decoded by the supervisor, which killed the runner, and a neighbour with it."""
    worker = await harness.start()
    (runner,) = worker.runners("loop")

    job = await harness.program.cancel_with.enqueue(kind)

    await harness.until(job, "cancelled")
    assert (await job.refresh()).reason == reason
    assert worker.runners("loop") == [runner]


# --- outcomes ----------------------------------------------------------------------------------------------------


async def test_a_provider_that_suppresses_an_exception_does_not_change_the_outcome(harness: WorkerHarness) -> None:
    """The missing result was reported as a TypeError."""
    await harness.start()

    failed = await harness.program.raise_through_provider.enqueue("ValueError")
    cancelled = await harness.program.raise_through_provider.enqueue("Cancel")
    snoozed = await harness.program.raise_through_provider.enqueue("Snooze")

    error = await failure(failed)
    assert (error.type, error.message) == ("ValueError", "bad value")
    await harness.until(cancelled, "cancelled")
    await harness.until(snoozed, "scheduled")
    assert sorted(harness.notes("swallowed")) == ["Cancel", "Snooze", "ValueError"]


@pytest.mark.parametrize(
    ("kind", "recorded"),
    [("SyntaxError", "SyntaxError"), ("BrokenFields", "BrokenFields"), ("NamelessError", "\\ud800")],
)
async def test_an_error_that_cannot_be_recorded_is_reported_all_the_same(
    harness: WorkerHarness, kind: str, recorded: str
) -> None:
    """The report was lost: the job ran on, for the supervisor, until its timeout."""
    worker = await harness.start()

    job = await harness.program.raise_odd.enqueue(kind)

    assert (await failure(job)).type == recorded
    assert worker.is_alive


async def test_stop_iteration_is_recorded_as_what_it_is(harness: WorkerHarness) -> None:
    """A coroutine turns it into a RuntimeError."""
    await harness.start()

    for task in (harness.program.raise_odd, harness.program.raise_odd_in_thread):
        error = await failure(await task.enqueue("StopIteration"))
        assert (error.type, error.message) == ("StopIteration", "no more")


# --- threads and processes ---------------------------------------------------------------------------------------


async def test_a_function_in_a_process_runs_without_a_running_loop_in_the_main_thread(harness: WorkerHarness) -> None:
    """`asyncio.run`, Django's ORM and Playwright refuse to work inside a running loop."""
    worker = await harness.start()

    assert await (await harness.program.run_a_loop.enqueue()).result(10) == "inner True"
    (runner,) = worker.runners("process")
    assert await (await harness.program.run_a_loop.enqueue()).result(10) == "inner True"
    assert (await failure(await harness.program.exit_in_process.enqueue())).type == "SystemExit"
    assert worker.runners("process") == [runner]


async def test_a_recycled_runner_exits_though_a_handler_left_a_thread(harness: WorkerHarness) -> None:
    """Python waits for such threads at exit."""
    await harness.start("--max-jobs", "1")

    first = await (await harness.program.leave_thread_behind.enqueue()).result(10)
    second = await (await harness.program.pid.enqueue()).result(20)

    assert first != second
    await all_gone([first], 15)


async def test_a_middleware_s_timeout_ends_the_thread_before_the_lock_is_released(harness: WorkerHarness) -> None:
    """The thread was abandoned: the next attempt ran beside it."""
    await harness.start()
    jobs = [await harness.program.outlast_middleware.using(lock="one").enqueue("order") for _ in range(2)]

    for job in jobs:
        assert (await failure(job, 30)).type == "TimeoutError"

    assert harness.notes("order") == ["in", "out"] * 4


async def test_slow_cleanup_of_the_lifespan_is_waited_for(harness: WorkerHarness) -> None:
    """It was killed after two seconds."""
    worker = await harness.start()
    harness.allow("slow-cleanup")

    worker.terminate()

    assert await worker.ended(20) == 0
    assert harness.notes("lifespan") == ["cleaned up"]


# --- logs --------------------------------------------------------------------------------------------------------


async def test_lines_logged_from_several_threads_are_all_stored(harness: WorkerHarness) -> None:
    """Two threads gave their lines the same number, and the store took the second for the first sent again."""
    await harness.start()

    job = await harness.program.log_from_threads.enqueue(8, 100)
    await job.result(20)

    assert sorted(line.text for line in await job.logs()) == sorted(
        f"{thread} {line}" for thread in range(8) for line in range(100)
    )


async def test_the_last_words_of_a_crashing_process_are_logged(harness: WorkerHarness) -> None:
    """A line is written by another thread, but its caller waits for that."""
    worker = await harness.start()

    await failure(await harness.program.log_and_exit.using(max_stalls=0).enqueue(), 20)

    await eventually(lambda: "famous last words" in worker.log)


# --- slots -------------------------------------------------------------------------------------------------------


async def test_process_tasks_do_not_shrink_automatic_concurrency(harness: WorkerHarness) -> None:
    """A process runner is blocked while it runs a job. That passed for the lag of an overloaded event loop."""
    worker = await harness.start(concurrency="auto")

    jobs = await harness.enqueue_many(harness.program.sleep_in_process.call(2) for _ in range(6))
    for job in jobs:
        await job.result(60)

    lags = [int(lag) for lag in re.findall(r"loop lag (\d+) ms", worker.log)]
    assert max(lags, default=0) < 1_000


async def test_jobs_beside_a_handler_that_blocks_the_loop_are_not_charged_a_timeout(harness: WorkerHarness) -> None:
    """They could not run: they are returned, and run again."""
    worker = await harness.start()
    neighbours = [await harness.program.sleep.using(timeout=1.5, retry=1).enqueue(1) for _ in range(3)]
    await harness.noted("sleep", 3)
    culprit = await harness.program.block_loop.enqueue(4)
    await harness.noted("block")

    for job in neighbours:
        assert await job.result(20) == "slept"
        assert (await job.refresh()).counts.failures == 0
    assert f"{culprit.id} blocks the event loop" in worker.log
    assert await culprit.result(20) is None


async def test_a_handler_that_blocks_the_loop_is_charged_though_a_neighbour_times_out_first(
    harness: WorkerHarness,
) -> None:
    """Their runner is killed for the neighbour. The handler runs again in isolation, where its own timeout ends it."""
    await harness.start(hook="short_stop_grace")
    neighbour = await harness.program.sleep.using(timeout=1.5, retry=1).enqueue(1)
    await harness.noted("sleep")
    culprit = await harness.program.block_loop.using(timeout=6, retry=1).enqueue(60)

    assert await neighbour.result(60) == "slept"
    with pytest.raises(JobFailed, match="ran for more than 6 s"):
        await culprit.result(60)


# --- starting, replacing and ending processes --------------------------------------------------------------------


async def test_sys_exit_at_import_is_the_reason_that_the_worker_gives(harness: WorkerHarness) -> None:
    """It said that the program did not start within 60 s."""
    harness.allow("exit-at-import")

    worker = harness.launch()

    assert await worker.ended(30) != 0
    assert "tests.worker.misbehaving cannot be imported: it calls sys.exit(7)" in worker.log


async def test_a_worker_can_be_stopped_while_it_imports_the_program(harness: WorkerHarness) -> None:
    """Ctrl-C had no effect until the import had ended."""
    harness.allow("slow-import")
    worker = harness.launch()
    (pid,) = await harness.noted("import", timeout=30)

    worker.signal(signal.SIGINT)

    assert await worker.ended(20) == 0
    await all_gone([int(pid)])


async def test_a_hang_up_stops_a_worker_gracefully(harness: WorkerHarness) -> None:
    """SIGHUP killed it: its jobs waited for their leases, and were charged a stall."""
    worker = await harness.start()
    job = await harness.program.wait.enqueue("held")
    await harness.noted("held")

    worker.signal(signal.SIGHUP)
    await eventually(lambda: "is stopping" in worker.log)
    harness.allow("held")

    assert await worker.ended(20) == 0
    assert await job.state() == "completed"


async def test_a_runner_that_will_be_replaced_soon_gets_a_successor_in_time(harness: WorkerHarness) -> None:
    """The successor was started too late: every job waited until it had imported the program."""
    worker = await harness.start("--max-jobs", "10")
    (first,) = worker.runners("loop")

    for _ in range(8):
        await (await harness.program.pid.enqueue()).result(10)
    await eventually(lambda: len(worker.runners("loop")) == 2)
    for _ in range(20):
        await (await harness.program.pid.enqueue()).result(10)

    await eventually(lambda: first not in worker.runners("loop"))
    await eventually(lambda: len(worker.runners("loop")) in (1, 2))


async def test_what_a_value_of_the_worker_depends_on_stays_open_as_long(harness: WorkerHarness) -> None:
    """It was closed after the attempt that made it."""
    await harness.start()

    assert [await (await harness.program.use_kept.enqueue()).result(10) for _ in range(3)] == [True] * 3
