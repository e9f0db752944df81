"""The server is killed, restarted, frozen or emptied under workers that run jobs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import psutil
import pytest

from rota import Job
from rota.store.job_store import LEASE_MS
from tests.eventually import eventually
from tests.servers import Kind, OwnServers
from tests.worker.harness import Stopwatch, WorkerHarness


async def _is_untouched(job: Job[Any]) -> bool:
    counts = (await job.refresh()).counts
    return (counts.attempt, counts.failures, counts.stalls, counts.handbacks) == (1, 0, 0, 0)


@pytest.mark.requirement("S0-2", "S1-13", "S2-34", "S4-41")
@pytest.mark.parametrize(("kind", "seconds"), [("valkey", 0.0), ("valkey", 7.0), ("redis7", 1.0)])
async def test_no_job_and_no_lease_is_lost_when_the_server_is_killed(
    own_server: OwnServers, namespace: str, tmp_path: Path, kind: Kind, seconds: float
) -> None:
    """disque #92: AOF on; a finished job is acknowledged when the server is back."""
    server = own_server(kind, appendonly="yes", appendfsync="always")
    with WorkerHarness(server, namespace, tmp_path) as harness:
        await harness.start_together(2, concurrency=5)
        finishing = [await harness.program.wait.enqueue(f"finishing-{number}") for number in range(3)]
        running = [await harness.program.wait.enqueue(f"running-{number}") for number in range(3)]
        for number in range(3):
            await harness.noted(f"finishing-{number}")
            await harness.noted(f"running-{number}")
        scheduled = await harness.program.record_run.using(delay=1).enqueue("ran", "scheduled")
        await harness.rota.queue("other").pause()
        waiting = [await harness.program.record_run.using(queue="other").enqueue("ran", "waiting") for _ in range(20)]

        server.kill()
        for number in range(3):
            harness.allow(f"finishing-{number}")
        await harness.noted("finishing-0", 2)
        watch = Stopwatch()
        await eventually(lambda: watch.seconds >= seconds, seconds + 1)
        server.start()

        back = Stopwatch()
        for number, job in enumerate(finishing):
            assert await job.result(5) == f"finishing-{number}"
        assert await (await harness.program.add.enqueue(1, 2)).result(5) == 3
        assert back.seconds < 2.5
        for number, job in enumerate(running):
            assert await job.state() == "processing"
            harness.allow(f"running-{number}")
            assert await job.result(5) == f"running-{number}"
        for job in (*finishing, *running):
            assert await _is_untouched(job)
        await scheduled.result(5)
        assert [await job.state() for job in waiting] == ["pending"] * 20
        # Leases that ran out meanwhile belong to live workers: a lease later, none has been reclaimed.
        assert all(worker.is_alive for worker in harness.workers)
        await harness.rota.close()


async def test_leases_are_kept_when_the_server_stalls_for_longer_than_a_lease(
    own_server: OwnServers, namespace: str, tmp_path: Path
) -> None:
    """Spec 4: connections stay open and nothing answers; afterwards the owners renew their leases first."""
    server = own_server()
    with WorkerHarness(server, namespace, tmp_path) as harness:
        await harness.start_together(2, concurrency=5)
        jobs = [await harness.program.wait.enqueue(f"job-{number}") for number in range(6)]
        for number in range(6):
            await harness.noted(f"job-{number}")

        server.pause()
        watch = Stopwatch()
        harness.allow("job-0")
        await eventually(lambda: watch.seconds >= 7, 8)
        server.resume()

        assert await jobs[0].result(5) == "job-0"
        back = Stopwatch()
        await eventually(lambda: back.seconds >= LEASE_MS / 1000 + 0.2, 6)
        for number, job in enumerate(jobs):
            harness.allow(f"job-{number}")
            assert await job.result(5) == f"job-{number}"
            assert await _is_untouched(job)
        await harness.rota.close()


async def test_jobs_of_a_worker_that_died_during_the_outage_come_back_too(
    own_server: OwnServers, namespace: str, tmp_path: Path
) -> None:
    """Spec 4: patience with the living is not forgetting the dead."""
    server = own_server(appendonly="yes", appendfsync="always")
    with WorkerHarness(server, namespace, tmp_path) as harness:
        victim, _ = await harness.start_together(2, concurrency=1)
        jobs = [await harness.program.wait.enqueue(f"job-{number}") for number in range(2)]
        for number in range(2):
            await harness.noted(f"job-{number}")

        server.kill()
        victim.kill()
        server.start()
        for number in range(2):
            harness.allow(f"job-{number}")

        for job in jobs:
            await job.result(15)
        stalls = [(await job.refresh()).counts.stalls for job in jobs]
        assert sorted(stalls) == [0, 1]
        await harness.rota.close()


async def test_scripts_may_be_flushed_at_any_time(harness: WorkerHarness) -> None:
    """Spec 15: NOSCRIPT is handled inside the Redis client."""
    await harness.start_together(2)
    is_over = False

    async def flush() -> None:
        with harness.redis() as client:
            while not is_over:
                client.script_flush()
                await asyncio.sleep(0.003)

    flushing = asyncio.create_task(flush())
    jobs = [
        job
        for _ in range(10)
        for job in await harness.enqueue_many(harness.program.record_run.call("ran", str(n)) for n in range(20))
    ]
    for job in jobs:
        await job.result(20)
    is_over = True
    await flushing

    assert len(harness.notes("ran")) == 200
    assert all([await _is_untouched(job) for job in jobs if isinstance(job, Job)])


@pytest.mark.requirement("S4-41")
async def test_a_server_that_lost_everything_stops_handlers_and_keeps_workers(
    own_server: OwnServers, namespace: str, tmp_path: Path
) -> None:
    """Without persistence a restart is a new world; workers live in it."""
    server = own_server()
    with WorkerHarness(server, namespace, tmp_path) as harness:
        worker = await harness.start()
        await harness.program.wait.enqueue("subject")
        await harness.noted("subject")

        server.restart()

        await harness.noted("subject", 2, 10)
        assert harness.notes("subject") == ["begin", "cancelled"]
        assert await (await harness.program.add.enqueue(1, 2)).result(10) == 3
        assert worker.is_alive
        await harness.rota.close()


async def test_a_flood_of_log_lines_while_the_server_stands_still_does_not_fill_the_memory(
    own_server: OwnServers, namespace: str, tmp_path: Path
) -> None:
    """12 jobs with 10,000 lines of 16 kB each: the supervisor held 5 GB. What is left out is counted in the store."""
    server = own_server("valkey")
    with WorkerHarness(server, namespace, tmp_path, "tests.worker.misbehaving") as harness:
        worker = await harness.start(concurrency=20)
        wait, flood = harness.program.wait, harness.program.flood_log
        held = await wait.enqueue("held")
        jobs = [await flood.enqueue(f"flood-{number}", 3_000, 16_000) for number in range(12)]
        for number in range(12):
            await harness.noted(f"flood-{number}")
        before = psutil.Process(worker.pid).memory_info().rss

        server.pause()
        for number in range(12):
            harness.allow(f"flood-{number}")
        for number in range(12):
            await harness.noted(f"flood-{number}", 2, timeout=60)
        grown = psutil.Process(worker.pid).memory_info().rss - before
        server.resume()

        assert grown < 100 * 2**20, f"{grown / 2**20:.0f} MiB"
        harness.allow("held")
        assert await held.result(20) == "held"
        for job in jobs:
            await job.result(20)
            with harness.redis() as client:
                _, last, lines, bytes_, left_out = (client.hget(harness.key("logs"), job.ref.run) or b"").split()
            assert (int(last), int(lines) + int(left_out)) == (3_000, 3_000)
            assert int(bytes_) <= 256 * 2**10
        await harness.rota.close()


async def test_a_worker_that_is_started_while_the_server_is_down_waits_for_it(
    own_server: OwnServers, namespace: str, tmp_path: Path
) -> None:
    """As one that is running does. It used to exit after 8 s."""
    server = own_server()
    with WorkerHarness(server, namespace, tmp_path) as harness:
        server.kill()
        worker, stopped = harness.launch(), harness.launch()
        for waiting in (worker, stopped):
            await eventually(lambda waiting=waiting: "the worker waits for the server" in waiting.log, 60)

        stopped.terminate()
        assert await stopped.ended(30) == 0
        server.start()

        await harness.registered(worker)
        assert await (await harness.program.add.enqueue(1, 2)).result(20) == 3
        assert "the server answers" in worker.log
        await harness.rota.close()


async def test_a_job_of_a_dead_worker_explains_that_no_other_worker_recovers_it(harness: WorkerHarness) -> None:
    worker = await harness.start()
    job = await harness.program.wait.enqueue("subject")
    await harness.noted("subject")
    worker.kill()

    async def is_explained() -> bool:
        sentence = await job.explain()
        assert f"worker {worker.id} sends no heartbeats" in sentence, sentence
        return "no other worker serves queue default: start one, and it will run it again" in sentence

    await eventually(is_explained, 20)
    harness.allow("subject")
    await harness.start()

    assert await job.result(20) == "subject"
