"""The process that runs handlers dies; its supervisor lives and sees to it."""

from __future__ import annotations

import os
import signal

from rota import Job
from tests.eventually import eventually
from tests.worker.crew import Crew, Stopwatch, all_gone, failure


async def test_jobs_of_a_killed_runner_are_back_at_once(crew: Crew) -> None:
    """Spec 4: no lease has to run out; a stall is counted, no failure."""
    worker = await crew.start()
    (runner,) = worker.runners("loop")
    jobs = [await crew.program.wait.enqueue(f"job-{number}") for number in range(3)]
    for number in range(3):
        await crew.noted(f"job-{number}")

    os.kill(runner, signal.SIGKILL)
    watch = Stopwatch()

    async def are_back() -> bool:
        return all([(await job.refresh()).counts.stalls == 1 for job in jobs])

    await eventually(are_back, 3)
    assert watch.seconds < 1
    for number in range(3):
        crew.allow(f"job-{number}")
    for job in jobs:
        await job.result(10)
        counts = (await job.refresh()).counts
        assert (counts.attempt, counts.stalls, counts.failures) == (2, 1, 0)
    assert worker.runners("loop") != [runner]
    assert worker.is_alive


async def test_a_killed_process_runner_takes_only_its_own_job_down(crew: Crew) -> None:
    worker = await crew.start()
    jobs = {subject: await crew.program.wait_in_process.enqueue(subject) for subject in ("first", "second")}
    pids = {subject: int((await crew.noted(subject))[0].split()[1]) for subject in jobs}

    os.kill(pids["first"], signal.SIGKILL)
    await crew.noted("first", 2)
    for subject in jobs:
        crew.allow(subject)

    assert [await job.result(10) for job in jobs.values()] == ["first", "second"]
    assert [(await job.refresh()).counts.stalls for job in jobs.values()] == [1, 0]
    assert worker.is_alive


async def test_a_runner_s_death_is_noticed_though_something_keeps_its_pipe_open(crew: Crew) -> None:
    """A process that a handler forked has inherited everything; it may not live on either."""
    worker = await crew.start()
    (runner,) = worker.runners("loop")
    job = await crew.program.keep_pipe_open.enqueue("subject")
    await crew.noted("subject")
    (child,) = crew.notes("family")

    os.kill(runner, signal.SIGKILL)
    watch = Stopwatch()

    async def is_back() -> bool:
        return (await job.refresh()).counts.stalls == 1

    await eventually(is_back, 5)
    assert watch.seconds < 1.5
    await all_gone([int(child)])


async def test_a_job_that_takes_every_worker_down_becomes_a_dead_letter(crew: Crew) -> None:
    """S4-34, S4-35, disque #95: `max_stalls` forgiven, then failed for good, with what is known."""
    worker = await crew.start()
    job = await crew.program.die.using(max_stalls=2).enqueue()

    error = await failure(job, 20)

    record = await job.refresh()
    assert (error.kind, error.type) == ("stall", "StallError")
    assert (record.counts.attempt, record.counts.stalls, record.counts.failures) == (3, 3, 0)
    assert len(crew.notes("die")) == 3
    assert worker.is_alive
    assert await (await crew.program.add.enqueue(1, 2)).result(10) == 3


async def test_stalls_do_not_eat_failures_nor_the_other_way_round(crew: Crew) -> None:
    """S4-35, D-4: two counters."""
    await crew.start()
    job = await crew.program.die_or_fail.using(max_stalls=2, retry=3).enqueue("subject", "die fail die fail done")

    assert await job.result(30) == "done"

    counts = (await job.refresh()).counts
    assert (counts.attempt, counts.stalls, counts.failures) == (5, 2, 2)


async def test_a_program_that_no_longer_starts_loses_no_job_and_fills_no_machine(crew: Crew) -> None:
    """A deployment broke it: the supervisor tries again and again, one process at a time, and goes on when it works."""
    worker = await crew.start(concurrency=20)
    (runner,) = worker.runners("loop")
    crew.allow("broken-start")

    os.kill(runner, signal.SIGKILL)
    await eventually(lambda: "died (exit code" in worker.log)
    jobs: list[Job[int]] = []
    most = 0
    watch = Stopwatch()

    async def was_tried_three_times() -> bool:
        nonlocal most
        if len(jobs) < 50:
            jobs.append(await crew.program.add.enqueue(1, len(jobs)))
        most = max(most, len(worker.runners()))
        return worker.log.count("died (exit code") > 3

    await eventually(was_tried_three_times, 20)
    took = watch.seconds
    (crew.folder / "allowed-broken-start").unlink()

    assert [await job.result(15) for job in jobs] == [1 + number for number in range(len(jobs))]
    assert 0 < most <= 2
    assert took >= 2, "a pause lies between two tries"
    assert {(await job.refresh()).counts.stalls for job in jobs} == {0}
    await eventually(lambda: len(worker.runners("loop")) == 1)
