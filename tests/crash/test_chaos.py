"""Everything goes wrong, again and again, while jobs come in: in the end each has ended once, and none is lost."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

from rota import Job, JobState
from tests.eventually import eventually
from tests.scale import IS_LONG, random_seed
from tests.servers import OwnServers, Server
from tests.worker.harness import WorkerHarness

SECONDS: Final = 180 if IS_LONG else 6
SEED: Final = random_seed()
WORKERS: Final = 3
TASKS: Final = ("count_run", "count_run_in_thread", "count_run_in_process")


class Chaos:
    """Does harm to a harness and its server, of all kinds."""

    def __init__(self, harness: WorkerHarness, server: Server, chance: random.Random) -> None:
        self._crew = harness
        self._server = server
        self._chance = chance
        self._harms: list[Callable[[], object]] = [
            self.kill_worker,
            self.kill_runner,
            self.stop_worker,
            self.freeze_worker,
            self.restart_server,
            self.cut_connections,
            self.flush_scripts,
        ]
        self.done: list[str] = []

    async def run(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            harm = self._chance.choice(self._harms)
            self.done.append(harm.__name__)
            result = harm()
            if asyncio.iscoroutine(result):
                await result
            missing = WORKERS - sum(worker.is_alive for worker in self._crew.workers)
            for _ in range(missing):
                self._crew.launch("--grace", "0.5", concurrency=4)
            await asyncio.sleep(self._chance.uniform(0.1, 0.8))

    def kill_worker(self) -> None:
        self._any_worker().kill()

    def kill_runner(self) -> None:
        runners = self._any_worker().runners()
        if runners:
            with suppress(ProcessLookupError):
                os.kill(self._chance.choice(runners), signal.SIGKILL)

    def stop_worker(self) -> None:
        self._any_worker().terminate()

    async def freeze_worker(self) -> None:
        worker = self._any_worker()
        worker.pause()
        await asyncio.sleep(self._chance.choice([0.2, 5.0]))
        worker.resume()

    def restart_server(self) -> None:
        self._server.restart()

    def cut_connections(self) -> None:
        with self._server.client() as client:
            client.client_kill_filter(_type="normal", skipme=True)
            client.client_kill_filter(_type="pubsub")

    def flush_scripts(self) -> None:
        with self._server.client() as client:
            client.script_flush()

    def _any_worker(self) -> Any:
        return self._chance.choice([worker for worker in self._crew.workers if worker.is_alive])


@pytest.mark.requirement("S4-1", "S4-36", "S2-34", "S0-2", "S0-3")
@pytest.mark.timeout(120 + 2 * SECONDS)
async def test_no_job_is_lost_and_none_ends_twice_whatever_happens(
    own_server: OwnServers, namespace: str, tmp_path: Path
) -> None:
    """Killed, stopped and frozen workers, dead runners, restarts, cut connections."""
    print(f"ROTA_TEST_SEED={SEED}")
    chance = random.Random(SEED)
    server = own_server(appendonly="yes", appendfsync="always")
    with WorkerHarness(server, namespace, tmp_path) as harness:
        await harness.start_together(WORKERS, "--grace", "0.5", concurrency=4)
        chaos = Chaos(harness, server, chance)
        harming = asyncio.create_task(chaos.run(SECONDS))
        jobs: list[Job[Any]] = []
        while not harming.done():
            task = harness.rota.tasks.get(chance.choice(TASKS)).using(max_stalls=1_000, timeout=60)
            jobs.append(await task.enqueue(f"job-{len(jobs)}", chance.choice([0.0, 0.02, 0.5])))
            await asyncio.sleep(0.02)
        await harming

        async def all_have_ended() -> bool:
            counts = await harness.rota.queue().counts()
            assert counts["completed"] == len(jobs), counts
            return True

        await eventually(all_have_ended, 60)
        for number, job in enumerate(jobs):
            assert await job.result(1) == f"job-{number}"
            verbs = [entry.verb for entry in await job.history()]
            assert verbs.count("complete") == 1
            assert verbs[-1] == "complete"
            assert len(harness.notes(f"job-{number}")) >= 1
            assert (await job.refresh()).counts.failures == 0
        info = await harness.rota.queue().info()
        assert info.counts == {state.value: len(jobs) if state is JobState.COMPLETED else 0 for state in JobState}
        assert info.totals["completed"] == len(jobs)
        await harness.rota.close()
