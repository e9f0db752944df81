"""How a worker is asked to leave from afar: it takes nothing more, finishes what it runs, and goes with code 0."""

from __future__ import annotations

import pytest

from rota import WorkerNotFound, WrongState
from tests.eventually import eventually
from tests.worker.crew import Crew


async def test_a_drained_worker_finishes_what_it_runs_takes_nothing_more_and_leaves(crew: Crew) -> None:
    worker = await crew.start("--grace", "0.1")
    kinds = {"loop": "wait", "thread": "wait_in_thread", "process": "wait_in_process"}
    running = [await crew.rota.tasks.get(task).enqueue(subject) for subject, task in kinds.items()]
    for subject in kinds:
        await crew.noted(subject)
    info = await crew.info(worker)

    assert await crew.rota.drain(info.id) == info.id
    assert await crew.rota.drain(info.id) == info.id, "asked again, nothing changes"
    assert (await crew.info(worker)).info["state"] == "draining"
    await eventually(lambda: "asked to drain" in worker.log)
    waiting = await crew.program.order.enqueue("ran", "waiting")
    assert worker.is_alive, "the grace time is for signals"
    for subject in kinds:
        crew.allow(subject)

    assert await worker.ended(10) == 0
    assert [await job.state() for job in running] == ["completed"] * 3
    assert await waiting.state() == "pending"
    assert (await crew.info(worker)).info["state"] == "stopped"
    with pytest.raises(WrongState):
        await crew.rota.drain(info.id)


async def test_a_worker_that_did_not_hear_of_it_is_told_with_its_next_sign_of_life(crew: Crew) -> None:
    worker = await crew.start()
    info = await crew.info(worker)
    with crew.redis() as client:
        client.sadd(crew.rota.keys.shared("drains"), info.id)
        client.client_kill_filter(_type="pubsub")

    assert await worker.ended(10) == 0


async def test_another_worker_of_the_same_name_is_not_meant(crew: Crew) -> None:
    first, second = await crew.start("--name", "blue"), await crew.start("--name", "green")
    ids = [(await crew.info(worker)).id for worker in (first, second)]

    assert await crew.rota.drain("blue") == ids[0]
    assert await first.ended(10) == 0
    again = await crew.start("--name", "blue")

    assert (await crew.info(again)).info["state"] != "draining"
    assert again.is_alive
    assert second.is_alive
    with pytest.raises(WorkerNotFound):
        await crew.rota.drain("red")
