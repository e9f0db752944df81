"""How a worker leaves: handlers finish, or their jobs are handed back; nothing is lost and no failure is spent."""

from __future__ import annotations

import os
import signal

import psutil
import pytest

from tests.eventually import eventually
from tests.worker.harness import Stopwatch, WorkerHarness, all_gone


@pytest.mark.requirement("S3-15", "K-11")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_lets_handlers_finish_and_claims_nothing_more(
    harness: WorkerHarness, number: signal.Signals
) -> None:
    """What runs is finished, what waits stays, and it leaves with code 0."""
    worker = await harness.start()
    kinds = {"loop": "wait", "thread": "wait_in_thread", "process": "wait_in_process"}
    running = [await harness.rota.tasks.get(task).enqueue(subject) for subject, task in kinds.items()]
    for subject in kinds:
        await harness.noted(subject)

    worker.signal(number)
    await eventually(lambda: "is stopping" in worker.log)
    waiting = await harness.program.record_run.enqueue("ran", "waiting")
    for subject in kinds:
        harness.allow(subject)

    assert await worker.ended(10) == 0
    assert [await job.state() for job in running] == ["completed"] * 3
    assert await waiting.state() == "pending"
    assert harness.notes("ran") == []


@pytest.mark.requirement("S2-26")
async def test_after_the_grace_time_jobs_are_handed_back_and_another_worker_takes_them_at_once(
    harness: WorkerHarness,
) -> None:
    """Kue #71, rq #2079: no failure spent, place kept, and no lease to wait for."""
    leaving = await harness.start("--grace", "0.5", concurrency=3)
    kinds = {"loop": "wait", "thread": "wait_in_thread", "process": "wait_in_process"}
    jobs = [await harness.rota.tasks.get(task).enqueue(subject) for subject, task in kinds.items()]
    for subject in kinds:
        await harness.noted(subject)
    behind = await harness.program.record_run.enqueue("ran", "behind")
    places = {job.id: (await job.refresh()).enqueued_at for job in jobs}

    leaving.terminate()
    assert await leaving.ended(10) == 0

    assert [await job.state() for job in jobs] == ["pending"] * 3
    listed = [record.ref.full_id for record in (await harness.rota.jobs("pending")).jobs]
    assert listed == [*sorted(places, key=lambda id: places[id]), behind.id], "ahead of what came later"
    for subject in kinds:
        harness.allow(subject)
    await harness.start(concurrency=3)
    ready = harness.now_ms()
    for job in jobs:
        await job.result(10)
        counts = (await job.refresh()).counts
        assert (counts.attempt, counts.failures, counts.stalls, counts.handbacks) == (2, 0, 0, 1)
        assert ((await job.refresh()).claimed_at or 0) - ready < 1000


async def test_a_worker_that_waits_takes_over_within_a_second(harness: WorkerHarness) -> None:
    """Visible to others at once: they are woken, not left to look for themselves."""
    leaving = await harness.start("--grace", "0.2")
    job = await harness.program.wait.enqueue("subject")
    await harness.noted("subject")
    staying = await harness.start()

    leaving.terminate()
    await harness.noted("subject", 3)

    history = await job.history()
    returned = next(entry.at for entry in history if entry.verb == "return")
    claimed = (await job.refresh()).claimed_at or 0
    assert (await job.refresh()).worker == staying.id
    assert 0 <= claimed - returned < 1000
    harness.allow("subject")
    await job.result(10)


async def test_a_second_signal_cancels_now(harness: WorkerHarness) -> None:
    """Spec 4: there is no grace time; the jobs are returned."""
    worker = await harness.start("--grace", "60")
    jobs = [
        await harness.program.wait.enqueue("loop"),
        await harness.program.ignore_cancellation.enqueue("stubborn"),
        await harness.program.sleep_in_thread.enqueue("thread", 60),
        await harness.program.wait_in_process.enqueue("process"),
    ]
    for subject in ("loop", "stubborn", "thread", "process"):
        await harness.noted(subject)
    runners = worker.runners()

    worker.terminate()
    await eventually(lambda: "is stopping" in worker.log)
    watch = Stopwatch()
    worker.terminate()

    assert await worker.ended(10) == 0
    assert watch.seconds < 3
    for job in jobs:
        record = await job.refresh()
        assert (record.state, record.counts.failures, record.counts.handbacks) == ("pending", 0, 1)
    await all_gone(runners)


async def test_a_handler_that_turns_its_stop_into_an_error_spends_no_failure(harness: WorkerHarness) -> None:
    """Some libraries make an error of their own of a cancellation: it is still we who cut them off."""
    worker = await harness.start("--grace", "0.2")
    job = await harness.program.translate_cancel.using(retry=1).enqueue("subject")
    await harness.noted("subject")

    worker.terminate()
    assert await worker.ended(10) == 0

    record = await job.refresh()
    assert (record.state, record.counts.failures, record.counts.handbacks) == ("pending", 0, 1)


async def test_jobs_that_were_claimed_while_the_stop_was_asked_for_are_handed_back(harness: WorkerHarness) -> None:
    """rq #2079: the claim was on its way when the signal came."""
    worker = await harness.start(hook="sigterm_during_claim")
    jobs = await harness.enqueue_many(harness.program.record_run.call("ran", str(number)) for number in range(5))

    assert await worker.ended(10) == 0

    for job in jobs:
        record = await job.refresh()
        assert (record.state, record.counts.stalls, record.counts.failures) == ("pending", 0, 0)
    assert harness.notes("ran") == []


async def test_a_job_that_was_handed_over_while_the_stop_was_asked_for_is_handed_back(harness: WorkerHarness) -> None:
    """The push is still on its way: the worker asks for the claim that it left before it leaves itself."""
    worker = await harness.start(hook="sigterm_during_push")
    await harness.until_waiting(worker, "default")
    job = await harness.program.record_run.enqueue("ran", "it")

    assert await worker.ended(10) == 0

    record = await job.refresh()
    assert (record.state, record.counts.handbacks, record.counts.stalls) == ("pending", 1, 0)
    assert harness.notes("ran") == []


async def test_a_signal_to_every_process_of_a_worker_is_a_graceful_stop_too(harness: WorkerHarness) -> None:
    """Service managers signal the whole group: the runners leave it to their supervisor."""
    worker = await harness.start()
    kinds = {"loop": "wait", "process": "wait_in_process"}
    jobs = [await harness.rota.tasks.get(task).enqueue(subject) for subject, task in kinds.items()]
    for subject in kinds:
        await harness.noted(subject)

    for process in [psutil.Process(worker.pid), *psutil.Process(worker.pid).children(recursive=True)]:
        os.kill(process.pid, signal.SIGTERM)
    await eventually(lambda: "is stopping" in worker.log)
    for subject in kinds:
        harness.allow(subject)

    assert await worker.ended(10) == 0
    for job in jobs:
        record = await job.refresh()
        assert (record.state, record.counts.attempt) == ("completed", 1)


async def test_what_handlers_start_can_be_terminated_as_usual(harness: WorkerHarness) -> None:
    """Runners do not care for SIGTERM; their children must."""
    await harness.start()
    job = await harness.program.terminate_children.enqueue()

    assert await job.result(15) == [-signal.SIGTERM, -signal.SIGTERM]


@pytest.mark.requirement("S3-18")
async def test_a_job_that_may_run_only_once_is_not_handed_back(harness: WorkerHarness) -> None:
    """Once started, what ended it is recorded as failed."""
    worker = await harness.start("--grace", "0.2")
    job = await harness.program.wait.using(at_most_once=True).enqueue("subject")
    await harness.noted("subject")

    worker.terminate()
    await worker.ended(10)

    record = await job.refresh()
    assert (record.state, record.counts.attempt) == ("failed", 1)
    assert record.error is not None
    assert record.error.message


async def test_a_worker_can_be_stopped_while_it_starts(harness: WorkerHarness) -> None:
    worker = harness.launch()
    await eventually(lambda: bool(worker.runners()))

    worker.terminate()

    assert await worker.ended(10) in (0, -signal.SIGTERM)
