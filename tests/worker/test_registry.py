"""What is known of workers: that they live, what they run, and that they are gone."""

from __future__ import annotations

import os

from tests.eventually import eventually
from tests.worker.crew import Crew


async def test_a_worker_is_listed_alive_with_its_queues_and_what_it_runs(crew: Crew) -> None:
    """S2-22, S2-23, S3-14, S4-25: from its first moment, and with the jobs it has."""
    worker = await crew.start(queues="default,mail", concurrency=7)
    announced = await crew.info(worker)
    job = await crew.program.wait.enqueue("running")
    await crew.noted("running")

    async def is_shown() -> bool:
        info = await crew.info(worker)
        return [shown["job"] for shown in info.info["running"]] == [job.id]

    assert (announced.status, announced.info["queues"], announced.info["slots"]) == ("ALIVE", ["default", "mail"], 7)
    assert announced.info["pid"] == worker.pid != os.getpid()
    await eventually(is_shown, 7)
    info = (await crew.info(worker)).info
    assert (info["busy"], info["running"][0]["task"], info["running"][0]["attempt"]) == (1, "wait", 1)
    assert info["rss_bytes"] > 0
    assert len(info["runners"]) == 1
    crew.allow("running")


async def test_a_worker_that_stopped_says_so_and_is_still_listed(crew: Crew) -> None:
    """S2-23, S3-14: keep recent ones; expiry would hide them."""
    worker = await crew.start()
    worker.terminate()
    await worker.ended()

    info = await crew.info(worker)

    assert (info.status, info.info["state"]) == ("DEAD", "stopped")


async def test_a_killed_worker_is_shown_dead_after_ten_seconds(crew: Crew) -> None:
    """S2-22, S2-23: ALIVE while it was seen in the last 10 s, else DEAD."""
    worker = await crew.start()
    worker.kill()
    assert (await crew.info(worker)).status == "ALIVE"

    with crew.redis() as client:
        client.zincrby(crew.rota.keys.shared("seen"), -10_000, worker.id)  # ten seconds pass

    info = await crew.info(worker)
    assert info.status == "DEAD"
    assert info.silent_ms >= 10_000


async def test_the_record_of_a_job_says_who_ran_it(crew: Crew) -> None:
    """K-10: worker, start, end and history."""
    worker = await crew.start()
    job = await crew.program.nap.enqueue(0.1)
    await job.result(10)

    record = await job.refresh()

    assert record.worker == worker.id
    assert record.claimed_at is not None
    assert record.ended_at is not None
    assert record.enqueued_at <= record.claimed_at <= record.ended_at - 100
    assert [(entry.verb, entry.worker) for entry in await job.history()] == [
        ("enqueue", ""), ("claim", worker.id), ("complete", worker.id),
    ]  # fmt: skip
