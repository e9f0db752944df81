"""A full server refuses new jobs and lets the others end, so that it drains."""

from __future__ import annotations

import pytest

from rota.core.job_options import Keep
from rota.core.state_transitions import JobState
from rota.errors import StoreFull
from rota.store.enqueue_batcher import EnqueueResult
from tests.servers import Kind, OwnServers
from tests.store.driver import QUEUE, Driver, completed, new_job

each_kind = pytest.mark.parametrize("kind", ["valkey", "redis7"])


def _used(driver: Driver) -> int:
    return int(driver.redis.info("memory")["used_memory"])


def _fill(driver: Driver) -> None:
    """From now on the server has as much as it may have, and a little more."""
    driver.redis.config_set("maxmemory", _used(driver) - 1_000)


@each_kind
async def test_a_full_server_refuses_new_jobs_and_keeps_nothing_of_them(
    kind: Kind, own_server: OwnServers, namespace: str
) -> None:
    """kue #1016: out of memory left jobs without a state."""
    driver = Driver(own_server(kind, maxmemory_policy="noeviction"), namespace, patience=30)
    dead = await driver.dead_letter()
    await driver.enqueue(*[new_job()] * 10)
    _fill(driver)
    before = driver.dump()

    with pytest.raises(StoreFull, match="maxmemory"):
        await driver.client.enqueue(QUEUE, [new_job("x"), new_job(due="+1000")])
    with pytest.raises(StoreFull):
        await driver.client.redrive(QUEUE, [dead])

    assert driver.dump() == before
    await driver.close()


@each_kind
async def test_on_a_full_server_jobs_can_still_end_in_every_way(
    kind: Kind, own_server: OwnServers, namespace: str
) -> None:
    driver = Driver(own_server(kind, maxmemory_policy="noeviction"), namespace, patience=30)
    refs = await driver.enqueue(*[new_job()] * 12)
    worker = driver.worker()
    _fill(driver)

    jobs = await worker.claim(8)
    assert len(jobs) == 8
    assert await worker.beat(*jobs) == {}
    assert await worker.complete(jobs[0], b'"result"') == "ok"
    assert await worker.fail(jobs[1]) == "ok"
    assert await worker.fail(jobs[2], "+1000") == "ok"
    assert await worker.snooze(jobs[3], "+1000") == "ok"
    assert await worker.hand_back(jobs[4]) == "ok"
    assert await worker.lose(jobs[5]) == "ok"
    assert await worker.give_up(jobs[6]) == "ok"
    await worker.store.save_progress(QUEUE, [(jobs[7].run, jobs[7].claim, "1", "2", "")])
    assert await driver.client.cancel(refs[7]) == "stopping"
    assert await driver.client.cancel(refs[8]) == "cancelled"
    assert await driver.client.delete(refs[9]) == "deleted"
    assert await driver.client.purge(QUEUE, 1) == 1
    assert await driver.client.watch(refs[11]) == (refs[11].run, False)
    await driver.client.pause_queue(QUEUE, wanted="paused")
    await driver.client.pause_queue(QUEUE, wanted="open")
    await driver.client.apply_retention(QUEUE)
    await worker.store.leave_queue(QUEUE)
    await worker.store.renew_registration("{}")

    assert await driver.state(refs[0]) is JobState.COMPLETED
    driver.check()
    await driver.close()


@each_kind
async def test_a_full_server_drains_until_it_takes_jobs_again(
    kind: Kind, own_server: OwnServers, namespace: str
) -> None:
    driver = Driver(own_server(kind, maxmemory_policy="noeviction"), namespace, patience=30)
    await driver.enqueue(*[new_job("", "x" * 2_000)] * 1_000)
    _fill(driver)
    with pytest.raises(StoreFull):
        await driver.enqueue()

    while jobs := await driver.worker().claim(100):
        await driver.worker().store.report(QUEUE, [completed(job, keep=Keep(finished=0)) for job in jobs])

    assert (await driver.client.enqueue(QUEUE, [new_job()]))[0].is_new
    driver.check()
    await driver.close()


@each_kind
async def test_a_server_that_fills_up_in_a_stream_of_enqueues_keeps_batches_whole(
    kind: Kind, own_server: OwnServers, namespace: str
) -> None:
    driver = Driver(own_server(kind, maxmemory_policy="noeviction"), namespace, patience=30)
    driver.redis.config_set("maxmemory", _used(driver) + 2_000_000)
    stored: list[EnqueueResult] = []

    async def fill() -> None:
        for _ in range(1_000):
            stored.extend(await driver.client.enqueue(QUEUE, [new_job("", "x" * 500)] * 100))

    with pytest.raises(StoreFull):
        await fill()

    assert stored
    assert driver.counts() == {"pending": len(stored)}
    driver.check()
    await driver.close()
