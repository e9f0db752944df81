"""The load that the requirements state, at reduced size, on workers that `rota autoscale` starts and removes."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from rota import Rota
from tests.autoscaler.test_processes import autoscale, environment, started
from tests.eventually import eventually
from tests.servers import Server

__all__ = ["environment", "started"]
JOBS = 1_000
WORKERS = 3
OPTIONS = ("--min", "1", "--max", str(WORKERS), "--concurrency", "4")
#: Jobs that run at a time while the pool shrinks: one worker has slots for all of them.
FEW = 3
WAIT_S = 100.0


async def _nap(seconds: float) -> None:
    """As the workers' program declares it."""


class Load:
    """Enqueues jobs, and counts the workers that run them."""

    def __init__(self, rota: Rota, journal: Path) -> None:
        self.rota = rota
        self.journal = journal
        self.nap = rota.task(name="nap")(_nap)
        self.enqueued = 0

    async def add(self, count: int, seconds: float) -> None:
        """Enqueues jobs."""
        await self.rota.enqueue_many(self.nap.call(seconds) for _ in range(count))
        self.enqueued += count

    async def is_done(self) -> bool:
        """True if no job waits or runs."""
        counts = await self.rota.queue("default").counts()
        return counts["pending"] == counts["processing"] == 0

    async def active(self) -> int:
        """The number of workers that claim jobs."""
        return sum(one.status == "ALIVE" and one.info.get("state") == "active" for one in await self.rota.workers())

    async def has_grown(self) -> bool:
        """True if the pool is at its maximum. Until then there is enough to do."""
        if (await self.rota.queue("default").counts())["pending"] < JOBS // 2:
            await self.add(JOBS // 2, 0.05)
        return await self.active() == WORKERS

    async def one_after_another(self) -> None:
        """Runs a job, waits for its end, and so on."""
        while True:
            self.enqueued += 1
            await (await self.nap.enqueue(0.1)).result(timeout=WAIT_S)

    async def has(self, count: int) -> bool:
        """True if as many workers claim jobs."""
        return await self.active() == count

    async def have_left(self, count: int) -> bool:
        """True if as many workers have drained and ended."""
        found = [one.info for one in await self.rota.workers()]
        return sum(bool(info.get("was_drained")) and info["state"] in ("drained", "stopped") for info in found) == count

    async def rate(self) -> float:
        """Jobs per second that the present workers run."""
        began = time.perf_counter()
        await self.add(JOBS, 0)
        await eventually(lambda: self.journal.read_bytes().count(b"ended ") == self.enqueued, WAIT_S)
        return JOBS / (time.perf_counter() - began)


async def _while_running(tasks: list[asyncio.Task[None]], until: asyncio.Task[bool]) -> None:
    """Waits for `until` while the tasks run. One that fails ends the wait."""
    try:
        done, _ = await asyncio.wait([*tasks, until], return_when=asyncio.FIRST_COMPLETED)
        for one in done:
            one.result()
    finally:
        for one in (*tasks, until):
            one.cancel()
        await asyncio.wait([*tasks, until])


@pytest.mark.requirement("S2-34")
@pytest.mark.timeout(240)
async def test_workers_come_and_go_under_load_and_every_job_ends_once(
    environment: dict[str, str],
    started: list[subprocess.Popen[bytes]],
    tmp_path: Path,
    valkey: Server,
    namespace: str,
) -> None:
    log = tmp_path / "autoscaler.log"
    started.append(autoscale(environment, log, *OPTIONS))
    rota = Rota(valkey.url, namespace=namespace)
    load = Load(rota, tmp_path / "journal")
    await load.add(JOBS, 0.05)

    await eventually(load.has_grown, WAIT_S)
    await rota.scaling.change(min_workers=WORKERS)
    await eventually(load.is_done, WAIT_S)
    await eventually(lambda: load.has(WORKERS), WAIT_S)
    rate = await load.rate()
    await rota.scaling.change(min_workers=1)
    few = [asyncio.create_task(load.one_after_another()) for _ in range(FEW)]
    await _while_running(few, asyncio.create_task(eventually(lambda: load.has(1), WAIT_S)))
    await eventually(load.is_done, WAIT_S)

    await eventually(lambda: load.have_left(WORKERS - 1), WAIT_S)
    started[0].terminate()
    await eventually(lambda: started[0].poll() == 0, 60)
    assert await load.active() == 0

    journal = [line.split() for line in (tmp_path / "journal").read_text().splitlines()]
    began = Counter(job for verb, job, _ in journal if verb == "began")
    ended = Counter(job for verb, job, _ in journal if verb == "ended")
    print(f"{load.enqueued} jobs, {rate:.0f} jobs/s with {WORKERS} workers (the requirements state 200)")
    assert len(began) == load.enqueued
    assert set(began.values()) == {1}, "no job ran twice"
    assert began == ended, "no job was interrupted"
    assert {attempt for _, _, attempt in journal} == {"1"}, "no attempt was spent"
    await rota.close()
