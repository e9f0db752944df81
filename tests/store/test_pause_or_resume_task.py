"""A paused task: none of its jobs starts, on any worker, and the other jobs of its queue go on."""

from __future__ import annotations

import pytest

from rota.core.ids import JobRef
from rota.core.state_transitions import JobState
from rota.store.batch_limit_constants import HOUSEKEEPING_BATCH, MAX_PAUSED_TASKS
from rota.store.job_store import LEASE_MS
from tests.store.driver import QUEUE, Driver, new_job, refs_of
from tests.store.late_copies import recorded

TASK = "noop"


async def states(driver: Driver, *refs: JobRef) -> list[JobState]:
    return [await driver.state(ref) for ref in refs]


async def resume(driver: Driver) -> None:
    await driver.client.resume_task(QUEUE, TASK)


async def test_jobs_of_a_paused_task_do_not_start_and_the_others_do(driver: Driver) -> None:
    driver.stop_clock()
    paused = await driver.enqueue(*[new_job()] * 3)
    other = await driver.one(task="other")
    await driver.client.pause_task(QUEUE, TASK, by="ana", note="runaway")

    assert refs_of(await driver.worker("w1").claim(5)) == [other.run]
    assert await driver.worker("w2").claim(5) == []

    assert set(await states(driver, *paused)) == {JobState.BLOCKED}
    obstacle = (await driver.read(paused[0])).record.obstacle
    assert obstacle is not None
    assert (obstacle.kind, obstacle.task) == ("task_paused", TASK)
    (found,) = await driver.views.paused_tasks([QUEUE])
    assert (found.task, found.pause.by, found.pause.note, found.waiting) == (TASK, "ana", "runaway", 3)
    assert found.pause.at == driver.now()


async def test_a_thousand_paused_jobs_in_front_are_each_met_once(driver: Driver) -> None:
    for _ in range(2):
        await driver.enqueue(*[new_job()] * 500)
    behind = await driver.one(task="other")
    await driver.client.pause_task(QUEUE, TASK)

    claims = 0
    while not (found := await driver.worker().claim(5)):
        claims += 1
    assert refs_of(found) == [behind.run]

    assert claims <= 1 + 1_000 / (HOUSEKEEPING_BATCH / 8)
    later = await driver.one(task="other")
    assert refs_of(await driver.worker().claim(5)) == [later.run]


async def test_a_resumed_task_starts_its_jobs_in_their_order(driver: Driver) -> None:
    low, normal, high = [await driver.one(priority=priority) for priority in (10, 0, -10)]
    await driver.client.pause_task(QUEUE, TASK)
    assert await driver.worker().claim(5) == []

    await resume(driver)

    assert set(await states(driver, low, normal, high)) == {JobState.PENDING}
    assert refs_of(await driver.worker().claim(5)) == [high.run, normal.run, low.run]
    assert await driver.views.paused_tasks([QUEUE]) == []
    assert driver.hash("paused_tasks") == {}


async def test_claims_put_back_what_the_resume_left(driver: Driver) -> None:
    """The client that resumes may die after the first call."""
    refs = await driver.enqueue(*[new_job()] * 400)
    await driver.client.pause_task(QUEUE, TASK)
    for _ in range(100):
        await driver.worker().claim(500)
    assert (await driver.views.paused_tasks([QUEUE]))[0].waiting == 400

    await resume(driver)
    assert (await driver.views.paused_tasks([QUEUE]))[0].is_resuming

    found: list[str] = []
    for _ in range(40):
        found += refs_of(await driver.worker().claim(500))
    assert sorted(found) == sorted(str(ref.run) for ref in refs)
    assert await driver.views.paused_tasks([QUEUE]) == []


async def test_a_job_that_is_set_aside_frees_its_lock(driver: Driver) -> None:
    first = await driver.one(lock="l")
    behind = await driver.one(lock="l", task="other")
    await driver.client.pause_task(QUEUE, TASK)

    assert refs_of(await driver.worker().claim(5)) == [behind.run]

    await resume(driver)
    assert (await states(driver, first))[0] is JobState.BLOCKED  # its lock is held now
    (held,) = await driver.worker("w2").claim(5) or [None]
    assert held is None


async def test_a_job_that_waited_for_its_lock_starts_after_the_resume(driver: Driver) -> None:
    first = await driver.one(lock="l")
    await driver.one(lock="l", task="other")
    await driver.client.pause_task(QUEUE, TASK)
    (job,) = await driver.worker().claim(5)
    await resume(driver)

    await driver.worker().complete(job)

    assert refs_of(await driver.worker().claim(5)) == [first.run]


@pytest.mark.parametrize("verb", ["cancel", "delete", "purge", "expire"])
async def test_a_job_that_is_set_aside_can_be_ended(driver: Driver, verb: str) -> None:
    ref = await driver.one(expiry="+60000")
    await driver.client.pause_task(QUEUE, TASK)
    await driver.worker().claim(5)

    if verb == "cancel":
        assert await driver.client.cancel(ref) == "cancelled"
    elif verb == "delete":
        assert await driver.client.delete(ref) == "deleted"
    elif verb == "purge":
        assert await driver.client.purge(QUEUE) == 1
    else:
        await driver.advance_with_ticks(61_000)
        await driver.worker().claim(5)

    assert (await driver.views.paused_tasks([QUEUE]))[0].waiting == 0
    await resume(driver)
    assert await driver.worker().claim(5) == []


async def test_a_running_attempt_goes_on_and_its_retry_is_set_aside(driver: Driver) -> None:
    ref = await driver.one()
    (job,) = await driver.worker("w1").claim()
    await driver.client.pause_task(QUEUE, TASK)
    await driver.advance_with_ticks(2 * LEASE_MS)  # its worker dies

    assert await driver.worker("w2").claim(5) == []
    assert (await states(driver, ref))[0] is JobState.BLOCKED
    assert job.run == ref.run


async def test_a_job_of_a_paused_task_is_not_pushed_to_an_idle_worker(driver: Driver) -> None:
    await driver.client.pause_task(QUEUE, TASK)
    with driver.inbox("w1") as inbox:
        await driver.worker("w1").claim(1)
        await driver.one()
        assert inbox.told() == [f"wake {QUEUE}"]


@pytest.mark.parametrize("is_late_pause", [True, False])
async def test_a_call_that_arrives_late_reverts_nothing(driver: Driver, is_late_pause: bool) -> None:
    await driver.one()
    with recorded(driver) as recording:
        if is_late_pause:
            await driver.client.pause_task(QUEUE, TASK)
        else:
            await resume(driver)
    await (resume(driver) if is_late_pause else driver.client.pause_task(QUEUE, TASK))
    before = driver.dump()

    await recording.send_again("pause_or_resume_task")

    assert driver.dump() == before


async def test_a_hundred_tasks_of_a_queue_are_paused_at_most(driver: Driver) -> None:
    for number in range(MAX_PAUSED_TASKS):
        assert await driver.client.pause_task(QUEUE, f"task{number}")

    assert not await driver.client.pause_task(QUEUE, "one-more")


async def test_who_paused_a_queue_first_is_kept(driver: Driver) -> None:
    driver.stop_clock()
    await driver.client.pause_queue(QUEUE, wanted="paused", by="ana", note="partner down")
    await driver.client.pause_queue(QUEUE, wanted="paused", by="ben")

    (info,) = await driver.views.queue_infos([QUEUE])
    assert info.pause is not None
    assert (info.pause.by, info.pause.note, info.pause.at) == ("ana", "partner down", driver.now())

    await driver.client.pause_queue(QUEUE, wanted="open")
    (info,) = await driver.views.queue_infos([QUEUE])
    assert info.pause is None
