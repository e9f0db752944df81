"""Queues, workers and dead letters, as an operator sees and moves them."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
import redis

from rota import InvalidOption, Job, JobNotFound, JobState, Rota, Task
from rota.client.session import session_of, sessions_of
from rota.core.job_options import Keep
from rota.core.job_record import ErrorRecord
from rota.core.job_record_codec import encode_error
from rota.store.job_store import JobStore
from rota.store.report_encoding import Failed
from tests.client.manual_worker import Hand, calls_of, move_to


@pytest.fixture
def send(rota: Rota) -> Task[[int], Any, Any]:
    @rota.task
    async def send(number: int) -> Any: ...

    return send


async def many(send: Task[[int], Any, Any], count: int, **options: Any) -> list[Job[Any]]:
    made = await send.client.enqueue_many(send.using(**options).call(n) for n in range(count))
    return [job for job in made if isinstance(job, Job)]


async def kill_all(hand: Hand, count: int, *, error: str = "ValueError", queue: str = "default") -> None:
    """The next jobs of the queue become dead letters."""
    text = encode_error(ErrorRecord(type=error, message=f"{error} happened"))
    rule = Keep().retention(JobState.FAILED)
    claimed = await hand.claim(count, queue=queue)
    assert len(claimed) == count
    reports = [Failed(job.run, job.claim, "final", rule, text) for job in claimed]
    assert await hand.store.report(queue, reports) == {}


# --- queues ----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("on_each")
async def test_a_queue_tells_how_it_stands(rota: Rota, send: Task[[int], Any, Any], hand: Hand) -> None:
    assert await rota.queues() == []
    jobs = await many(send, 6)
    for job, state in zip(
        jobs, [JobState.COMPLETED, JobState.FAILED, JobState.SCHEDULED, JobState.PROCESSING], strict=False
    ):
        await move_to(job, state, hand)
    await jobs[4].cancel()
    await send.using(queue="another").enqueue(1)
    expected = {state.value: 1 for state in JobState} | {"blocked": 0}

    info = await rota.queue().info()

    assert (info.name, info.is_paused, info.counts) == ("default", False, expected)
    assert await rota.queue().counts() == expected
    assert info.totals == {"run": 6, "completed": 1, "failed": 1, "cancelled": 1, "redriven": 0, "deleted": 0}
    assert info.oldest_pending_ms is not None
    assert 0 <= info.oldest_pending_ms < 5_000
    both = await rota.queues()
    assert [queue.name for queue in both] == ["another", "default"]
    assert both[1].counts == expected


async def test_a_queue_that_was_never_used_is_empty(rota: Rota) -> None:
    info = await rota.queue("unheard-of").info()

    assert (set(info.counts.values()), info.oldest_pending_ms, info.is_paused) == ({0}, None, False)
    assert await rota.queue("unheard-of").purge() == 0


async def test_the_age_of_the_oldest_is_reported_at_any_priority(rota: Rota, send: Task[[int], Any, Any]) -> None:
    await send.using(priority=-100).enqueue(1)

    age = (await rota.queue().info()).oldest_pending_ms

    assert age is not None
    assert 0 <= age < 5_000


def test_a_queue_has_a_name(rota: Rota) -> None:
    assert (rota.queue().name, repr(rota.queue("mail"))) == ("default", "<Queue mail>")
    names: list[Any] = ["", "a b", "x" * 65, 5]
    for name in names:
        with pytest.raises(InvalidOption, match="queue"):
            rota.queue(name)


@pytest.mark.usefixtures("on_each")
async def test_a_pause_stops_claims_of_one_queue_and_nothing_else(
    rota: Rota, send: Task[[int], Any, Any], hand: Hand
) -> None:
    running = await send.enqueue(1)
    claimed = await hand.take(running)
    queue = rota.queue()
    await queue.pause()
    await queue.pause()

    waiting = await send.enqueue(2)
    other = await send.using(queue="other").enqueue(3)

    assert (await queue.info()).is_paused
    assert await hand.claim(queue="default") == []
    assert await hand.complete(claimed) == "ok"
    await hand.take(other)
    await queue.resume()
    await queue.resume()
    assert not (await queue.info()).is_paused
    await hand.take(waiting)


@pytest.mark.usefixtures("on_each")
async def test_a_purge_takes_all_that_waits_and_leaves_the_rest(
    rota: Rota, send: Task[[int], Any, Any], hand: Hand
) -> None:
    ended, running = await send.enqueue(1), await send.using(id="running").enqueue(2)
    await hand.finish(ended)
    claimed = await hand.take(running)
    await many(send, 1_200)
    await many(send, 30, delay=60, expires=90)
    backoff = await send.using(priority=-1).enqueue(3)
    await move_to(backoff, JobState.SCHEDULED, hand)
    named = await send.using(id="again").enqueue(4)
    elsewhere = await send.using(queue="other").enqueue(5)

    assert await rota.queue().purge() == 1_232

    counts = await rota.queue().counts()
    assert {state: count for state, count in counts.items() if count} == {"processing": 1, "completed": 1}
    assert await elsewhere.state() == JobState.PENDING
    with pytest.raises(JobNotFound):
        await named.state()
    assert (await send.using(id="again").enqueue(6)).is_new
    assert await hand.complete(claimed) == "ok"


async def test_what_is_enqueued_while_a_purge_goes_on_stays(
    rota: Rota, send: Task[[int], Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    await many(send, 1_100)
    purge, late = JobStore.purge, list[Job[Any]]()

    async def purge_and_enqueue(*args: Any, **kwargs: Any) -> Any:
        gone = await purge(*args, **kwargs)
        late.append(await send.using(priority="critical").enqueue(0))
        late.append(await send.using(delay=60).enqueue(0))
        return gone

    monkeypatch.setattr(JobStore, "purge", purge_and_enqueue)

    assert await rota.queue().purge() == 1_100

    assert len(late) >= 6
    assert {await job.state() for job in late} == {JobState.PENDING, JobState.SCHEDULED}


async def test_workers_are_listed_while_they_are_registered(rota: Rota, hand: Hand, raw: redis.Redis) -> None:
    assert await rota.workers() == []
    await hand.store.renew_registration('{"queues": ["default"], "state": "active"}')
    gone = sessions_of(rota).connect("w2")
    await gone.renew_registration('{"queues": ["mail"], "state": "stopped"}')
    silent = sessions_of(rota).connect("w3")
    await silent.renew_registration('{"queues": ["mail"], "state": "active"}')
    raw.zadd(sessions_of(rota).keys.shared("worker_seen"), {"w3": await session_of(rota).views.now() - 60_000})

    workers = {worker.id: worker for worker in await rota.workers()}

    assert {name: worker.status for name, worker in workers.items()} == {"w1": "ALIVE", "w2": "DEAD", "w3": "DEAD"}
    assert workers["w1"].info["queues"] == ["default"]
    assert workers["w1"].silent_ms < 5_000 < 60_000 <= workers["w3"].silent_ms
    for store in (gone, silent):
        await store.redis.close()


# --- dead letters ----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("on_each")
async def test_dead_letters_are_listed_redriven_and_deleted_by_filter(
    rota: Rota, send: Task[[int], Any, Any], hand: Hand
) -> None:
    @rota.task
    async def other(number: int) -> None: ...

    await many(send, 5)
    await kill_all(hand, 3)
    await kill_all(hand, 2, error="KeyError")
    await other.enqueue(1)
    await kill_all(hand, 1)
    await send.using(queue="mail").enqueue(7)
    await kill_all(hand, 1, queue="mail")

    async def left(**filters: Any) -> int:
        return len((await rota.dead.list(**filters)).jobs)

    assert [await left(), await left(error="KeyError"), await left(task="other"), await left(queue="mail")] == [
        7,
        2,
        1,
        1,
    ]
    assert await rota.dead.redrive(error="KeyError") == 2
    assert [await left(), await left(error="KeyError")] == [5, 0]
    assert (await rota.queue().counts())["pending"] == 2
    assert await rota.dead.delete(task="other") == 1
    assert await rota.dead.redrive(queue="mail") == 1
    assert await rota.dead.redrive(limit=0) == 0
    assert await rota.dead.redrive(limit=1) == 1
    assert await rota.dead.delete(limit=1) == 1
    assert await left() == 1
    assert await rota.dead.delete(text="VALUEERROR happened") == 1
    assert await left() == 0
    assert await rota.dead.redrive() == await rota.dead.delete() == 0


async def test_many_dead_letters_are_handled_in_few_calls_and_connections(
    rota: Rota, send: Task[[int], Any, Any], hand: Hand, raw: redis.Redis
) -> None:
    await many(send, 1_000)
    for _ in range(2):
        await kill_all(hand, 500)
    before = calls_of(raw, "evalsha")

    assert await rota.dead.redrive() == 1_000
    assert calls_of(raw, "evalsha") - before <= 50
    for _ in range(2):
        await kill_all(hand, 500)
    assert await rota.dead.delete() == 1_000
    assert len(raw.client_list()) < 100


async def test_a_dead_letter_whose_id_has_a_new_run_is_not_counted(
    rota: Rota, send: Task[[int], Any, Any], hand: Hand
) -> None:
    dead = await send.using(id="x").enqueue(1)
    await hand.kill_off(dead)
    await send.using(id="x").enqueue(2)

    assert await rota.dead.redrive() == 0
    assert await dead.state() == JobState.FAILED


async def test_what_fails_again_while_all_are_redriven_is_not_redriven_twice(
    rota: Rota, send: Task[[int], Any, Any], hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    await many(send, 450)
    await kill_all(hand, 450)
    redrive = JobStore.redrive

    async def redrive_and_fail(*args: Any, **kwargs: Any) -> Any:
        outcomes = await redrive(*args, **kwargs)
        await kill_all(hand, len(outcomes))
        return outcomes

    monkeypatch.setattr(JobStore, "redrive", redrive_and_fail)

    assert await rota.dead.redrive() == 450
    assert (await rota.queue().counts())["failed"] == 450


async def test_redriving_can_be_slowed_down(rota: Rota, send: Task[[int], Any, Any], hand: Hand) -> None:
    await many(send, 10)
    await kill_all(hand, 10)
    started = time.monotonic()

    assert await rota.dead.redrive(per_second=50) == 10

    assert time.monotonic() - started >= 0.15


@pytest.mark.parametrize(("option", "value"), [("per_second", 0), ("per_second", -1), ("limit", -1), ("queue", "a b")])
async def test_a_bad_order_is_refused_and_moves_nothing(
    rota: Rota, send: Task[[int], Any, Any], hand: Hand, option: str, value: Any
) -> None:
    await many(send, 1)
    await kill_all(hand, 1)

    with pytest.raises(InvalidOption, match=option):
        await rota.dead.redrive(**{option: value})
    if option != "per_second":
        with pytest.raises(InvalidOption, match=option):
            await rota.dead.delete(**{option: value})

    assert (await rota.queue().counts())["failed"] == 1


async def test_two_who_redrive_at_once_share_the_work(rota: Rota, send: Task[[int], Any, Any], hand: Hand) -> None:
    await many(send, 300)
    await kill_all(hand, 300)

    counts = await asyncio.gather(*(rota.dead.redrive() for _ in range(3)))

    assert sum(counts) == 300
    assert (await rota.queue().counts())["pending"] == 300
