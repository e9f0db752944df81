"""Error hooks and middleware see why an attempt failed: `Timeout`, `ProcessKilled`, `WorkerLost`, or its own error."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rota import JobFailed
from tests.servers import Server
from tests.worker.harness import Stopwatch, WorkerHarness


@pytest.fixture
async def hooked(valkey: Server, namespace: str, tmp_path: Path) -> AsyncIterator[WorkerHarness]:
    """Starts workers of the program with hooks."""
    with WorkerHarness(valkey, namespace, tmp_path, "tests.worker.error_hooks") as harness:
        yield harness
        await harness.rota.close()


async def test_a_hook_gets_the_error_the_attempt_and_whether_it_is_retried(hooked: WorkerHarness) -> None:
    """All hooks are called before the outcome is stored, although the first of them raises SystemExit."""
    worker = await hooked.start()
    job = await hooked.program.fail.using(id="failing").enqueue()

    with pytest.raises(JobFailed):
        await job.result(20)

    assert hooked.notes("hook-failing") == ["ValueError attempt 1 retry", "ValueError attempt 2 final"]
    assert hooked.notes("thread-failing") == ["True", "True"]
    assert "the error hook broken failed for default:failing" in worker.log
    assert worker.is_alive


@pytest.mark.parametrize("task", ["wait", "wait_in_thread", "wait_in_process"])
async def test_a_timeout_is_seen_as_one(hooked: WorkerHarness, task: str) -> None:
    await hooked.start()
    job = await hooked.rota.tasks.get(task).using(id="late").enqueue()

    with pytest.raises(JobFailed):
        await job.result(20)

    assert await hooked.noted("hook-late") == ["Timeout attempt 1 final"]
    (seen,) = await hooked.noted("middleware-late")
    assert seen.startswith("Timeout"), seen


async def test_a_killed_process_is_seen_with_its_signal(hooked: WorkerHarness) -> None:
    await hooked.start()
    job = await hooked.program.crash.using(id="crashing").enqueue()

    with pytest.raises(JobFailed):
        await job.result(20)

    seen = await hooked.noted("hook-crashing", 2)
    assert seen == ["ProcessKilled SIGKILL attempt 1 retry", "ProcessKilled SIGKILL attempt 2 final"]
    assert hooked.notes("middleware-crashing")[0] == "ProcessKilled('its process was killed by SIGKILL')"


@pytest.mark.parametrize(("max_stalls", "then"), [(1, "retry"), (0, "final")])
async def test_a_lost_worker_is_seen_by_the_next_one(hooked: WorkerHarness, max_stalls: int, then: str) -> None:
    first = await hooked.start()
    await hooked.program.begin_and_wait.using(id="left", max_stalls=max_stalls).enqueue("toil")
    await hooked.noted("toil")
    first.kill()
    hooked.outlive()

    await hooked.start()

    assert await hooked.noted("hook-left") == [f"WorkerLost attempt 1 {then}"]
    assert hooked.notes("middleware-left") == [f"WorkerLost('worker {first.id} vanished')"]


async def test_a_hook_that_hangs_does_not_keep_the_outcome(hooked: WorkerHarness) -> None:
    await hooked.start()
    job = await hooked.program.fail.using(id="hanging-hook", retry=1).enqueue()
    watch = Stopwatch()

    with pytest.raises(JobFailed):
        await job.result(20)

    assert watch.seconds < 10


async def test_a_snooze_and_a_cancellation_are_no_errors(hooked: WorkerHarness) -> None:
    await hooked.start()
    snoozed = await hooked.program.later.using(id="later").enqueue()
    await snoozed.result(20)
    cancelled = await hooked.program.wait.using(id="cancelled", timeout=60).enqueue()
    await hooked.noted("began-cancelled")  # a job that is cancelled before its handler runs reaches no middleware
    await cancelled.cancel()
    await hooked.until(cancelled, "cancelled")

    assert await hooked.noted("middleware-cancelled") == ["CancelledError"]
    assert hooked.notes("hook-cancelled") == []
    assert hooked.notes("hook-later") == ["RetryLater attempt 2 retry"]
