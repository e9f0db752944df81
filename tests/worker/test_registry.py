"""What is known of workers: that they live, what they run, and that they are gone."""

from __future__ import annotations

import os

import pytest

from rota.client.session import sessions_of
from tests.eventually import eventually
from tests.worker.harness import WorkerHarness


@pytest.mark.requirement("S2-22", "S2-23", "S3-14", "S4-25")
async def test_a_worker_is_listed_alive_with_its_queues_and_what_it_runs(harness: WorkerHarness) -> None:
    """From its first moment, and with the jobs it has."""
    worker = await harness.start(queues="default,mail", concurrency=7, hook="frequent_registration")
    registered = await harness.info(worker)
    job = await harness.program.wait.enqueue("running")
    await harness.noted("running")

    async def is_shown() -> bool:
        info = await harness.info(worker)
        return [shown["job"] for shown in info.info["running"]] == [job.id]

    assert (registered.status, registered.info["queues"], registered.info["slots"]) == ("ALIVE", ["default", "mail"], 7)
    assert registered.info["pid"] == worker.pid != os.getpid()
    await eventually(is_shown, 7)
    info = (await harness.info(worker)).info
    assert (info["busy"], info["running"][0]["task"], info["running"][0]["attempt"]) == (1, "wait", 1)
    assert info["rss_bytes"] > 0
    assert len(info["runners"]) == 1
    harness.allow("running")


async def test_the_workers_of_a_new_version_mark_its_deploy_once(harness: WorkerHarness) -> None:
    first, second = [await harness.start(environment={"ROTA_CODE_VERSION": "v42"}) for _ in range(2)]

    (mark,) = await harness.program.rota.annotations.list()

    assert (mark.kind, mark.version, mark.text, mark.by) == ("deploy", "v42", "deploy v42", "worker")
    assert {(await harness.info(worker)).info["code_version"] for worker in (first, second)} == {"v42"}


@pytest.mark.requirement("S2-23", "S3-14")
async def test_a_worker_that_stopped_says_so_and_is_still_listed(harness: WorkerHarness) -> None:
    """Keep recent ones; expiry would hide them."""
    worker = await harness.start()
    worker.terminate()
    await worker.ended()

    info = await harness.info(worker)

    assert (info.status, info.info["state"]) == ("DEAD", "stopped")


@pytest.mark.requirement("S3-13", "S3-14")
async def test_a_worker_that_was_cut_off_is_reactivating_until_it_has_looked_again(harness: WorkerHarness) -> None:
    """Its connection for wake-ups is cut: it subscribes again, and an event says so."""
    worker = await harness.start()
    with harness.redis() as client:
        await eventually(lambda: client.pubsub_numsub(harness.inbox(worker))[0][1], 20)
        client.client_kill_filter(_type="pubsub")

        await eventually(lambda: harness.states(worker) == ["waiting", "reactivating", "waiting"], 20)
    assert await (await harness.program.add.enqueue(1, 2)).result(20) == 3


@pytest.mark.requirement("S3-14")
async def test_a_worker_whose_claims_fail_is_in_error_and_says_why_until_they_succeed(harness: WorkerHarness) -> None:
    with harness.redis() as client:
        client.set(harness.key("pending", "damaged"), "this should be a sorted set", ex=600)
        worker = await harness.start(queues="damaged,default", hook="frequent_registration")
        await eventually(lambda: harness.states(worker)[-1] == "error", 20)
        info = (await harness.info(worker)).info
        assert info["state"] == "error"
        assert "queue damaged" in info["error"]

        client.delete(harness.key("pending", "damaged"))

        await eventually(lambda: harness.states(worker)[-2:] == ["error", "waiting"], 20)
    assert (await harness.info(worker)).info["error"] == ""


@pytest.mark.requirement("S2-22", "S2-23")
async def test_a_killed_worker_is_shown_dead_after_ten_seconds(harness: WorkerHarness) -> None:
    """ALIVE while it was seen in the last 10 s, else DEAD."""
    worker = await harness.start()
    worker.kill()
    assert (await harness.info(worker)).status == "ALIVE"

    with harness.redis() as client:
        client.zincrby(sessions_of(harness.rota).keys.shared("worker_seen"), -10_000, worker.id)  # ten seconds pass

    info = await harness.info(worker)
    assert info.status == "DEAD"
    assert info.silent_ms >= 10_000


@pytest.mark.requirement("K-10")
async def test_the_record_of_a_job_says_who_ran_it(harness: WorkerHarness) -> None:
    """Worker, start, end and history."""
    worker = await harness.start()
    job = await harness.program.sleep.enqueue(0.1)
    await job.result(10)

    record = await job.refresh()

    assert record.worker == worker.id
    assert record.claimed_at is not None
    assert record.ended_at is not None
    assert record.enqueued_at <= record.claimed_at <= record.ended_at - 100
    assert [(entry.verb, entry.worker) for entry in await job.history()] == [
        ("enqueue", ""),
        ("claim", worker.id),
        ("complete", worker.id),
    ]
