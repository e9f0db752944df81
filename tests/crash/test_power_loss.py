"""Power loss: the append-only file ends at any byte. What is left is whole, nothing is stuck, no old claim counts."""

from __future__ import annotations

import random
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import pytest

from rota.core.ids import JobRef
from rota.core.same_id_policy import Update
from rota.store.claim_replies import ClaimedJob
from rota.store.job_store import LEASE_MS
from tests.scale import IS_LONG, random_seed
from tests.servers import OwnServers, Server
from tests.store.driver import ENDS, QUEUE, Driver, new_job

#: How many bytes the file is cut at, and how many calls fill it.
CUTS: Final = 300 if IS_LONG else 10
CALLS: Final = 150
UNFINISHED: Final = ("pending", "processing", "scheduled", "blocked")


class Workload:
    """Random calls of producers and workers, of every kind that writes."""

    def __init__(self, driver: Driver, chance: random.Random) -> None:
        self._driver = driver
        self._chance = chance
        self.refs: list[JobRef] = []
        self.claimed: list[ClaimedJob] = []
        self._running: list[ClaimedJob] = []

    async def run(self, calls: int) -> None:
        """Makes so many calls."""
        kinds: list[Callable[[], Awaitable[None]]] = [
            *(self._enqueue, self._enqueue, self._enqueue_many, self._after, self._claim, self._claim, self._claim),
            *(self._end, self._end, self._end, self._cancel, self._same_id, self._deliver, self._redrive, self._beat),
        ]
        for _ in range(calls):
            await self._chance.choice(kinds)()

    async def _enqueue(self) -> None:
        lock = self._chance.choice(["", "", "red", "green"])
        due = self._chance.choice(["", "", "+1000"])
        self.refs += await self._driver.enqueue(new_job(lock=lock, due=due))

    async def _enqueue_many(self) -> None:
        self.refs += await self._driver.enqueue(*(new_job(terms=("tag=a",)) for _ in range(5)))

    async def _after(self) -> None:
        if self.refs:
            parents = self._chance.sample(self.refs, min(2, len(self.refs)))
            self.refs.append(await self._driver.after(*(f"{ref.full_id}@{ref.run}" for ref in parents)))

    async def _claim(self) -> None:
        jobs = await self._driver.worker(self._chance.choice(["w1", "w2"])).claim(2)
        self.claimed += jobs
        self._running += jobs

    async def _end(self) -> None:
        if self._running:
            job = self._running.pop(self._chance.randrange(len(self._running)))
            await self._driver.worker("w1").end(job, self._chance.choice(ENDS))

    async def _cancel(self) -> None:
        if self.refs:
            await self._driver.client.cancel(self._chance.choice(self.refs))

    async def _redrive(self) -> None:
        if self.refs:
            await self._driver.client.redrive(QUEUE, [self._chance.choice(self.refs)])

    async def _same_id(self) -> None:
        await self._driver.client.enqueue(QUEUE, [new_job(self._chance.choice("ab"), again=Update(data=True))])

    async def _deliver(self) -> None:
        await self._driver.post()

    async def _beat(self) -> None:
        await self._driver.worker("w1").beat(*self._running)


@pytest.mark.requirement("S1-13")
@pytest.mark.timeout(3_600 if IS_LONG else 300)
async def test_what_a_power_loss_leaves_is_whole_and_every_job_of_it_ends(
    own_server: OwnServers, namespace: str, tmp_path: Path
) -> None:
    """The end of the file may be inside a command, or inside the writes of one script."""
    chance = random.Random(random_seed())
    server = own_server(appendonly="yes", appendfsync="everysec", auto_aof_rewrite_percentage="0")
    driver = Driver(server, namespace)
    workload = Workload(driver, chance)
    await workload.run(CALLS)
    await driver.close()
    server.stop()
    whole = tmp_path / "whole"
    shutil.copytree(server.dir / "appendonlydir", whole)

    cuts = [chance.random() for _ in range(CUTS)]
    for share in cuts:
        _cut(server, whole, share)
        await _examine(server, namespace, workload)
        server.kill()
    server.start()


def _cut(server: Server, whole: Path, share: float) -> None:
    """Starts the server on the first bytes of its log."""
    log = server.dir / "appendonlydir"
    shutil.rmtree(log)
    shutil.copytree(whole, log)
    (file,) = log.glob("*.incr.aof")
    with file.open("r+b") as opened:
        opened.truncate(int(share * file.stat().st_size))
    server.start()


async def _examine(server: Server, namespace: str, workload: Workload) -> None:
    driver = Driver(server, namespace)
    try:
        driver.check()
        known = {run for run, line in driver.hash("runs").items() if line.startswith("processing ")}
        worker = driver.worker("after")
        await driver.advance_with_ticks(2 * LEASE_MS)
        for _ in range(100):
            jobs = await worker.claim(10)
            for job in jobs:
                # Nothing that was claimed before counts for the claim of now.
                for old in workload.claimed:
                    if old.run == job.run and old.claim != job.claim:
                        assert await worker.complete(old) in ("lease_lost", "already"), old
                assert await worker.complete(job) == "ok", known
            await driver.post()
            await driver.advance_with_ticks(5_000)
            if not any(driver.index(state) for state in UNFINISHED):
                break
        left = {state: driver.index(state) for state in UNFINISHED if driver.index(state)}
        assert not left, f"stuck: {left}"
        driver.check()
    finally:
        await driver.close()
