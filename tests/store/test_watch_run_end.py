"""watch: subscribing to the end of a run, and the notification that a waiting client receives."""

from __future__ import annotations

import pytest

from rota.core.ids import JobRef
from rota.core.job_options import Keep
from rota.core.state_transitions import JobState
from rota.store.job_store import LEASE_MS, JobStore
from tests.store.driver import FINISHED, QUEUE, Driver, completed, new_job


@pytest.mark.parametrize(
    "end", ["complete", "fail", "cancel", "give up", "delete", "purge", "expire", "stall", "cancel running"]
)
async def test_a_waiting_client_is_notified_of_every_kind_of_end(driver: Driver, end: str) -> None:
    ref = await driver.one("x", expiry="+60000", max_stalls=0)
    assert await driver.client.watch(JobRef(QUEUE, "x")) == (ref.run, False)
    worker = driver.worker()

    with driver.inbox("client") as inbox:
        if end in ("complete", "fail", "give up", "stall", "cancel running"):
            (job,) = await worker.claim()
            assert inbox.told() == []
            if end == "complete":
                await worker.complete(job)
            elif end == "fail":
                await worker.fail(job)
            elif end == "give up":
                await worker.give_up(job)
            elif end == "stall":
                await worker.lose(job)
            else:
                await driver.client.cancel(ref)
        elif end == "cancel":
            await driver.client.cancel(ref)
        elif end == "delete":
            await driver.client.delete(ref)
        elif end == "purge":
            await driver.client.purge(QUEUE, 10)
        else:
            driver.advance(60_000)
            await worker.claim()
        told = inbox.told()

    assert told == [f"ended {QUEUE} {ref.run}"]
    assert driver.hash("waiters") == {}


async def test_a_retry_is_no_end(driver: Driver) -> None:
    ref = await driver.one()
    await driver.client.watch(ref)
    (job,) = await driver.worker().claim()

    with driver.inbox("client") as inbox:
        await driver.worker().fail(job, "")
        (job,) = await driver.worker().claim()
        await driver.worker().snooze(job, "")
        (job,) = await driver.worker().claim()
        await driver.worker().hand_back(job)
        (job,) = await driver.worker().claim()
        await driver.worker().lose(job)
        assert inbox.told() == []


async def test_all_waiting_clients_are_notified_once(driver: Driver) -> None:
    ref = await driver.one()
    other = JobStore(driver.redis_client, driver.keys, "client2")
    for _ in range(3):
        await driver.client.watch(ref)
        await other.watch(ref)
    (job,) = await driver.worker().claim()

    with driver.inbox("client") as first, driver.inbox("client2") as second:
        await driver.worker().complete(job)
        assert first.told() == second.told() == [f"ended {QUEUE} {ref.run}"]


@pytest.mark.parametrize("end", FINISHED)
async def test_a_client_that_waits_too_late_is_notified_at_once(driver: Driver, end: str) -> None:
    ref = await driver.one()
    if end == "cancelled":
        await driver.client.cancel(ref)
    else:
        (job,) = await driver.worker().claim()
        await (driver.worker().complete(job) if end == "completed" else driver.worker().fail(job))
    before = driver.dump()

    assert await driver.client.watch(ref) == (ref.run, True)

    assert driver.dump() == before


async def test_waiting_for_a_missing_job_raises(driver: Driver) -> None:
    assert await driver.client.watch(JobRef(QUEUE, "nobody")) is None
    assert driver.all_keys() == []


async def test_a_watch_is_pinned_to_its_run(driver: Driver) -> None:
    old = await driver.dead_letter("x")
    new = await driver.one("x")
    assert await driver.client.watch(JobRef(QUEUE, "x")) == (new.run, False)
    assert await driver.client.watch(old) == (old.run, True)


@pytest.mark.parametrize("keep", [Keep(finished=0), Keep(finished_count=0)])
async def test_a_result_that_is_awaited_stays_a_minute_even_if_nothing_is_kept(driver: Driver, keep: Keep) -> None:
    ref, unwatched = await driver.enqueue(new_job(), new_job())
    await driver.client.watch(ref)
    jobs = await driver.worker().claim(2)

    await driver.worker().store.report(QUEUE, [completed(job, b"7", keep=keep) for job in jobs])

    assert (await driver.read(ref)).record.result == b"7"
    assert not await driver.exists(unwatched)
    driver.advance(61_000)
    await driver.client.apply_retention(QUEUE)
    assert not await driver.exists(ref)


async def test_each_awaited_result_stays_whatever_the_rules_of_the_others_are(driver: Driver) -> None:
    keeps = [Keep(finished=0), Keep(finished_count=0), Keep(finished=60), Keep(finished=0, finished_count=0), Keep()]
    refs = await driver.enqueue(*[new_job()] * len(keeps))
    for ref in refs[:4]:
        await driver.client.watch(ref)
    jobs = await driver.worker().claim(10)

    await driver.worker().store.report(
        QUEUE, [completed(job, b"7", keep=keep) for job, keep in zip(jobs, keeps, strict=True)]
    )

    assert [await driver.state(ref) for ref in refs] == [JobState.COMPLETED] * 5
    driver.check()
    driver.advance(61_000)
    await driver.client.apply_retention(QUEUE)
    assert [await driver.exists(ref) for ref in refs] == [False, False, False, False, True]


async def test_a_client_that_waits_for_a_job_of_a_dead_worker_is_notified_when_it_fails(driver: Driver) -> None:
    ref = await driver.one(at_most_once=True)
    await driver.client.watch(ref)
    (job,) = await driver.worker("w1").claim()
    await driver.worker("w1").beat(job)
    await driver.advance_with_ticks(LEASE_MS + 1000)

    with driver.inbox("client") as inbox:
        await driver.worker("w2").claim(0)
        assert inbox.told() == [f"ended {QUEUE} {ref.run}"]
