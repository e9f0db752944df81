"""The process that runs handlers dies; its supervisor lives, reports its jobs and replaces it."""

from __future__ import annotations

import os
import signal

import pytest

from rota import Job
from tests.eventually import eventually
from tests.worker.harness import Stopwatch, WorkerHarness, all_gone, failure


async def test_jobs_of_a_killed_runner_are_back_at_once(harness: WorkerHarness) -> None:
    """Spec 4: no lease has to run out. None of them is known to be the reason, so none is charged."""
    worker = await harness.start()
    (runner,) = worker.runners("loop")
    jobs = [await harness.program.wait.enqueue(f"job-{number}") for number in range(3)]
    for number in range(3):
        await harness.noted(f"job-{number}")

    os.kill(runner, signal.SIGKILL)
    watch = Stopwatch()

    async def are_back() -> bool:
        return all([(await job.refresh()).counts.crashes == 1 for job in jobs])

    await eventually(are_back, 3)
    assert watch.seconds < 1
    for number in range(3):
        harness.allow(f"job-{number}")
    for job in jobs:
        await job.result(10)
        counts = (await job.refresh()).counts
        assert (counts.attempt, counts.stalls, counts.failures, counts.handbacks) == (2, 0, 0, 1)
        (note,) = [entry.note for entry in await job.history() if entry.verb == "return"]
        assert note == "the process running this job and 2 others was killed by SIGKILL"
    assert worker.runners("loop") != [runner]
    assert worker.is_alive
    await eventually(lambda: not worker.runners("isolated"), 15)


@pytest.mark.timeout(300)
async def test_a_job_that_crashes_its_process_does_not_take_its_neighbours_down(harness: WorkerHarness) -> None:
    """All ten became dead letters, with four stalls each. Now its neighbours run again in isolation, uncharged."""
    worker = await harness.start()
    neighbours = [await harness.program.wait.enqueue(f"job-{number}") for number in range(9)]
    for number in range(9):
        await harness.noted(f"job-{number}")

    culprit = await harness.program.exit_process.enqueue()

    error = await failure(culprit, 120)
    assert (error.kind, error.type) == ("stall", "StallError")
    assert f"the process running this job exited with code 3, of worker {worker.id} (" in error.message
    record = await culprit.refresh()
    assert record.counts.stalls == 4
    assert record.reason == "its process died too often"
    for number in range(9):
        harness.allow(f"job-{number}")
    for number, job in enumerate(neighbours):
        assert await job.result(60) == f"job-{number}"
        counts = (await job.refresh()).counts
        assert (counts.stalls, counts.failures) == (0, 0)
        assert counts.attempt <= 4, "fewer jobs share a process after each crash"
    assert worker.is_alive


async def test_a_job_that_may_run_only_once_is_not_run_again_after_a_crash_beside_others(
    harness: WorkerHarness,
) -> None:
    """Whether or not it was the reason."""
    worker = await harness.start()
    once = await harness.program.wait.using(at_most_once=True).enqueue("once")
    other = await harness.program.wait.enqueue("other")
    await harness.noted("once")
    await harness.noted("other")

    os.kill(worker.runners("loop")[0], signal.SIGKILL)

    error = await failure(once)
    assert "the process running this job and 1 other was killed by SIGKILL" in error.message
    assert "its process died, and it may run only once" in error.message
    harness.allow("other")
    assert await other.result(20) == "other"
    assert harness.notes("once") == ["begin"]


async def test_a_killed_process_runner_takes_only_its_own_job_down(harness: WorkerHarness) -> None:
    worker = await harness.start()
    jobs = {subject: await harness.program.wait_in_process.enqueue(subject) for subject in ("first", "second")}
    pids = {subject: int((await harness.noted(subject))[0].split()[1]) for subject in jobs}

    os.kill(pids["first"], signal.SIGKILL)
    await harness.noted("first", 2)
    for subject in jobs:
        harness.allow(subject)

    assert [await job.result(10) for job in jobs.values()] == ["first", "second"]
    assert [(await job.refresh()).counts.stalls for job in jobs.values()] == [1, 0]
    assert worker.is_alive


async def test_a_runner_s_death_is_noticed_though_something_keeps_its_pipe_open(harness: WorkerHarness) -> None:
    """A process that a handler forked has inherited everything; it may not live on either."""
    worker = await harness.start()
    (runner,) = worker.runners("loop")
    job = await harness.program.keep_pipe_open.enqueue("subject")
    await harness.noted("subject")
    (child,) = harness.notes("family")

    os.kill(runner, signal.SIGKILL)
    watch = Stopwatch()

    async def is_back() -> bool:
        return (await job.refresh()).counts.stalls == 1

    await eventually(is_back, 5)
    assert watch.seconds < 1.5
    await all_gone([int(child)])


@pytest.mark.requirement("S4-34", "S4-35")
async def test_a_job_that_takes_every_worker_down_becomes_a_dead_letter(harness: WorkerHarness) -> None:
    """disque #95: `max_stalls` forgiven, then failed for good, with what is known."""
    worker = await harness.start()
    job = await harness.program.exit_process.using(max_stalls=2).enqueue()

    error = await failure(job, 20)

    record = await job.refresh()
    assert (error.kind, error.type) == ("stall", "StallError")
    assert (record.counts.attempt, record.counts.stalls, record.counts.failures) == (3, 3, 0)
    assert len(harness.notes("die")) == 3
    assert worker.is_alive
    assert await (await harness.program.add.enqueue(1, 2)).result(10) == 3


@pytest.mark.requirement("S4-35", "D-4")
async def test_stalls_do_not_eat_failures_nor_the_other_way_round(harness: WorkerHarness) -> None:
    """Two counters."""
    await harness.start()
    job = await harness.program.exit_or_fail.using(max_stalls=2, retry=3).enqueue("subject", "die fail die fail done")

    assert await job.result(30) == "done"

    counts = (await job.refresh()).counts
    assert (counts.attempt, counts.stalls, counts.failures) == (5, 2, 2)


async def test_a_program_that_no_longer_starts_loses_no_job_and_fills_no_machine(harness: WorkerHarness) -> None:
    """A deployment broke it: the supervisor tries again and again, one process at a time, and goes on when it works."""
    worker = await harness.start(concurrency=20)
    (runner,) = worker.runners("loop")
    harness.allow("broken-start")

    os.kill(runner, signal.SIGKILL)
    await eventually(lambda: "died (exit code" in worker.log)
    jobs: list[Job[int]] = []
    most = 0
    watch = Stopwatch()

    async def was_tried_three_times() -> bool:
        nonlocal most
        if len(jobs) < 50:
            jobs.append(await harness.program.add.enqueue(1, len(jobs)))
        most = max(most, len(worker.runners()))
        return worker.log.count("died (exit code") > 3

    await eventually(was_tried_three_times, 20)
    took = watch.seconds
    (harness.folder / "allowed-broken-start").unlink()

    assert [await job.result(15) for job in jobs] == [1 + number for number in range(len(jobs))]
    assert 0 < most <= 2
    assert took >= 2, "a pause lies between two tries"
    assert {(await job.refresh()).counts.stalls for job in jobs} == {0}
    await eventually(lambda: len(worker.runners("loop")) == 1)
