"""The server is killed, restarted, frozen or emptied under workers that run jobs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from rota import Job
from rota.store.bounds import LEASE_MS
from tests.eventually import eventually
from tests.servers import Kind, OwnServers
from tests.worker.crew import Crew, Stopwatch


async def _is_untouched(job: Job[Any]) -> bool:
    counts = (await job.refresh()).counts
    return (counts.attempt, counts.failures, counts.stalls, counts.handbacks) == (1, 0, 0, 0)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(("kind", "seconds"), [("valkey", 0.0), ("valkey", 7.0), ("redis7", 1.0)])
async def test_nothing_is_lost_and_nobody_robbed_when_the_server_is_killed(
    own_server: OwnServers, namespace: str, tmp_path: Path, kind: Kind, seconds: float
) -> None:
    """S0-2, S1-13, S2-34, S4-41, disque #92: AOF on; a finished job is acknowledged when the server is back."""
    server = own_server(kind, appendonly="yes", appendfsync="always")
    with Crew(server, namespace, tmp_path) as crew:
        await crew.start_together(2, concurrency=5)
        finishing = [await crew.program.wait.enqueue(f"finishing-{number}") for number in range(3)]
        running = [await crew.program.wait.enqueue(f"running-{number}") for number in range(3)]
        for number in range(3):
            await crew.noted(f"finishing-{number}")
            await crew.noted(f"running-{number}")
        scheduled = await crew.program.order.using(delay=1).enqueue("ran", "scheduled")
        await crew.rota.queue("other").pause()
        waiting = [await crew.program.order.using(queue="other").enqueue("ran", "waiting") for _ in range(20)]

        server.kill()
        for number in range(3):
            crew.allow(f"finishing-{number}")
        await crew.noted("finishing-0", 2)
        watch = Stopwatch()
        await eventually(lambda: watch.seconds >= seconds, seconds + 1)
        server.start()

        back = Stopwatch()
        for number, job in enumerate(finishing):
            assert await job.result(5) == f"finishing-{number}"
        assert await (await crew.program.add.enqueue(1, 2)).result(5) == 3
        assert back.seconds < 2.5
        for number, job in enumerate(running):
            assert await job.state() == "processing"
            crew.allow(f"running-{number}")
            assert await job.result(5) == f"running-{number}"
        for job in (*finishing, *running):
            assert await _is_untouched(job)
        await scheduled.result(5)
        assert [await job.state() for job in waiting] == ["pending"] * 20
        # Leases that ran out meanwhile belong to workers that live: still nobody is robbed a lease later.
        assert all(worker.is_alive for worker in crew.workers)
        await crew.rota.close()


@pytest.mark.timeout(60)
async def test_nobody_is_robbed_when_the_server_stands_still_for_longer_than_a_lease(
    own_server: OwnServers, namespace: str, tmp_path: Path
) -> None:
    """Spec 4: connections stay open and nothing answers; afterwards the owners say first that they live."""
    server = own_server()
    with Crew(server, namespace, tmp_path) as crew:
        await crew.start_together(2, concurrency=5)
        jobs = [await crew.program.wait.enqueue(f"job-{number}") for number in range(6)]
        for number in range(6):
            await crew.noted(f"job-{number}")

        server.pause()
        watch = Stopwatch()
        crew.allow("job-0")
        await eventually(lambda: watch.seconds >= 7, 8)
        server.resume()

        assert await jobs[0].result(5) == "job-0"
        back = Stopwatch()
        await eventually(lambda: back.seconds >= LEASE_MS / 1000 + 0.2, 6)
        for number, job in enumerate(jobs):
            crew.allow(f"job-{number}")
            assert await job.result(5) == f"job-{number}"
            assert await _is_untouched(job)
        await crew.rota.close()


async def test_jobs_of_a_worker_that_died_during_the_outage_come_back_too(
    own_server: OwnServers, namespace: str, tmp_path: Path
) -> None:
    """Spec 4: patience with the living is not forgetting the dead."""
    server = own_server(appendonly="yes", appendfsync="always")
    with Crew(server, namespace, tmp_path) as crew:
        victim, _ = await crew.start_together(2, concurrency=1)
        jobs = [await crew.program.wait.enqueue(f"job-{number}") for number in range(2)]
        for number in range(2):
            await crew.noted(f"job-{number}")

        server.kill()
        victim.kill()
        server.start()
        for number in range(2):
            crew.allow(f"job-{number}")

        for job in jobs:
            await job.result(15)
        stalls = [(await job.refresh()).counts.stalls for job in jobs]
        assert sorted(stalls) == [0, 1]
        await crew.rota.close()


async def test_scripts_may_be_flushed_at_any_time(crew: Crew) -> None:
    """Spec 15: NOSCRIPT is nobody's problem but the gateway's."""
    await crew.start_together(2)
    is_over = False

    async def flush() -> None:
        with crew.redis() as client:
            while not is_over:
                client.script_flush()
                await asyncio.sleep(0.003)

    flushing = asyncio.create_task(flush())
    jobs = [
        job
        for _ in range(10)
        for job in await crew.enqueue_many(crew.program.order.call("ran", str(n)) for n in range(20))
    ]
    for job in jobs:
        await job.result(20)
    is_over = True
    await flushing

    assert len(crew.notes("ran")) == 200
    assert all([await _is_untouched(job) for job in jobs if isinstance(job, Job)])


async def test_a_server_that_lost_everything_stops_handlers_and_keeps_workers(
    own_server: OwnServers, namespace: str, tmp_path: Path
) -> None:
    """S4-41: without persistence a restart is a new world; workers live in it."""
    server = own_server()
    with Crew(server, namespace, tmp_path) as crew:
        worker = await crew.start()
        await crew.program.wait.enqueue("subject")
        await crew.noted("subject")

        server.restart()

        await crew.noted("subject", 2, 10)
        assert crew.notes("subject") == ["begin", "cancelled"]
        assert await (await crew.program.add.enqueue(1, 2)).result(10) == 3
        assert worker.is_alive
        await crew.rota.close()
