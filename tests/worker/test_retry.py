"""What follows from an attempt that failed, or that asked for something on purpose."""

from __future__ import annotations

import itertools
import time
from typing import Any

import pytest

from rota import Exponential, Fixed, Job, JobCancelled, JobFailed, Retry, Rule, Steps
from tests.worker.harness import WorkerHarness, failure


def _times(shared: WorkerHarness, job: Job[Any]) -> list[float]:
    return [float(line.split(" ")[0]) for line in shared.notes(job.ref.id)]


def _gaps(shared: WorkerHarness, job: Job[Any]) -> list[float]:
    times = _times(shared, job)
    return [later - earlier for earlier, later in itertools.pairwise(times)]


@pytest.mark.requirement("S4-17", "S4-20", "S1-3", "S1-4", "S2-20", "K-4")
@pytest.mark.parametrize(
    ("backoff", "least"),
    [
        (Fixed(0.3), [0.3, 0.3]),
        (Exponential(base=0.2, max=10, jitter=0), [0.2, 0.4]),
        (Exponential(base=0.3, max=0.3, jitter=0.5), [0.3, 0.3]),
        (Steps((0.1, 0.5)), [0.1, 0.5]),
        ([0.4], [0.4, 0.4]),
    ],
    ids=["fixed", "exponential", "capped with jitter", "steps", "list"],
)
async def test_every_backoff_waits_as_long_as_it_says(shared: WorkerHarness, backoff: Any, least: list[float]) -> None:
    """Failures grow, and the next try is not before its delay."""
    job = await shared.program.fail.using(retry=Retry(attempts=3, backoff=backoff)).enqueue("ValueError", times=2)

    assert await job.result(10) == "attempt 3"

    for gap, wanted in zip(_gaps(shared, job), least, strict=True):
        assert wanted <= gap < wanted * 1.5 + 0.5
    assert (await job.refresh()).counts.failures == 2


@pytest.mark.requirement("S0-9", "S0-11", "S2-20", "S4-19")
async def test_after_its_last_failure_a_job_is_a_dead_letter_with_its_error(shared: WorkerHarness) -> None:
    """No more than `attempts` executions; then it is kept, with its error."""
    job = await shared.program.fail.using(retry=Retry(attempts=3, backoff=[0.01])).enqueue("ValueError")

    error = await failure(job)

    record = await job.refresh()
    assert len(shared.notes(job.ref.id)) == 3
    assert (record.state, record.counts.attempt, record.counts.failures) == ("failed", 3, 3)
    assert (error.kind, error.type, error.message) == ("exception", "ValueError", "bad value")
    assert "in fail" in error.traceback
    assert [entry.verb for entry in await job.history()] == ["enqueue", *["claim", "fail"] * 3]


@pytest.mark.requirement("S2-20")
async def test_between_attempts_the_job_is_scheduled_not_processing(shared: WorkerHarness) -> None:
    """It does not stay PROCESSING between retries, as in the system that the requirement comes from."""
    job = await shared.program.fail.using(retry=Retry(attempts=2, backoff=[30])).enqueue("ValueError")

    await shared.until(job, "scheduled")
    await job.cancel()


@pytest.mark.parametrize(("kind", "attempts"), [("ValueError", 1), ("QuotaError", 4), ("KeyError", 2)])
async def test_a_rule_for_an_exception_or_its_base_decides(shared: WorkerHarness, kind: str, attempts: int) -> None:
    rules = {"ValueError": Rule(attempts=1), "ApiError": Rule(attempts=4, backoff=Fixed(0.01))}
    job = await shared.program.fail.using(retry=Retry(attempts=2, backoff=[0.01], on=rules)).enqueue(kind)

    with pytest.raises(JobFailed):
        await job.result(10)

    assert len(shared.notes(job.ref.id)) == attempts


@pytest.mark.requirement("S4-20")
@pytest.mark.parametrize("kind", ["RetryLater", "RetryLater_at", "retry_at", "retry_at_datetime"])
async def test_an_error_may_say_when_to_try_again(shared: WorkerHarness, kind: str) -> None:
    """It replaces the backoff, and is counted as a failure."""
    job = await shared.program.fail.using(retry=Retry(attempts=2, backoff=[60])).enqueue(kind, 0.5, times=1)

    assert await job.result(10) == "attempt 2"

    assert 0.45 <= _gaps(shared, job)[0] < 1.5
    assert (await job.refresh()).counts.failures == 1


@pytest.mark.requirement("Q-9")
@pytest.mark.parametrize("kind", ["RetryLater", "retry_at_value", "Snooze"])
@pytest.mark.parametrize("value", ["nan", "inf", "-1e9", "-inf"])
async def test_an_invalid_time_changes_nothing_else(shared: WorkerHarness, kind: str, value: str) -> None:
    """Whatever a handler raises, its job goes on, and so does the worker."""
    job = await shared.program.fail.using(retry=Retry(attempts=2, backoff=[0.01])).enqueue(kind, value, times=1)

    assert await job.result(10) == "attempt 2"


@pytest.mark.parametrize("kind", ["RetryLater", "retry_at_value", "Snooze"])
async def test_a_time_beyond_all_bounds_is_cut_and_keeps_the_queue_alive(shared: WorkerHarness, kind: str) -> None:
    job = await shared.program.fail.using(retry=Retry(attempts=2, backoff=[0.01])).enqueue(kind, 1e300, times=1)

    await shared.until(job, "scheduled")
    assert await (await shared.program.add.enqueue(1, 1)).result(10) == 2
    await job.cancel()


async def test_a_snooze_spends_no_failure(shared: WorkerHarness) -> None:
    job = await shared.program.fail.using(retry=1).enqueue("Snooze", 0.3, times=2)

    assert await job.result(10) == "attempt 3"

    counts = (await job.refresh()).counts
    assert (counts.attempt, counts.failures, counts.snoozes) == (3, 0, 2)
    assert all(0.3 <= gap < 1.5 for gap in _gaps(shared, job))


@pytest.mark.requirement("S4-18")
@pytest.mark.parametrize("task", ["fail", "fail_in_thread", "fail_in_process"])
async def test_a_permanent_error_is_not_tried_again(shared: WorkerHarness, task: str) -> None:
    job = await shared.rota.tasks.get(task).enqueue("Permanent")

    error = await failure(job)

    assert (error.kind, error.message) == ("permanent", "never again")
    assert (await job.refresh()).counts.attempt == 1


@pytest.mark.parametrize("task", ["fail", "fail_in_thread", "fail_in_process"])
async def test_a_handler_may_cancel_its_own_job(shared: WorkerHarness, task: str) -> None:
    job = await shared.rota.tasks.get(task).enqueue("Cancel")

    with pytest.raises(JobCancelled, match="not needed any more"):
        await job.result(10)

    assert await job.state() == "cancelled"


@pytest.mark.requirement("S4-21")
async def test_what_an_error_carries_is_kept_with_it(shared: WorkerHarness) -> None:
    """Its attributes, as far as JSON can hold them."""
    job = await shared.program.fail.using(retry=1).enqueue("QuotaError")

    error = await failure(job)

    assert error.attributes == {"code": 429, "body": {"wait": [1, 2]}}


@pytest.mark.requirement("S4-17")
@pytest.mark.parametrize("task", ["fail", "fail_in_thread", "fail_in_process"])
@pytest.mark.parametrize(
    "kind", ["SystemExit", "KeyboardInterrupt", "CancelledError", "UnprintableError", "deep", "long", "surrogate"]
)
async def test_whatever_is_raised_only_this_job_fails(shared: WorkerHarness, task: str, kind: str) -> None:
    """No exception, however odd, takes the worker or another job with it."""
    runners = set(shared.workers[-1].runners("loop"))
    job = await shared.rota.tasks.get(task).using(retry=1).enqueue(kind)

    with pytest.raises(JobFailed):
        await job.result(10)

    assert [entry.verb for entry in await job.history()] == ["enqueue", "claim", "fail"]
    assert set(shared.workers[-1].runners("loop")) == runners


async def test_an_error_that_cannot_be_asked_when_to_try_again_is_retried_by_the_backoff(shared: WorkerHarness) -> None:
    """Its `retry_at` raises: that is no reason to lose the job, or the slot."""
    job = await shared.program.fail.using(retry=Retry(attempts=2, backoff=[0.01])).enqueue("UnprintableError", times=1)

    assert await job.result(10) == "attempt 2"


@pytest.mark.requirement("S0-4", "S2-20")
async def test_a_retried_job_goes_to_the_back_of_its_priority(harness: WorkerHarness) -> None:
    """Those that wait already come first."""
    await harness.rota.queue().pause()
    await harness.start(concurrency=1)
    first = await harness.program.fail.using(retry=Retry(attempts=2, backoff=[0])).enqueue("ValueError", times=1)
    others = [await harness.program.fail.enqueue("ValueError", times=0) for _ in range(3)]

    await harness.rota.queue().resume()
    await first.result(10)

    second_try = _times(harness, first)[1]
    assert all(_times(harness, other)[0] <= second_try for other in others)
    assert time.time() - second_try < 10
