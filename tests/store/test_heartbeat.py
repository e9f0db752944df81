"""heartbeat: extends the leases of a worker, and returns those that it has lost."""

from __future__ import annotations

import pytest

from rota.core.state_transitions import JobState
from rota.store.batch_limit_constants import BATCH
from rota.store.job_store import LEASE_MS
from tests.store.driver import QUEUE, Driver, new_job


@pytest.mark.requirement("S0-12", "S3-12", "S4-33")
async def test_a_job_that_is_named_keeps_its_lease_for_as_long_as_it_takes(driver: Driver) -> None:
    """A long job is not run twice."""
    ref = await driver.one()
    (job,) = await driver.worker("w1").claim()

    for _ in range(20):
        driver.advance(2_000)
        assert await driver.worker("w1").beat(job) == {}
        assert await driver.worker("w2").claim() == []

    record = (await driver.read(ref)).record
    assert record.state is JobState.PROCESSING
    assert record.lease_until is not None
    assert record.lease_until > driver.now() + LEASE_MS - 1000
    assert await driver.worker("w1").complete(job) == "ok"


@pytest.mark.requirement("S4-33", "S2-19")
async def test_a_heartbeat_returns_lost_and_cancelled_jobs(driver: Driver) -> None:
    """The reply asks to stop the handler."""
    refs = await driver.enqueue(*[new_job()] * 5)
    held, lost, cancelled, deleted, done = await driver.worker("w1").claim(5)
    await driver.client.cancel(refs[2])
    await driver.client.delete(refs[3])
    await driver.worker("w1").complete(done)
    await driver.worker("w1").hand_back(lost)
    await driver.worker("w2").claim()

    told = await driver.worker("w1").beat(held, lost, cancelled, deleted, done)

    assert told == {lost.run: "lost", cancelled.run: "cancelled", deleted.run: "cancelled", done.run: "lost"}


async def test_a_heartbeat_brings_nothing_back_that_is_gone(driver: Driver) -> None:
    """kue #1204: a late sign of life put a failed job back among the active ones."""
    refs = await driver.enqueue(*[new_job()] * 3)
    jobs = await driver.worker("w1").claim(3)
    await driver.worker("w1").complete(jobs[0])
    await driver.client.delete(refs[1])
    await driver.worker("w1").fail(jobs[2])
    before = driver.dump("meta", "heartbeats", "stopping")

    await driver.worker("w1").beat(*jobs)

    assert driver.dump("meta", "heartbeats", "stopping") == before
    assert driver.index("processing") == {}


async def test_a_heartbeat_may_name_more_jobs_than_one_call_carries(driver: Driver) -> None:
    await driver.enqueue(*[new_job()] * (BATCH + 10))
    jobs = await driver.worker().claim(BATCH) + await driver.worker().claim(BATCH)
    last = jobs[-1]
    await driver.worker().complete(last)
    driver.advance(1_000)

    told = await driver.worker().beat(*jobs)

    assert told == {last.run: "lost"}
    assert min(driver.index("processing").values()) > driver.now() + LEASE_MS - 1_000


async def test_a_heartbeat_of_an_idle_worker_is_a_sign_of_life(driver: Driver) -> None:
    before = driver.now()

    assert await driver.worker("w1").store.heartbeat(QUEUE, []) == {}

    assert before <= int(driver.hash("heartbeats")["w1"]) <= driver.now()
