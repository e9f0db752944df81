"""How a worker is asked to leave from afar: it takes nothing more, finishes what it runs, and goes with code 0."""

from __future__ import annotations

import pytest

from rota import WorkerNotFound, WrongState
from rota.client.session import sessions_of
from tests.eventually import eventually
from tests.worker.harness import WorkerHarness


async def test_a_drained_worker_finishes_what_it_runs_takes_nothing_more_and_leaves(harness: WorkerHarness) -> None:
    worker = await harness.start("--grace", "0.1")
    kinds = {"loop": "wait", "thread": "wait_in_thread", "process": "wait_in_process"}
    running = [await harness.rota.tasks.get(task).enqueue(subject) for subject, task in kinds.items()]
    for subject in kinds:
        await harness.noted(subject)
    info = await harness.info(worker)

    assert await harness.rota.drain(info.id) == info.id
    assert await harness.rota.drain(info.id) == info.id, "asked again, nothing changes"
    assert (await harness.info(worker)).info["state"] == "draining"
    await eventually(lambda: "asked to drain" in worker.log)
    waiting = await harness.program.record_run.enqueue("ran", "waiting")
    assert worker.is_alive, "the grace time is for signals"
    for subject in kinds:
        harness.allow(subject)

    assert await worker.ended(10) == 0
    assert [await job.state() for job in running] == ["completed"] * 3
    assert await waiting.state() == "pending"
    assert (await harness.info(worker)).info["state"] == "stopped"
    with pytest.raises(WrongState):
        await harness.rota.drain(info.id)


async def test_a_worker_that_missed_the_notification_learns_it_from_its_next_registration(
    harness: WorkerHarness,
) -> None:
    worker = await harness.start()
    info = await harness.info(worker)
    with harness.redis() as client:
        client.hset(sessions_of(harness.rota).keys.shared("draining"), info.id, "operator")
        client.client_kill_filter(_type="pubsub")

    assert await worker.ended(10) == 0


async def test_another_worker_of_the_same_name_is_not_meant(harness: WorkerHarness) -> None:
    first, second = await harness.start("--name", "blue"), await harness.start("--name", "green")
    ids = [(await harness.info(worker)).id for worker in (first, second)]

    assert await harness.rota.drain("blue") == ids[0]
    assert await first.ended(10) == 0
    again = await harness.start("--name", "blue")

    assert (await harness.info(again)).info["state"] != "draining"
    assert again.is_alive
    assert second.is_alive
    with pytest.raises(WorkerNotFound):
        await harness.rota.drain("red")


async def test_a_drain_that_is_withdrawn_in_time_changes_nothing(harness: WorkerHarness) -> None:
    worker = await harness.start(concurrency=1)
    running = await harness.program.wait.enqueue("running")
    await harness.noted("running")
    await harness.rota.drain(worker.id)
    await eventually(lambda: "asked to drain" in worker.log)
    waiting = await harness.program.record_run.enqueue("ran", "waiting")

    assert await harness.rota.undrain(worker.id) == worker.id
    assert await harness.rota.undrain(worker.id) == worker.id, "asked again, nothing changes"
    await eventually(lambda: "claims again" in worker.log)
    harness.allow("running")

    await waiting.result(timeout=30)
    assert (await running.state(), (await running.refresh()).counts.attempt) == ("completed", 1)
    assert worker.is_alive
    assert (await harness.info(worker)).info["state"] in ("active", "waiting")


async def test_a_worker_learns_with_its_next_registration_that_a_drain_was_withdrawn(harness: WorkerHarness) -> None:
    worker = await harness.start(concurrency=1)
    await harness.program.wait.enqueue("running")
    await harness.noted("running")
    await harness.rota.drain(worker.id)
    await eventually(lambda: "asked to drain" in worker.log)

    with harness.redis() as client:
        client.hdel(sessions_of(harness.rota).keys.shared("draining"), worker.id)
    await eventually(lambda: "claims again" in worker.log, 30)

    harness.allow("running")
    assert worker.is_alive


async def test_a_drain_cannot_be_withdrawn_from_a_worker_that_has_drained(harness: WorkerHarness) -> None:
    worker = await harness.start()
    await harness.rota.drain(worker.id)
    assert await worker.ended(30) == 0

    with pytest.raises(WrongState):
        await harness.rota.undrain(worker.id)
    with pytest.raises(WorkerNotFound):
        await harness.rota.undrain("red")


async def test_the_jobs_of_a_worker_that_dies_while_it_drains_run_elsewhere(harness: WorkerHarness) -> None:
    worker = await harness.start(concurrency=1)
    running = await harness.program.wait.enqueue("running")
    await harness.noted("running")
    await harness.rota.drain(worker.id)
    await eventually(lambda: "asked to drain" in worker.log)
    worker.kill()
    other = await harness.start(concurrency=1)
    harness.allow("running")

    await running.result(timeout=60)
    assert other.is_alive
