"""A worker, or its machine, is gone from one instant to the next."""

from __future__ import annotations

import psutil
import pytest

from rota import JobState
from tests.eventually import eventually
from tests.worker.harness import Stopwatch, WorkerHarness, all_gone

TASKS = ("wait", "wait_in_thread", "wait_in_process")
HANDLERS = {
    "wait": (),
    "sleep_in_thread": (60,),
    "block_loop": (60,),
    "hold_gil": (60,),
    "wait_in_process": (),
    "hold_gil_in_process": (60,),
}


@pytest.mark.requirement("S4-1", "S4-34", "S4-35", "S0-2", "S0-10", "S2-20")
async def test_all_jobs_of_a_killed_worker_run_elsewhere_within_six_seconds(harness: WorkerHarness) -> None:
    """Kue #391: on a quiet queue, in one pass, a stall for each, no failure."""
    victim = await harness.start(concurrency=30)
    tasks = [harness.rota.tasks.get(TASKS[number % 10 % 3 if number < 6 else 0]) for number in range(30)]
    jobs = [await task.enqueue(f"job-{number}") for number, task in enumerate(tasks)]
    for number in range(30):
        await harness.noted(f"job-{number}")
    survivor = await harness.start(concurrency=30)

    victim.kill()
    watch = Stopwatch()

    async def all_are_there() -> bool:
        records = [await job.refresh() for job in jobs]
        assert {(record.state, record.worker) for record in records} == {(JobState.PROCESSING, survivor.id)}
        return True

    await eventually(all_are_there, 8)
    assert watch.seconds < 6
    for number in range(30):
        harness.allow(f"job-{number}")
    reaped: set[int] = set()
    for job in jobs:
        await job.result(10)
        counts = (await job.refresh()).counts
        assert (counts.attempt, counts.stalls, counts.failures) == (2, 1, 0)
        reaped |= {entry.at for entry in await job.history() if entry.verb == "reap"}
    assert max(reaped) - min(reaped) < 100, "not one pass"


@pytest.mark.requirement("S0-2", "S0-3", "S1-13")
async def test_a_worker_that_starts_later_finds_what_a_killed_one_left(harness: WorkerHarness) -> None:
    """No worker was running when it died; nothing is lost."""
    victim = await harness.start()
    job = await harness.program.wait.enqueue("subject")
    await harness.noted("subject")
    victim.kill()

    await harness.start()
    harness.allow("subject")

    assert await job.result(15) == "subject"
    assert (await job.refresh()).counts.stalls == 1


@pytest.mark.parametrize("task", HANDLERS)
async def test_runners_die_with_their_supervisor_whatever_they_are_doing(harness: WorkerHarness, task: str) -> None:
    """Spec 4: no supervisor is left to store the outcome; in C code, and while holding the GIL, too."""
    victim = await harness.start()
    await harness.rota.tasks.get(task).enqueue("subject", *HANDLERS[task])
    await harness.noted("subject")
    runners = victim.runners()
    assert runners

    victim.kill()

    await all_gone(runners, 2)
    assert "end" not in harness.notes("subject")


async def test_runners_that_are_just_starting_die_with_their_supervisor(harness: WorkerHarness) -> None:
    """Before they could ask the system for that."""
    victim = harness.launch("--processes", "3")
    await eventually(lambda: len(victim.runners()) == 3, 20)
    runners = victim.runners()

    victim.kill()

    await all_gone(runners, 5)


async def test_what_handlers_started_dies_with_their_supervisor(harness: WorkerHarness) -> None:
    """The runner is killed by the system, and cannot see to it: its process group is ended for it."""
    victim = await harness.start()
    await harness.program.keep_pipe_open.enqueue("subject")
    await harness.noted("subject")
    children = [int(pid) for pid in harness.notes("family")]
    assert children

    victim.kill()

    await all_gone([*children, *victim.runners()], 3)


async def test_a_worker_that_stops_in_good_order_leaves_no_process_behind(harness: WorkerHarness) -> None:
    worker = await harness.start()
    family = [child.pid for child in psutil.Process(worker.pid).children(recursive=True)]
    assert len(family) > len(worker.runners()), "no orphan killer is running"

    worker.terminate()

    assert await worker.ended(10) == 0
    await all_gone(family, 2)
