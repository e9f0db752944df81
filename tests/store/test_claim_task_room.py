"""claim with tasks that may be full on the worker: their runs are passed over, and nothing behind them waits."""

from __future__ import annotations

import pytest

from rota.store.enqueue_batcher import NewJob
from tests.store.driver import QUEUE, Driver, body, refs_of
from tests.store.test_wakeups import _idle, _told


def _job(task: str, priority: int = 0) -> NewJob:
    return NewJob("", priority, "", "", body(task=task, priority=priority))


async def test_no_more_runs_of_a_task_are_claimed_than_it_has_room_for(driver: Driver) -> None:
    refs = await driver.enqueue(*[_job("encode")] * 4, *[_job("mail")] * 2)

    reply = await driver.worker().claims(10, task_room="0 encode=2")

    assert refs_of(reply.jobs) == [refs[number].run for number in (0, 1, 4, 5)]
    assert reply.passed_until == 2
    assert driver.index("pending").keys() == {refs[2].run, refs[3].run}, "they keep their positions"


@pytest.mark.requirement("S1-6")
async def test_every_run_is_reached_however_many_of_a_full_task_wait_before_it(driver: Driver) -> None:
    """Each claim goes on where the one before it ended, and says that there is more."""
    for _ in range(5):
        await driver.enqueue(*[_job("encode")] * 500)
    (last,) = await driver.enqueue(_job("mail"))
    worker, passed, claims = driver.worker(), 0, 0

    while True:
        reply = await worker.claims(3, task_room=f"{passed} encode=0")
        claims += 1
        if reply.jobs:
            break
        assert reply.wait_ms == 0, "it is to claim again at once"
        assert reply.passed_until is not None
        assert reply.passed_until > passed
        passed = reply.passed_until

    assert (refs_of(reply.jobs), claims) == ([last.run], 6)


async def test_what_is_more_urgent_is_found_wherever_the_last_claim_ended(driver: Driver) -> None:
    for _ in range(3):
        await driver.enqueue(*[_job("encode")] * 500)
    worker = driver.worker()
    reply = await worker.claims(1, task_room="0 encode=0")
    (urgent,) = await driver.enqueue(_job("mail", priority=-10))

    reply = await worker.claims(1, task_room=f"{reply.passed_until} encode=0")

    assert refs_of(reply.jobs) == [urgent.run]


async def test_the_rank_to_go_on_from_may_be_beyond_the_end(driver: Driver) -> None:
    """Runs before it may have left since: the last ones are examined in any case."""
    await driver.enqueue(*[_job("encode")] * 150)
    (last,) = await driver.enqueue(_job("mail"))

    reply = await driver.worker().claims(1, task_room="1000000 encode=0")

    assert refs_of(reply.jobs) == [last.run]


async def test_tasks_beyond_the_hundredth_are_told_apart(driver: Driver) -> None:
    """They share a number in the task index: then the job record says which task it is."""
    await driver.enqueue(*[_job(f"task-{number}") for number in range(110)])
    worker = driver.worker()
    assert len((await worker.claims(200)).jobs) == 110
    refs = await driver.enqueue(_job("task-108"), _job("task-109"))

    reply = await worker.claims(5, task_room="0 task-108=0")

    assert refs_of(reply.jobs) == [refs[1].run]


async def test_a_wake_up_goes_on_to_workers_that_have_not_seen_the_run_and_ends(driver: Driver) -> None:
    """Otherwise a job could wait for a poll beside a worker with room, or full workers wake each other forever."""
    async with _idle(driver, "full-1", "full-2", "free") as inboxes:
        (ref,) = await driver.enqueue(_job("encode"))
        assert _told(inboxes) == {"full-1": 1}
        driver.advance(1)

        assert (await driver.worker("full-1").claims(1, task_room="0 encode=0")).jobs == []
        assert _told(inboxes) == {"full-2": 1}
        assert (await driver.worker("full-2").claims(1, task_room="0 encode=0")).jobs == []
        assert _told(inboxes) == {"free": 1}
        assert (await driver.worker("free").claims(1, task_room="0 encode=0")).jobs == []
        assert _told(inboxes) == {}, "all of them have seen it"

        assert refs_of(await driver.worker("free").claim(1)) == [ref.run]


async def test_long_records_are_claimed_within_the_bytes_of_a_call(driver: Driver) -> None:
    refs = await driver.enqueue(*[NewJob("", 0, "", "", body("x" * 700_000, task="encode"))] * 3)

    reply = await driver.worker().claims(3, task_room="0 encode=2")

    assert refs_of(reply.jobs) == [refs[0].run]
    assert reply.wait_ms == 0


async def test_runs_of_a_paused_task_behind_those_of_a_full_one_are_not_claimed(driver: Driver) -> None:
    """Those at the front are set aside; the claim goes on to runs behind, and passes over the paused ones itself."""
    await driver.enqueue(_job("encode"))
    (paused,) = await driver.enqueue(_job("mail"))
    (other,) = await driver.enqueue(_job("draw"))
    await driver.client.pause_task(QUEUE, "mail")

    reply = await driver.worker().claims(1, task_room="0 encode=0")

    assert refs_of(reply.jobs) == [other.run]
    assert refs_of((await driver.worker().claims(9, task_room="0 encode=0")).jobs) == []
    await driver.client.resume_task(QUEUE, "mail")
    assert refs_of((await driver.worker().claims(9, task_room="0 encode=0")).jobs) == [paused.run]


async def test_a_run_of_a_paused_task_does_not_wake_another_worker(driver: Driver) -> None:
    async with _idle(driver, "first", "second", "third") as inboxes:
        await driver.enqueue(_job("encode"))
        _told(inboxes)
        driver.advance(1)
        assert (await driver.worker("first").claims(1, task_room="0 encode=0")).jobs == []
        assert (await driver.worker("second").claims(1, task_room="0 encode=0")).jobs == []
        assert (await driver.worker("third").claims(1, task_room="0 encode=0")).jobs == []
        _told(inboxes)
        await driver.client.pause_task(QUEUE, "mail")
        driver.advance(1)
        await driver.enqueue(_job("mail"))
        assert _told(inboxes) == {"first": 1}
        driver.advance(1)

        assert (await driver.worker("first").claims(1, task_room="0 encode=0")).jobs == []
        assert _told(inboxes) == {}
