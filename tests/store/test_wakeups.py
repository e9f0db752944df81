"""Wake-ups: an idle worker is woken at once, and no more workers than there are jobs."""

from __future__ import annotations

import contextlib

import pytest

from tests.store.driver import QUEUE, Driver, Inbox, new_job

WAKE = f"wake {QUEUE}"


@contextlib.asynccontextmanager
async def _idle(driver: Driver, *names: str):
    """Workers that found nothing, in that order, and listen."""
    with contextlib.ExitStack() as stack:
        inboxes: dict[str, Inbox] = {}
        for name in names:
            inboxes[name] = stack.enter_context(driver.inbox(name))
            assert await driver.worker(name).claim() == []
            driver.advance(10)
        yield inboxes


def _told(inboxes: dict[str, Inbox]) -> dict[str, int]:
    heard = {name: inbox.told() for name, inbox in inboxes.items()}
    assert {text for texts in heard.values() for text in texts} <= {WAKE}
    return {name: len(texts) for name, texts in heard.items() if texts}


@pytest.mark.requirement("S3-5", "S3-6", "S3-7")
async def test_one_enqueue_wakes_exactly_one_of_several_idle_workers(driver: Driver) -> None:
    """A push in the same step as the enqueue, and no herd."""
    async with _idle(driver, "w1", "w2", "w3") as inboxes:
        await driver.enqueue()
        assert _told(inboxes) == {"w1": 1}
        await driver.enqueue()
        assert _told(inboxes) == {"w2": 1}
        await driver.enqueue()
        await driver.enqueue()
        assert _told(inboxes) == {"w3": 1}


async def test_a_batch_wakes_as_many_as_it_has_work_for_up_to_eight(driver: Driver) -> None:
    names = [f"w{number}" for number in range(12)]
    async with _idle(driver, *names) as inboxes:
        await driver.enqueue(*[new_job()] * 3)
        assert _told(inboxes) == dict.fromkeys(names[:3], 1)
        await driver.enqueue(*[new_job()] * 100)
        assert _told(inboxes) == dict.fromkeys(names[3:11], 1)


async def test_a_dead_idle_worker_is_passed_over(driver: Driver) -> None:
    for number in range(10):
        await driver.worker(f"dead{number}").claim()
        driver.advance(10)
    async with _idle(driver, "alive") as inboxes:
        await driver.enqueue()
        assert _told(inboxes) == {"alive": 1}
    assert driver.index("idle") == {}


@pytest.mark.requirement("S3-5")
async def test_looking_and_waiting_are_one_step_so_no_wake_up_falls_in_between(driver: Driver) -> None:
    """A job added between the last look and the subscribe was missed."""
    await driver.worker("w1").claim()
    assert driver.index("idle").keys() == {"w1"}

    await driver.enqueue()
    await driver.worker("w1").claim()
    assert driver.index("idle") == {}


async def test_a_worker_with_slots_left_over_goes_on_waiting(driver: Driver) -> None:
    await driver.enqueue()
    async with _idle(driver) as _:
        await driver.worker("w1").claim(3)
    assert driver.index("idle").keys() == {"w1"}


async def test_a_worker_that_leaves_work_behind_wakes_the_next(driver: Driver) -> None:
    """One wake-up for many jobs goes from hand to hand."""
    async with _idle(driver, "w1", "w2", "w3") as inboxes:
        await driver.enqueue(new_job(), new_job(due="+5"))
        assert _told(inboxes) == {"w1": 1}
        driver.advance(10)

        await driver.worker("w1").claim(1)

        assert _told(inboxes) == {"w2": 1}


async def test_a_woken_worker_without_a_free_slot_passes_it_on(driver: Driver) -> None:
    async with _idle(driver, "w1", "w2") as inboxes:
        await driver.enqueue()
        assert _told(inboxes) == {"w1": 1}

        await driver.worker("w1").claim(0)

        assert _told(inboxes) == {"w2": 1}


async def test_a_worker_that_takes_all_it_can_is_not_woken_by_what_it_left(driver: Driver) -> None:
    """It claimed before it was woken, so it is busy: the next worker must be woken."""
    async with _idle(driver, "w1", "w2") as inboxes:
        await driver.client.pause_queue(QUEUE, wanted="paused")
        driver.redis.delete(driver.key("idle"))
        await driver.enqueue(*[new_job()] * 2)
        await driver.worker("w1").claim()
        driver.advance(10)
        await driver.worker("w2").claim()
        driver.redis.hdel(driver.key("meta"), "is_paused")

        assert len(await driver.worker("w1").claim(1)) == 1

        assert _told(inboxes) == {"w2": 1}


async def test_a_scheduled_job_that_becomes_the_next_due_wakes_one_to_set_its_alarm(driver: Driver) -> None:
    await driver.enqueue(new_job(due="+600000"))
    async with _idle(driver, "w1", "w2") as inboxes:
        await driver.enqueue(new_job(due="+900000"))
        assert _told(inboxes) == {}

        await driver.enqueue(new_job(due="+60000"))
        assert _told(inboxes) == {"w1": 1}

        wait_ms = (await driver.worker("w1").claims()).wait_ms
        assert wait_ms is not None
        assert 58_000 < wait_ms <= 60_000


@pytest.mark.requirement("S3-11")
@pytest.mark.parametrize("verb", ["fail", "snooze", "hand_back", "lose", "redrive"])
async def test_whatever_makes_a_job_runnable_again_wakes_one(driver: Driver, verb: str) -> None:
    """A release woke no worker."""
    ref = await driver.one()
    busy = driver.worker("busy")
    (job,) = await busy.claim()
    if verb == "redrive":
        await busy.fail(job)
    async with _idle(driver, "w1", "w2") as inboxes:
        if verb == "fail":
            await busy.fail(job, "+1000")
        elif verb == "snooze":
            await busy.snooze(job, "")
        elif verb == "hand_back":
            await busy.hand_back(job)
        elif verb == "lose":
            await busy.lose(job)
        else:
            await driver.client.redrive(QUEUE, [ref])

        assert _told(inboxes) == {"w1": 1}


async def test_promoted_and_reaped_jobs_wake_others_when_the_finder_is_full(driver: Driver) -> None:
    await driver.enqueue(*[new_job(due="+60000")] * 2)
    async with _idle(driver, "w1", "w2") as inboxes:
        driver.advance(60_000)

        assert len(await driver.worker("finder").claim(1)) == 1

        assert _told(inboxes) == {"w1": 1}


async def test_a_worker_that_leaves_is_woken_no_more_and_hands_its_wake_up_on(driver: Driver) -> None:
    async with _idle(driver, "w1", "w2") as inboxes:
        await driver.worker("w1").beat()
        await driver.enqueue()
        assert _told(inboxes) == {"w1": 1}

        await driver.worker("w1").store.leave_queue(QUEUE)

        assert _told(inboxes) == {"w2": 1}
        assert "w1" not in driver.hash("heartbeats")


async def test_a_worker_that_leaves_an_empty_queue_wakes_no_worker(driver: Driver) -> None:
    async with _idle(driver, "w1", "w2") as inboxes:
        await driver.worker("w1").store.leave_queue(QUEUE)
        assert _told(inboxes) == {}
        await driver.enqueue()
        assert _told(inboxes) == {"w2": 1}


async def test_a_refused_job_wakes_no_worker(driver: Driver) -> None:
    await driver.one("x", due="+600000")
    async with _idle(driver, "w1") as inboxes:
        await driver.client.enqueue(QUEUE, [new_job("x")])
        assert _told(inboxes) == {}


async def test_a_job_of_one_queue_wakes_no_worker_of_another(driver: Driver) -> None:
    async with _idle(driver, "w1") as inboxes:
        await driver.enqueue(queue="other")
        assert _told(inboxes) == {}
