"""Failovers under Sentinel: what a receipt is worth, and where calls go, when another server takes over."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any, Final

import pytest

from rota import Job, Rota, StoreUnavailable, Task
from rota.client.session import session_of, sessions_of
from tests.eventually import eventually
from tests.scale import IS_LONG
from tests.sentinel import FailoverGroup, cut_off, failover_group, stop_replication
from tests.servers import OwnServers, Server

#: How many failovers the longest test makes.
FAILOVERS: Final = 50 if IS_LONG else 2


def declare(rota: Rota) -> Task[[], None, Any]:
    async def send() -> None: ...

    return rota.task(send)


async def enqueue(rota: Rota) -> Job[None] | StoreUnavailable:
    """The receipt, or the error that is expected while a server is away."""
    try:
        return await declare(rota).enqueue()
    except StoreUnavailable as error:
        return error


async def count_false(rota: Rota, receipts: list[Job[None] | StoreUnavailable]) -> int:
    """How many enqueues returned although their job is gone."""
    refs = [job.ref for job in receipts if isinstance(job, Job)]
    records = await session_of(rota).read_records(refs)
    # The number of a lost run is given again, to another job.
    return sum(record is None or record.ref.id != ref.id for ref, record in zip(refs, records, strict=True))


async def test_no_concurrent_enqueue_gets_a_receipt_for_a_job_that_a_failover_lost(
    own_server: OwnServers, namespace: str, tmp_path: Path
) -> None:
    """Eight jobs reach the primary and no replica; the one that is promoted has a replica, but none of the jobs."""
    async with (
        failover_group(own_server, tmp_path) as group,
        Rota(group.url, namespace=namespace, durability="replicated", patience=60) as rota,
    ):
        primary, (replica,) = group.primary, group.replicas
        await _follow(own_server, replica)
        await declare(rota).enqueue()
        stop_replication(primary)
        enqueues = [asyncio.create_task(enqueue(rota)) for _ in range(8)]
        with primary.client() as raw:
            await eventually(lambda: raw.hlen(sessions_of(rota).keys.queue("default", "jobs")) == 9)
            await eventually(lambda: raw.info("clients")["blocked_clients"] >= 2)
        primary.kill()

        receipts = await asyncio.gather(*enqueues)

        assert await count_false(rota, receipts) == 0
        await _until_well(rota)


async def _follow(own_server: OwnServers, replica: Server) -> None:
    """A replica of the replica: the next primary has one from its first moment on."""
    own_server(tcp=True, replicaof=f"127.0.0.1 {replica.port}")
    with replica.client() as raw:
        await eventually(lambda: "online" in str(raw.info("replication")))


async def _until_well(rota: Rota) -> None:
    async def is_well() -> bool:
        return isinstance(await enqueue(rota), Job)

    await eventually(is_well, timeout=60)


@pytest.mark.timeout(1200)
async def test_no_receipt_is_false_over_many_failovers(own_server: OwnServers, namespace: str, tmp_path: Path) -> None:
    """Eight producers without a pause; each primary is killed at a random moment, every second one cut off before."""
    receipts: list[Job[None] | StoreUnavailable] = []
    async with (
        failover_group(own_server, tmp_path, replicas=2) as group,
        Rota(group.url, namespace=namespace, durability="replicated", patience=60) as rota,
    ):
        false = 0
        for failover in range(FAILOVERS):
            of_this = await _fail_over(group, rota, is_cut_off=failover % 2 == 1)
            false += await count_false(rota, of_this)
            receipts += of_this

    given = sum(isinstance(receipt, Job) for receipt in receipts)
    print(f"{FAILOVERS} failovers: {given} receipts, {len(receipts) - given} refused, {false} false")
    assert false == 0


async def _fail_over(group: FailoverGroup, rota: Rota, *, is_cut_off: bool) -> list[Job[None] | StoreUnavailable]:
    """Kills the primary while jobs are enqueued, and starts it again as a replica. Returns what the enqueues gave."""
    primary = group.primary
    receipts: list[Job[None] | StoreUnavailable] = []
    is_over = asyncio.Event()

    async def produce() -> None:
        while not is_over.is_set():
            receipts.append(await enqueue(rota))

    async with asyncio.TaskGroup() as producers:
        for _ in range(8):
            producers.create_task(produce())
        await eventually(lambda: len(receipts) > 20, timeout=60)
        if is_cut_off:
            stop_replication(primary)
        await asyncio.sleep(random.uniform(0, 0.05))
        primary.kill()
        await eventually(lambda: group.primary is not primary, timeout=60)
        before = len(receipts)
        await eventually(lambda: any(isinstance(receipt, Job) for receipt in receipts[before:]), timeout=60)
        is_over.set()
    primary.start()
    await group.until_whole()
    return receipts


@pytest.mark.parametrize("sentinels", [1, 3])
async def test_a_deposed_primary_is_left_when_the_sentinels_announce_the_next(
    own_server: OwnServers, namespace: str, tmp_path: Path, sentinels: int
) -> None:
    """The old one still accepts writes: only the announcement tells that they will be lost."""
    async with (
        failover_group(own_server, tmp_path, sentinels=sentinels, has_login=True) as group,
        Rota(group.url, namespace=namespace, patience=60) as rota,
    ):
        await declare(rota).enqueue()
        deposed, (promoted,) = group.primary, group.replicas
        old = cut_off(deposed)
        await eventually(lambda: group.primary is promoted, timeout=30)

        jobs = sessions_of(rota).keys.queue("default", "jobs")
        with promoted.client(retries=20) as new, old:
            before = new.hlen(jobs)

            async def reaches_it() -> bool:
                await declare(rota).enqueue()
                return new.hlen(jobs) > before

            await eventually(reaches_it, timeout=20)
            stored = old.hlen(jobs)
            for _ in range(20):
                await declare(rota).enqueue()

            assert old.hlen(jobs) == stored
            assert old.info("replication")["role"] == "master", "it has not been demoted"
