"""Slots that move while jobs run, and a node that dies and comes back: nothing is lost, and it goes on by itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from redis.crc import key_slot

from rota import Job
from rota.errors import StoreUnavailable
from rota.store.redis.address import parse_address
from rota.store.redis.retrying_client import RedisClient
from tests.cluster.conftest import APP, QUEUES
from tests.cluster.nodes import Cluster
from tests.eventually import eventually
from tests.servers import Server
from tests.worker.harness import Stopwatch, WorkerHarness

MAIL, PRINT, BILLING = QUEUES


@pytest.fixture
async def harness(own_cluster: Cluster, namespace: str, tmp_path: Path) -> AsyncIterator[WorkerHarness]:
    """Starts workers on the cluster of this test alone."""
    with WorkerHarness(own_cluster, namespace, tmp_path, APP) as harness:
        yield harness
        await harness.rota.close()


@pytest.mark.parametrize("move", [Cluster.move_slot_key_by_key, Cluster.move_slot_at_once])
async def test_a_slot_moves_while_its_jobs_run(
    harness: WorkerHarness, own_cluster: Cluster, move: Callable[[Cluster, int, Server], None]
) -> None:
    """Jobs of the queue and dependents of them on other nodes: each effect comes, and comes once."""
    await harness.start(queues=",".join(QUEUES))
    slot = key_slot(PRINT.encode())
    source = own_cluster.node_of(slot)
    target = own_cluster.node_of(key_slot(MAIL.encode()))
    jobs: list[Job[str]] = []
    is_moved = asyncio.Event()

    async def produce() -> None:
        number = 0
        while not is_moved.is_set() or number % 20:
            job = await harness.program.effect.using(queue=PRINT).enqueue("moved", f"p{number}")
            jobs.append(job)
            jobs.append(await harness.program.effect.using(queue=BILLING, after=[job]).enqueue("moved", f"d{number}"))
            number += 1

    producer = asyncio.create_task(produce())
    await harness.noted("moved", 20)
    await asyncio.to_thread(move, own_cluster, slot, target)
    await eventually(lambda: own_cluster.node_of(slot) is target)
    is_moved.set()
    await producer
    watch = Stopwatch()
    results = [await job.result(20) for job in jobs]

    assert watch.seconds < 10
    assert sorted(harness.notes("moved")) == sorted(results), "each once"
    with source.client() as client:
        assert client.execute_command("CLUSTER", "COUNTKEYSINSLOT", slot) == 0


async def test_the_slot_of_workflows_moves_while_one_runs(harness: WorkerHarness, own_cluster: Cluster) -> None:
    await harness.start(queues=",".join(QUEUES))
    async with harness.rota.workflow("moving") as flow:
        first = flow.step(harness.program.wait.using(queue=MAIL).call("moving"))
        second = flow.step(harness.program.echo.using(queue=PRINT).call(first.result))
        flow.step(harness.program.echo.using(queue=BILLING).call(second.result))
    await harness.noted("moving")
    own_cluster.move_slot_key_by_key(key_slot(b"~"), own_cluster.node_of(key_slot(MAIL.encode())))
    harness.allow("moving")

    assert await flow.result(20) == "moving"


@pytest.mark.parametrize("victim", [MAIL, PRINT, BILLING])
async def test_a_node_dies_and_comes_back_while_dependents_wait(
    harness: WorkerHarness, own_cluster: Cluster, victim: str
) -> None:
    """Of the parent, of the dependent, or of neither: what was stored is there, and all goes on within seconds."""
    await harness.start(queues=",".join(QUEUES))
    parent = await harness.program.wait.using(queue=MAIL).enqueue("parent")
    dependents = await harness.enqueue_many(
        harness.program.effect.using(queue=queue, after=[parent]).call("dependent", f"{queue}{n}")
        for n in range(10)
        for queue in (PRINT, BILLING)
    )
    await harness.noted("parent")
    node = own_cluster.node_of(key_slot(victim.encode()))
    node.kill()
    harness.allow("parent")
    await harness.noted("parent", 2)
    with pytest.raises(StoreUnavailable):
        await harness.program.echo.using(queue=victim).enqueue(0)
    node.start()
    own_cluster.until_well()
    watch = Stopwatch()

    assert await parent.result(20) == "parent"
    assert [await job.result(20) for job in dependents] == [
        f"{queue}{n}" for n in range(10) for queue in (PRINT, BILLING)
    ]
    assert watch.seconds < 12
    assert len(harness.notes("dependent")) == 20
    assert harness.notes("parent") == ["begin", "end"], "it was not run again"
    assert (await parent.refresh()).counts.stalls == 0


async def test_what_is_no_cluster_is_refused_with_what_to_do(valkey: Server, own_cluster: Cluster) -> None:
    from rota import Rota
    from rota.errors import StoreUnsupported
    from tests.servers import new_server

    with new_server("valkey", tcp=True) as single:
        rota = Rota(f"redis+cluster://127.0.0.1:{single.port}", patience=1)
        with pytest.raises(StoreUnsupported, match="no cluster"):
            await rota.check()
        await rota.close()
    for node in own_cluster.nodes:
        node.kill()
    redis_client = RedisClient(parse_address(own_cluster.url), patience=0.5)
    with pytest.raises(StoreUnavailable, match="does not answer"):
        await redis_client.command("PING")
    await redis_client.close()
