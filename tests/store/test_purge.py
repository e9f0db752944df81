"""purge: scheduled | blocked | pending -> (none)."""

from __future__ import annotations

from typing import Final

import pytest

from rota.store.bounds import PURGE_LOOKS
from rota.store.store import PURGED
from rota.store.ties import Tied
from tests.store.driver import QUEUE, Driver, new_job

MANY: Final = PURGE_LOOKS + 100


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

    sizes = [await driver.client.purge(QUEUE, 10_000) for _ in range(2 + 1_200 // PURGED)]

    assert sum(sizes) == 1_200
    assert max(sizes) <= PURGED
    assert sizes[-1] == 0
    assert driver.counts() == {}


async def test_purge_deletes_no_more_than_asked(driver: Driver) -> None:
    await driver.enqueue(*[new_job()] * 5)

    assert await driver.client.purge(QUEUE, 0) == 0
    assert await driver.client.purge(QUEUE, 2) == 2

    assert driver.counts() == {"pending": 3}


@pytest.mark.parametrize("lock", ["", "seats"], ids=["free", "locked"])
async def test_jobs_are_purged_however_many_steps_of_workflows_stand_before_them(driver: Driver, lock: str) -> None:
    steps, _ = await driver.ties.prepare(QUEUE, {n: Tied(new_job(), ()) for n in range(MANY)}, kind="step")
    await driver.ties.commit(QUEUE, [step.run for step in steps])
    await driver.enqueue(new_job(lock=lock), new_job(due="+60000"))

    assert [await driver.client.purge(QUEUE), await driver.client.purge(QUEUE)] == [2, 0]

    assert driver.counts() == {"pending": MANY}


async def test_a_retry_that_waits_is_purged_with_its_error_and_history(driver: Driver) -> None:
    await driver.one("x")
    (job,) = await driver.worker().claim()
    await driver.worker().store.log(QUEUE, job.run, job.claim, 1, ["info hello"])
    await driver.worker().fail(job, "+60000")

    assert await driver.client.purge(QUEUE, 10) == 1

    assert driver.counts() == {}
