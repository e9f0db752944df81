"""Workers are woken, they do not poll; and a lost wake-up delays a job only briefly."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import cast

import pytest

from rota.client.session import sessions_of
from tests.eventually import eventually
from tests.servers import OwnServers
from tests.worker.harness import Stopwatch, WorkerHarness


@pytest.mark.requirement("S3-6", "S0-7")
async def test_a_job_starts_when_it_is_enqueued_not_at_the_next_look(harness: WorkerHarness) -> None:
    """A push. An idle worker looks every two seconds; ten jobs in a row start within a moment."""
    await harness.start()
    delays: list[int] = []
    for _ in range(10):
        job = await harness.program.sleep.enqueue(0)
        await job.result(10)
        record = await job.refresh()
        delays.append((record.claimed_at or 0) - record.enqueued_at)

    assert statistics.median(delays) < 100
    assert max(delays) < 1000


async def test_a_worker_that_waits_gets_a_job_with_its_wake_up(harness: WorkerHarness) -> None:
    """The enqueue carries out the claim that an idle worker has left: one script, so one time for both.

    Nothing is pushed to a worker that has not polled for 2.5 s, as happens on a busy machine, so there are ten tries.
    """
    worker = await harness.start()
    with harness.redis() as client:
        for number in range(10):
            subject = f"subject-{number}"
            await eventually(lambda: str(client.zrange(harness.key("idle"), 0, -1)).startswith(f"[b'{worker.id} "))
            job = await harness.program.wait.enqueue(subject)
            await eventually(lambda subject=subject: harness.notes(subject) == ["begin"])
            record = await job.refresh()
            assert (record.state, record.worker) == ("processing", worker.id)
            harness.allow(subject)
            assert await job.result(10) == subject
            assert harness.notes(subject) == ["begin", "end"]
            if record.claimed_at == record.enqueued_at:
                return
    pytest.fail("no job was pushed")


async def test_a_push_that_the_store_knows_nothing_of_starts_nothing(harness: WorkerHarness) -> None:
    """A worker believes a push that brings the claim it left, and looks for itself after any other."""
    worker = await harness.start()
    job = await harness.program.wait.using(delay=3600).enqueue("subject")
    with harness.redis() as client:
        record = cast(bytes, client.hget(harness.key("jobs"), str(job.run)))
        inbox = f"{sessions_of(harness.rota).keys.inbox_prefix}{worker.id}"
        client.publish(inbox, f"job default 999 1.forged {job.run} \n".encode() + record)
        client.publish(inbox, b"said by a later version")

    assert await (await harness.program.add.enqueue(1, 2)).result(10) == 3
    assert harness.notes("subject") == []


async def test_a_worker_that_stops_takes_back_the_claim_it_left(harness: WorkerHarness) -> None:
    worker = await harness.start()
    with harness.redis() as client:
        await eventually(lambda: client.zcard(harness.key("idle")) == 1)
        worker.terminate()
        await worker.ended()

        assert client.zcard(harness.key("idle")) == 0


@pytest.mark.requirement("S2-21")
async def test_a_result_is_pushed_to_a_waiting_client(harness: WorkerHarness) -> None:
    """A client that waits for a result does not poll either."""
    await harness.start()
    watch = Stopwatch()
    for _ in range(10):
        await (await harness.program.sleep.enqueue(0)).result(10)

    assert watch.seconds < 2.5


async def test_an_idle_worker_sends_less_than_a_command_a_second(
    own_server: OwnServers, namespace: str, tmp_path: Path
) -> None:
    """Idle is cheap. Commands inside scripts are the server's own business."""
    server = own_server()
    with WorkerHarness(server, namespace, tmp_path) as harness:
        await harness.start()
        await (await harness.program.sleep.enqueue(0)).result(10)
        await harness.rota.close()
        with server.client() as client:
            before = _sent(client.info("commandstats"))
            watch = Stopwatch()
            await eventually(lambda: watch.seconds > 4, 10)
            sent = _sent(client.info("commandstats")) - before

        assert 2 <= sent <= 6


def _sent(stats: object) -> int:
    """Calls that came from clients: scripts, and everything that no script of Rota calls."""
    scripts = ("eval", "evalsha", "eval_ro", "evalsha_ro")
    by_clients = (*scripts, "ping", "subscribe", "client", "hello", "sadd", "get", "script", "config")
    names = cast(dict[str, dict[str, int]], stats)
    return sum(
        stat["calls"] for name, stat in names.items() if name.removeprefix("cmdstat_").split("|")[0] in by_clients
    )


@pytest.mark.requirement("S3-5", "S3-13")
async def test_a_lost_wake_up_delays_a_job_no_longer_than_two_seconds(harness: WorkerHarness) -> None:
    """Kue #130: the subscription is cut, and the job comes in that very moment."""
    worker = await harness.start()
    with harness.redis() as client:
        for _ in range(3):
            client.client_kill_filter(_type="pubsub")
            job = await harness.program.sleep.enqueue(0)
            await harness.until(job, "completed", 4)
            record = await job.refresh()
            assert (record.claimed_at or 0) - record.enqueued_at < 2200
    assert worker.is_alive


async def test_a_worker_that_is_not_woken_polls(harness: WorkerHarness) -> None:
    """Kue #130: the store has forgotten that this worker waits; the queue itself is the truth."""
    await harness.start()
    await (await harness.program.sleep.enqueue(0)).result(10)
    with harness.redis() as client:
        watch = Stopwatch()

        def is_forgotten_for_a_while() -> bool:
            client.delete(harness.key("idle"))
            return watch.seconds > 1.2

        await eventually(is_forgotten_for_a_while)
        job = await harness.program.sleep.enqueue(0)

        await harness.until(job, "completed", 5)

    record = await job.refresh()
    assert (record.claimed_at or 0) - record.enqueued_at < 2200


@pytest.mark.requirement("S3-13")
async def test_a_worker_listens_again_after_its_subscription_was_cut(harness: WorkerHarness) -> None:
    """Re-established without a restart."""
    await harness.start()
    with harness.redis() as client:
        client.client_kill_filter(_type="pubsub")
        channel = f"{sessions_of(harness.rota).keys.inbox_prefix}{harness.workers[0].id}"
        await eventually(lambda: dict(client.pubsub_numsub(channel)).get(channel.encode()) == 1)
    job = await harness.program.sleep.enqueue(0)
    await job.result(10)

    record = await job.refresh()

    assert (record.claimed_at or 0) - record.enqueued_at < 500


async def test_a_worker_whose_every_connection_is_cut_goes_on(harness: WorkerHarness) -> None:
    """Kue #692: the cloud closes idle connections daily."""
    worker = await harness.start()
    running = await harness.program.wait.enqueue("running")
    await harness.noted("running")
    with harness.redis() as client:
        for _ in range(3):
            client.client_kill_filter(_type="normal", skipme=True)
            client.client_kill_filter(_type="pubsub")
            assert await (await harness.program.add.enqueue(1, 2)).result(5) == 3
    harness.allow("running")

    assert await running.result(5) == "running"
    assert (await running.refresh()).counts.attempt == 1
    assert worker.is_alive


async def test_jobs_that_come_together_wake_as_many_workers_as_are_needed(harness: WorkerHarness) -> None:
    """One slot each: three jobs start at once on three workers."""
    await harness.start_together(3, concurrency=1)
    jobs = await harness.enqueue_many(harness.program.wait.call(f"job-{number}") for number in range(3))

    for number in range(3):
        await harness.noted(f"job-{number}")

    records = [await job.refresh() for job in jobs]
    assert len({record.worker for record in records}) == 3
    assert max((record.claimed_at or 0) - record.enqueued_at for record in records) < 1000
    for number in range(3):
        harness.allow(f"job-{number}")
