"""Workers are woken, they do not poll; and a wake-up that is lost delays nobody for long."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import cast

import pytest

from tests.eventually import eventually
from tests.servers import OwnServers
from tests.worker.crew import Crew, Stopwatch


async def test_a_job_starts_when_it_is_enqueued_not_at_the_next_look(crew: Crew) -> None:
    """S3-6, S0-7: a push. An idle worker looks every two seconds; ten jobs in a row start within a moment."""
    await crew.start()
    delays: list[int] = []
    for _ in range(10):
        job = await crew.program.nap.enqueue(0)
        await job.result(10)
        record = await job.refresh()
        delays.append((record.claimed_at or 0) - record.enqueued_at)

    assert statistics.median(delays) < 100
    assert max(delays) < 1000


async def test_a_worker_that_waits_gets_a_job_with_its_wake_up(crew: Crew) -> None:
    """It has left its next claim: the enqueue carries that out, so the job is processing when the call returns."""
    worker = await crew.start()
    with crew.redis() as client:
        await eventually(lambda: str(client.zrange(crew.key("idle"), 0, -1)).startswith(f"[b'{worker.id} "))

    job = await crew.program.wait.enqueue("subject")
    record = await job.refresh()
    assert (record.state, record.worker) == ("processing", worker.id)

    crew.allow("subject")
    assert await job.result(10) == "subject"
    assert crew.notes("subject") == ["begin", "end"]


async def test_a_push_that_the_store_knows_nothing_of_starts_nothing(crew: Crew) -> None:
    """A worker believes a push that brings the claim it left, and looks for itself after any other."""
    worker = await crew.start()
    job = await crew.program.wait.using(delay=3600).enqueue("subject")
    with crew.redis() as client:
        record = cast(bytes, client.hget(crew.key("jobs"), str(job.run)))
        inbox = f"{crew.rota.keys.inbox_prefix}{worker.id}"
        client.publish(inbox, f"job default 999 1.forged {job.run} \n".encode() + record)
        client.publish(inbox, b"said by a later version")

    assert await (await crew.program.add.enqueue(1, 2)).result(10) == 3
    assert crew.notes("subject") == []


async def test_a_worker_that_stops_takes_back_the_claim_it_left(crew: Crew) -> None:
    worker = await crew.start()
    with crew.redis() as client:
        await eventually(lambda: client.zcard(crew.key("idle")) == 1)
        worker.terminate()
        await worker.ended()

        assert client.zcard(crew.key("idle")) == 0


async def test_a_result_is_pushed_to_whoever_waits(crew: Crew) -> None:
    """S2-21: whoever waits does not poll either."""
    await crew.start()
    watch = Stopwatch()
    for _ in range(10):
        await (await crew.program.nap.enqueue(0)).result(10)

    assert watch.seconds < 2.5


@pytest.mark.timeout(40)
async def test_an_idle_worker_sends_less_than_a_command_a_second(
    own_server: OwnServers, namespace: str, tmp_path: Path
) -> None:
    """Idle is cheap. Commands inside scripts are the server's own business."""
    server = own_server()
    with Crew(server, namespace, tmp_path) as crew:
        await crew.start()
        await (await crew.program.nap.enqueue(0)).result(10)
        await crew.rota.close()
        with server.client() as client:
            before = _sent(client.info("commandstats"))
            watch = Stopwatch()
            await eventually(lambda: watch.seconds > 6, 10)
            sent = _sent(client.info("commandstats")) - before

        assert 2 <= sent <= 8


def _sent(stats: object) -> int:
    """Calls that came from clients: scripts, and everything that no script of Rota calls."""
    by_clients = ("eval", "evalsha", "ping", "subscribe", "client", "hello", "sadd", "get", "script", "config")
    names = cast(dict[str, dict[str, int]], stats)
    return sum(
        stat["calls"] for name, stat in names.items() if name.removeprefix("cmdstat_").split("|")[0] in by_clients
    )


async def test_a_lost_wake_up_delays_a_job_no_longer_than_two_seconds(crew: Crew) -> None:
    """S3-5, S3-13, Kue #130: the subscription is cut, and the job comes in that very moment."""
    worker = await crew.start()
    with crew.redis() as client:
        for _ in range(3):
            client.client_kill_filter(_type="pubsub")
            job = await crew.program.nap.enqueue(0)
            await crew.until(job, "completed", 4)
            record = await job.refresh()
            assert (record.claimed_at or 0) - record.enqueued_at < 2200
    assert worker.is_alive


async def test_a_worker_that_nobody_wakes_looks_for_itself(crew: Crew) -> None:
    """Kue #130: the store has forgotten that this worker waits; the queue itself is the truth."""
    await crew.start()
    await (await crew.program.nap.enqueue(0)).result(10)
    with crew.redis() as client:
        watch = Stopwatch()

        def is_forgotten_for_a_while() -> bool:
            client.delete(crew.key("idle"))
            return watch.seconds > 1.2

        await eventually(is_forgotten_for_a_while)
        job = await crew.program.nap.enqueue(0)

        await crew.until(job, "completed", 5)

    record = await job.refresh()
    assert (record.claimed_at or 0) - record.enqueued_at < 2200


async def test_a_worker_listens_again_after_its_subscription_was_cut(crew: Crew) -> None:
    """S3-13: re-established without a restart."""
    await crew.start()
    with crew.redis() as client:
        client.client_kill_filter(_type="pubsub")
        channel = f"{crew.rota.keys.inbox_prefix}{crew.workers[0].id}"
        await eventually(lambda: dict(client.pubsub_numsub(channel)).get(channel.encode()) == 1)
    job = await crew.program.nap.enqueue(0)
    await job.result(10)

    record = await job.refresh()

    assert (record.claimed_at or 0) - record.enqueued_at < 500


async def test_a_worker_whose_every_connection_is_cut_goes_on(crew: Crew) -> None:
    """Kue #692: the cloud closes idle connections daily."""
    worker = await crew.start()
    running = await crew.program.wait.enqueue("running")
    await crew.noted("running")
    with crew.redis() as client:
        for _ in range(3):
            client.client_kill_filter(_type="normal", skipme=True)
            client.client_kill_filter(_type="pubsub")
            assert await (await crew.program.add.enqueue(1, 2)).result(5) == 3
    crew.allow("running")

    assert await running.result(5) == "running"
    assert (await running.refresh()).counts.attempt == 1
    assert worker.is_alive


async def test_jobs_that_come_together_wake_as_many_workers_as_are_needed(crew: Crew) -> None:
    """One slot each: three jobs start at once on three workers."""
    await crew.start_together(3, concurrency=1)
    jobs = await crew.enqueue_many(crew.program.wait.call(f"job-{number}") for number in range(3))

    for number in range(3):
        await crew.noted(f"job-{number}")

    records = [await job.refresh() for job in jobs]
    assert len({record.worker for record in records}) == 3
    assert max((record.claimed_at or 0) - record.enqueued_at for record in records) < 1000
    for number in range(3):
        crew.allow(f"job-{number}")
