"""The context of a handler: what it gives, and the progress and log lines sent through it."""

from __future__ import annotations

import asyncio
import secrets
import time
from typing import Any

import pytest

from rota import Job, Retry
from tests.eventually import eventually
from tests.worker.harness import WorkerHarness


@pytest.mark.requirement("S4-15", "S0-5")
async def test_the_context_says_which_attempt_of_which_job_this_is(shared: WorkerHarness) -> None:
    """The handler sees the job with its options and counts; the first attempt is number 1."""
    before = time.time()
    job = await shared.program.describe_context.using(timeout=30, tags=["blue"]).enqueue()

    context = await job.result(10)

    record = await job.refresh()
    assert (context["attempt"], context["job"], context["tags"]) == (1, job.id, ["blue"])
    assert context["enqueued_at"] == record.enqueued_at
    assert context["state"] == {"color": "green"}, "what the lifespan yielded"
    assert context["cancelled"] is False
    assert before + 29 < context["deadline"] < time.time() + 31


async def test_without_a_timeout_there_is_no_deadline(shared: WorkerHarness) -> None:
    job = await shared.program.describe_context.using(timeout=None, progress_timeout=30).enqueue()

    assert (await job.result(10))["deadline"] is None


@pytest.mark.requirement("S1-17")
async def test_the_idempotency_key_stays_and_the_fence_grows_over_attempts(shared: WorkerHarness) -> None:
    """What goes along with a call that must not be done twice is the same in every attempt."""
    job = await shared.program.fail.using(retry=Retry(attempts=3, backoff=[0.01])).enqueue("ValueError", times=2)

    assert await job.result(10) == "attempt 3"

    attempts = [line.split(" ", 3) for line in shared.notes(job.ref.id)]
    fences = [int(fence) for _, _, fence, _ in attempts]
    assert [number for _, number, _, _ in attempts] == ["1", "2", "3"]
    assert len({key for *_, key in attempts}) == 1
    assert fences == sorted(set(fences)), "each claim has a greater fence than the one before"


@pytest.mark.requirement("S2-18", "K-8")
async def test_progress_is_shown_as_percent_with_rate_and_time_left(shared: WorkerHarness) -> None:
    """0 to 100 while it runs, with a note."""
    subject = secrets.token_hex(4)
    job = await shared.program.report_progress.enqueue(5.0, total=20.0, hold_at=subject)

    await eventually(lambda: _has_progress(job))
    progress = (await job.refresh()).progress
    shared.allow(subject)
    await job.result(10)

    assert progress is not None
    assert (progress.percent, progress.note) == (25, "step 5")
    assert progress.per_second is not None
    assert progress.per_second > 0
    assert progress.seconds_left is not None
    assert progress.seconds_left > 0


@pytest.mark.requirement("S2-18")
async def test_the_last_word_of_a_burst_is_not_lost(shared: WorkerHarness) -> None:
    """Progress reported in quick succession is sent once, and the last one is shown."""
    subject = secrets.token_hex(4)
    job = await shared.program.report_progress.enqueue(10.0, 20.0, 30.0, hold_at=subject)

    async def is_at_30() -> bool:
        progress = (await job.refresh()).progress
        return progress is not None and progress.percent == 30

    await eventually(is_at_30, 3)
    shared.allow(subject)
    await job.result(10)


@pytest.mark.requirement("S2-18")
async def test_the_end_of_the_progress_is_kept_with_the_finished_job(shared: WorkerHarness) -> None:
    """A handler that reports 100 % and returns at once is shown at 100 %."""
    job = await shared.program.write_log.enqueue("a", "b")
    await job.result(10)

    progress = (await job.refresh()).progress

    assert progress is not None
    assert (progress.percent, progress.note) == (100, "all said")


@pytest.mark.requirement("S2-18")
async def test_the_last_word_before_the_end_is_not_lost_either(shared: WorkerHarness) -> None:
    """It was reported a moment after another one, and there was no time left to send it."""
    job = await shared.program.report_progress.enqueue(10.0, 20.0, 30.0)
    await job.result(10)

    progress = (await job.refresh()).progress

    assert progress is not None
    assert progress.percent == 30


@pytest.mark.requirement("S2-18")
async def test_progress_starts_anew_with_the_next_attempt(shared: WorkerHarness) -> None:
    """A retry is not shown half done."""
    subject = secrets.token_hex(4)
    job = await shared.program.report_progress_then_fail.using(retry=Retry(attempts=2, backoff=[0.01])).enqueue(subject)
    await eventually(lambda: _has_progress(job))

    shared.allow(f"{subject}-fail")
    await shared.noted(subject)
    progress = (await job.refresh()).progress
    shared.allow(f"{subject}-end")
    await job.result(10)

    assert progress is None


@pytest.mark.requirement("K-7")
async def test_the_last_lines_of_a_short_handler_are_in_its_log(shared: WorkerHarness) -> None:
    """What is logged just before the end is stored before the end is."""
    job = await shared.program.write_log.enqueue("first", "second", level="warning")
    await job.result(10)

    lines = await job.logs()

    assert [(line.level, line.text) for line in lines] == [("warning", "first"), ("warning", "second")]


@pytest.mark.requirement("K-7")
async def test_no_line_is_lost_when_one_job_ends_while_the_lines_of_another_are_being_stored(
    harness: WorkerHarness,
) -> None:
    """Each outcome is stored after all log lines of its handler, also where storing those is slow."""
    await harness.start(hook="slow_log_writes")
    jobs: list[Job[int]] = []
    for number in range(10):
        jobs.append(await harness.program.write_log.enqueue(f"line of {number}"))
        await asyncio.sleep(0.05)
    for job in jobs:
        await job.result(20)

    logs = [[line.text for line in await job.logs()] for job in jobs]

    assert logs == [[f"line of {number}"] for number in range(10)]


@pytest.mark.parametrize("task", ["write_log_in_thread", "write_log_in_process"])
async def test_lines_from_a_thread_and_a_process_come_in_order(shared: WorkerHarness, task: str) -> None:
    job = await shared.rota.tasks.get(task).enqueue(300)
    await job.result(10)

    lines = await job.logs()

    assert [line.text for line in lines] == [f"line {number}" for number in range(300)]


@pytest.mark.requirement("K-7")
async def test_a_log_grows_over_attempts_and_keeps_a_thousand_lines(shared: WorkerHarness) -> None:
    """1,000 lines or 256 KiB are kept, of all attempts together."""
    again = await shared.program.write_log_then_fail.using(retry=Retry(attempts=2, backoff=[0.01])).enqueue()
    long = await shared.program.write_log_in_thread.enqueue(1200)
    await again.result(10)
    await long.result(10)

    assert [line.text for line in await again.logs()] == ["attempt 1", "attempt 2"]
    assert len(await long.logs()) == 1000


async def test_log_lines_may_hold_anything(shared: WorkerHarness) -> None:
    lines = ["two\nlines", "", "  spaces  ", "ünï😀"]
    job = await shared.program.write_log.enqueue(*lines)
    await job.result(10)

    assert [line.text for line in await job.logs()] == lines


async def _has_progress(job: Job[Any]) -> bool:
    return (await job.refresh()).progress is not None
