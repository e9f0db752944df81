"""`@rota.task(per_worker=2)`: so many of its jobs at once in one worker, and nothing else waits for them."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from rota import Rota
from rota.errors import InvalidOption
from rota.worker.slots_per_task import TaskSlots
from tests.eventually import eventually
from tests.worker.harness import WorkerHarness


def _running(harness: WorkerHarness, subject: str) -> int:
    notes = harness.notes(subject)
    return notes.count("begin") - notes.count("end")


@pytest.mark.requirement("S1-6")
async def test_no_more_of_its_jobs_run_at_once_and_other_tasks_of_the_queue_do_not_wait(
    harness: WorkerHarness,
) -> None:
    """Fifty jobs of the full task are before them in the queue."""
    await harness.start(concurrency=5)
    limited = await harness.enqueue_many(harness.program.wait_limited.call("many") for _ in range(50))
    await harness.noted("many", 2)

    others = await harness.enqueue_many(harness.program.record_run.call("other", str(n)) for n in range(20))
    await asyncio.gather(*(job.result(20) for job in others))

    assert _running(harness, "many") == 2
    assert (await harness.rota.queue().counts())["processing"] == 2, "no job is held that cannot start"
    harness.allow("limited")
    await asyncio.gather(*(job.result(20) for job in limited))
    assert {(await job.refresh()).counts.handbacks for job in limited} == {0}


async def test_jobs_behind_a_thousand_others_are_reached(harness: WorkerHarness) -> None:
    await harness.enqueue_many(harness.program.wait_limited.call("many") for _ in range(3_000))
    other = await harness.program.record_run.enqueue("other", "last")

    await harness.start(concurrency=5)

    await other.result(20)
    assert _running(harness, "many") == 2
    await harness.rota.queue().pause()
    harness.allow("limited")


async def test_two_workers_run_twice_as_many(harness: WorkerHarness) -> None:
    """What one of them has no room for goes to the other at once, and neither is asked again and again."""
    await harness.start_together(2)
    await harness.enqueue_many(harness.program.wait_limited.call("many") for _ in range(10))

    await eventually(lambda: _running(harness, "many") == 4)

    harness.allow("limited")
    await eventually(lambda: harness.notes("many").count("end") == 10)


@pytest.mark.requirement("S1-6")
async def test_one_at_a_time_is_never_two_and_never_none(harness: WorkerHarness) -> None:
    """Jobs of two priorities, and retried ones among them: all of them run, one after another."""
    await harness.start("--queues", "default,other", concurrency=8)
    rest = harness.program.rest_alone
    jobs = await harness.enqueue_many(
        rest.using(queue=("default", "other")[n % 2], priority=(0, -10)[n % 3 == 0]).call("rest") for n in range(60)
    )
    late = await rest.using(delay=timedelta(milliseconds=50)).enqueue("rest")

    await asyncio.gather(*(job.result(30) for job in [*jobs, late]))

    assert harness.notes("rest") == ["begin", "end"] * 61


async def test_a_killed_worker_leaves_no_job_of_the_task_behind(harness: WorkerHarness) -> None:
    first = await harness.start(concurrency=5)
    jobs = await harness.enqueue_many(harness.program.wait_limited.call("many") for _ in range(4))
    await harness.noted("many", 2)
    first.kill()
    harness.allow("limited")
    await harness.start(concurrency=5)

    await asyncio.gather(*(job.result(30) for job in jobs))


@pytest.mark.parametrize("given", [0, -1, 1.5, "2", True, 10_001])
def test_anything_but_a_number_of_jobs_is_refused(given: object) -> None:
    rota = Rota()

    with pytest.raises(InvalidOption, match=r"per_worker.*whole number from 1 to 10,000"):

        @rota.task(per_worker=given)  # type: ignore[arg-type,call-overload]
        async def encode() -> None: ...

    assert len(rota.tasks) == 0


def test_a_claim_names_only_the_tasks_that_it_could_fill() -> None:
    slots = TaskSlots({b"encode": 2, b"mail": 20})
    assert slots.claim_words(2, 0) == ""
    assert slots.claim_words(3, 7) == "7 encode=2"

    assert slots.take(b"encode")
    assert slots.take(b"encode")
    assert not slots.take(b"encode")
    assert slots.take(b"anything else")

    assert slots.claim_words(1, 0) == "0 encode=0"
    assert not slots.has_room_for(1)
    assert not slots.take_freed()
    slots.release(b"encode")
    assert slots.take_freed()
    assert slots.has_room_for(1)
