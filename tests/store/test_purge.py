"""purge: scheduled | blocked | pending -> (none)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pytest

from rota.store.batch_limit_constants import PURGE_SCANNED
from rota.store.create_dependents_and_deliver_outcomes import JobWithParents
from rota.store.job_store import PURGE_BATCH
from rota.store.redis.retrying_client import Argument
from tests.store.driver import QUEUE, Driver, new_job

MANY: Final = PURGE_SCANNED + 100


async def test_purge_deletes_what_waits_and_nothing_else(driver: Driver) -> None:
    refs = await driver.enqueue(*[new_job()] * 4, new_job("late", due="+60000", expiry="+90000"))
    running, done, dead = await driver.worker().claim(3)
    await driver.worker().complete(done)
    await driver.worker().fail(dead)
    await driver.client.watch(refs[3])

    with driver.inbox("client") as inbox:
        assert await driver.client.purge(QUEUE, 100) == 2
        assert inbox.told() == [f"ended {QUEUE} {refs[3].run}"]

    assert driver.counts() == {"processing": 1, "completed": 1, "failed": 1}
    assert not await driver.exists(refs[4])
    assert await driver.worker().complete(running) == "ok"
    assert driver.hash("meta")["deleted"] == "2"


async def test_purge_goes_in_slices_that_say_how_much_they_did(driver: Driver) -> None:
    await driver.enqueue(*[new_job()] * 700, *[new_job(due="+60000")] * 500)

    sizes = [await driver.client.purge(QUEUE, 10_000) for _ in range(2 + 1_200 // PURGE_BATCH)]

    assert sum(sizes) == 1_200
    assert max(sizes) <= PURGE_BATCH
    assert sizes[-1] == 0
    assert driver.counts() == {}


async def test_purge_deletes_no_more_than_asked(driver: Driver) -> None:
    await driver.enqueue(*[new_job()] * 5)

    assert await driver.client.purge(QUEUE, 0) == 0
    assert await driver.client.purge(QUEUE, 2) == 2

    assert driver.counts() == {"pending": 3}


@pytest.mark.parametrize("lock", ["", "seats"], ids=["free", "locked"])
async def test_jobs_are_purged_however_many_steps_of_workflows_stand_before_them(driver: Driver, lock: str) -> None:
    steps, _ = await driver.ties.prepare_dependents(
        QUEUE, {n: JobWithParents(new_job(), ()) for n in range(MANY)}, kind="step"
    )
    await driver.ties.publish_prepared_runs(QUEUE, [step.run for step in steps])
    await driver.enqueue(new_job(lock=lock), new_job(due="+60000"))

    assert [await driver.client.purge(QUEUE) for _ in range(3)] == [1, 1, 0]

    assert driver.counts() == {"pending": MANY}


@pytest.mark.parametrize("claimed_after", [1, 2, 3])
async def test_jobs_are_purged_though_workers_claim_the_steps_before_them(
    driver: Driver, monkeypatch: pytest.MonkeyPatch, claimed_after: int
) -> None:
    """A purge that continues after the steps that it has seen misses no job when some of them have been claimed."""
    steps, _ = await driver.ties.prepare_dependents(
        QUEUE, {n: JobWithParents(new_job(), ()) for n in range(6)}, kind="step"
    )
    await driver.ties.publish_prepared_runs(QUEUE, [step.run for step in steps])
    await driver.enqueue(new_job(), new_job(), new_job(due="+60000"))
    run, calls = driver.redis_client.run, list[str]()

    async def claim_between_calls(name: str, keys: Sequence[str], arguments: Sequence[Argument]) -> Any:
        answer = await run(name, keys, arguments)
        calls.append(name)
        if calls.count("purge") == claimed_after and name == "purge":
            await driver.worker().claim(3)
        return answer

    monkeypatch.setattr("rota.store.job_store.PURGE_SCANNED", 3)
    monkeypatch.setattr(driver.redis_client, "run", claim_between_calls)
    while await driver.client.purge(QUEUE):
        pass

    assert driver.counts() == {"processing": 3, "pending": 3}
    driver.check()


async def test_a_job_that_falls_due_during_a_purge_is_purged(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    steps, _ = await driver.ties.prepare_dependents(
        QUEUE, {n: JobWithParents(new_job(), ()) for n in range(6)}, kind="step"
    )
    await driver.ties.publish_prepared_runs(QUEUE, [step.run for step in steps])
    await driver.enqueue(new_job(due="+60000", priority=-1))
    run, calls = driver.redis_client.run, list[str]()

    async def promote_between_calls(name: str, keys: Sequence[str], arguments: Sequence[Argument]) -> Any:
        answer = await run(name, keys, arguments)
        calls.append(name)
        if calls.count("purge") == 1 and name == "purge":
            driver.advance(60_001)
            await driver.worker().claims(0)
        return answer

    monkeypatch.setattr("rota.store.job_store.PURGE_SCANNED", 3)
    monkeypatch.setattr(driver.redis_client, "run", promote_between_calls)
    while await driver.client.purge(QUEUE):
        pass

    assert driver.counts() == {"pending": 6}


async def test_a_retry_that_waits_is_purged_with_its_error_and_history(driver: Driver) -> None:
    await driver.one("x")
    (job,) = await driver.worker().claim()
    await driver.worker().store.append_log(QUEUE, job.run, job.claim, 1, ["info hello"])
    await driver.worker().fail(job, "+60000")

    assert await driver.client.purge(QUEUE, 10) == 1

    assert driver.counts() == {}
