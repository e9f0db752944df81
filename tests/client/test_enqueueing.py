"""Enqueueing: one or many, in order, in few round trips, and unharmed by callers that leave."""

from __future__ import annotations

import asyncio
import gc
import json
from typing import Any, cast

import pytest
import redis

from rota import (
    Call,
    IdInUse,
    Ignore,
    InvalidArguments,
    InvalidJob,
    InvalidOption,
    Job,
    JobNotFound,
    JobState,
    Middleware,
    Reject,
    Rota,
    UnknownTask,
)
from rota.client.session import sessions_of
from rota.core.job_record_codec import decode_arguments
from tests.client.manual_worker import Hand, calls_of, connections_of, dump, job_keys
from tests.leaks import delete_keys
from tests.servers import OwnServers, Server

pytestmark = pytest.mark.usefixtures("rota")


def handle(outcome: Job[Any] | IdInUse) -> Job[Any]:
    assert isinstance(outcome, Job)
    return outcome


async def numbers(hand: Hand, limit: int, queue: str = "default") -> list[int]:
    """The first argument of each job that a claim brings, in order."""
    claimed = await hand.claim(limit, queue=queue)
    return [decode_arguments(job.record.split(b"\n", 3)[3])[0][0] for job in claimed]


@pytest.fixture
def count(rota: Rota) -> Any:
    @rota.task
    async def count(number: int) -> int:
        return number

    return count


@pytest.mark.usefixtures("on_each")
async def test_five_thousand_jobs_are_stored_in_order_and_in_few_calls(
    rota: Rota, hand: Hand, count: Any, raw: redis.Redis
) -> None:
    before = calls_of(raw, "evalsha") + calls_of(raw, "eval")

    jobs = await rota.enqueue_many(count.call(n) for n in range(5_000))

    assert calls_of(raw, "evalsha") + calls_of(raw, "eval") - before <= 15  # ten batches, and scripts that it may lack
    assert len({handle(job).id for job in jobs}) == 5_000
    assert [handle(job).run for job in jobs] == sorted(handle(job).run or "" for job in jobs)
    assert (await rota.queue().counts())["pending"] == 5_000
    taken = [number for _ in range(10) for number in await numbers(hand, 500)]
    assert taken == list(range(5_000))


async def test_jobs_of_several_queues_keep_their_places_in_the_answer(rota: Rota, hand: Hand, count: Any) -> None:
    calls = [count.using(queue=f"q{n % 3}").call(n) for n in range(30)]

    jobs = [handle(job) for job in await rota.enqueue_many(calls)]

    assert [job.queue for job in jobs] == [f"q{n % 3}" for n in range(30)]
    assert [json.loads((await job.refresh()).arguments) for job in jobs] == [[n] for n in range(30)]
    for place in range(3):
        assert await numbers(hand, 100, f"q{place}") == list(range(place, 30, 3))


async def test_each_of_many_has_its_own_outcome(rota: Rota, count: Any) -> None:
    held = await count.using(id="held").enqueue(0)

    outcomes = await rota.enqueue_many(
        [
            count.using(id="new").call(1),
            count.using(id="held", on_same_id=Reject()).call(2),
            count.using(id="held", on_same_id=Ignore()).call(3),
            count.using(id="new", on_same_id=Reject()).call(4),
            count.call(5),
        ],
        on_refused="return",
    )

    new, refused, ignored, twice, plain = outcomes
    assert handle(new).is_new
    assert isinstance(refused, IdInUse)
    assert (refused.job_id, refused.run) == ("default:held", held.run)
    assert (ignored, handle(ignored).is_new) == (held, False)
    assert isinstance(twice, IdInUse)
    assert twice.run == handle(new).run
    assert handle(plain).is_new
    assert (await rota.queue().counts())["pending"] == 3


async def test_a_refusal_among_many_is_raised_once_the_others_are_stored(rota: Rota, count: Any) -> None:
    held = await count.using(id="held").enqueue(0)
    calls = [count.using(id="held", on_same_id=Reject()).call(1), count.call(2), count.call(3)]

    with pytest.raises(IdInUse) as refusal:
        await rota.enqueue_many(calls)

    assert (refusal.value.job_id, refusal.value.run) == ("default:held", held.run)
    (note,) = refusal.value.__notes__
    assert note.startswith("1 of 3 calls were refused, 2 stored")
    assert (await rota.queue().counts())["pending"] == 3


async def test_what_happens_to_refusals_is_one_of_two_words(rota: Rota, count: Any) -> None:
    with pytest.raises(InvalidOption, match="neither raise nor return"):
        await rota.enqueue_many([count.call(1)], on_refused=cast(Any, "ignore"))

    assert (await rota.queue().counts())["pending"] == 0


async def test_jobs_of_one_call_may_come_after_each_other_in_any_order(rota: Rota, count: Any) -> None:
    last = count.using(id="last", queue="other", after=["default:first", "default:middle"]).call(3)
    middle = count.using(id="middle", after=["default:first"]).call(2)
    first = count.using(id="first").call(1)

    jobs = [handle(job) for job in await rota.enqueue_many([last, first, middle])]

    assert [job.id for job in jobs] == ["other:last", "default:first", "default:middle"]
    assert [await job.state() for job in jobs] == ["blocked", "pending", "blocked"]
    obstacle = (await jobs[0].refresh()).obstacle
    assert obstacle is not None
    assert set(obstacle.jobs) == {"default:first", "default:middle"}


@pytest.mark.parametrize(
    ("after", "refusal"),
    [
        ("default:c", "dependency cycle: default:b, default:c, default:b"),
        ("default:nobody", "default:nobody does not exist"),
    ],
)
async def test_a_batch_that_cannot_be_tied_together_is_refused_and_leaves_nothing(
    rota: Rota, count: Any, raw: redis.Redis, namespace: str, after: str, refusal: str
) -> None:
    calls = [
        count.using(id="a").call(1),
        count.using(id="b", after=["default:a", after]).call(2),
        count.using(id="c", after=["default:b"]).call(3),
    ]

    with pytest.raises((InvalidOption, JobNotFound), match=refusal):
        await rota.enqueue_many(calls)

    assert job_keys(raw, namespace) == {}


async def test_what_is_no_call_cannot_be_enqueued(rota: Rota) -> None:
    with pytest.raises(InvalidJob, match="only calls can be enqueued"):
        await rota.enqueue_many([cast("Any", 3)])


async def test_a_bad_call_raises_when_it_is_made_and_nothing_of_the_batch_is_stored(
    rota: Rota, count: Any, raw: redis.Redis, namespace: str
) -> None:
    with pytest.raises(InvalidArguments):
        await rota.enqueue_many(count.call(n) for n in (1, 2, "three", 4))

    assert dump(raw, namespace) == {}


async def test_nothing_to_enqueue_is_nothing(rota: Rota, raw: redis.Redis, namespace: str) -> None:
    assert await rota.enqueue_many([]) == []
    assert job_keys(raw, namespace) == {}


async def test_calls_made_together_travel_together(own_server: OwnServers, namespace: str) -> None:
    server = own_server()
    async with Rota(server.url, namespace=namespace) as rota:
        send = rota.task(name="send")(_nothing)
        with server.client() as raw:
            connections = connections_of(raw)

            jobs = await asyncio.gather(*(send.enqueue() for _ in range(1_000)))

            sent = {name: calls_of(raw, name) for name in ("evalsha", "eval", "sadd")}
            opened = connections_of(raw) - connections
            await asyncio.gather(*(send.enqueue() for _ in range(1_000)))
            again = calls_of(raw, "evalsha")
        assert len({job.id for job in jobs}) == 1_000
        assert [job.run for job in jobs] == sorted(job.run or "" for job in jobs)
        assert sent["evalsha"] + sent["eval"] <= 8, "three scripts that the server lacks, and a second batch"
        assert again - sent["evalsha"] <= 4
        assert sent["sadd"] == 1, "its queue is listed once"
        assert opened <= 3


async def test_many_questions_at_once_do_not_need_a_connection_each(own_server: OwnServers, namespace: str) -> None:
    server = own_server(maxclients="60")
    async with Rota(server.url, namespace=namespace) as rota:
        job = await rota.task(name="send")(_nothing).enqueue()

        states = await asyncio.gather(*(job.state() for _ in range(500)))

        assert set(states) == {JobState.PENDING}


async def test_a_caller_that_leaves_does_not_harm_the_others(rota: Rota, hand: Hand, count: Any) -> None:
    await count.enqueue(0)
    callers = [asyncio.create_task(count.enqueue(n)) for n in range(1, 101)]
    await asyncio.sleep(0)
    for caller in callers[::3]:
        caller.cancel()

    outcomes = await asyncio.gather(*callers, return_exceptions=True)

    assert [isinstance(outcome, asyncio.CancelledError) for outcome in outcomes] == [n % 3 == 0 for n in range(100)]
    job = await count.enqueue(1_000)
    assert await job.state() == JobState.PENDING
    taken = await numbers(hand, 500)
    assert taken == sorted(set(taken))
    stayed = {n for n in range(1, 101) if (n - 1) % 3}
    assert stayed <= set(taken)


async def test_a_cancelled_batch_is_stored_as_a_whole_or_not_at_all(rota: Rota, count: Any) -> None:
    await count.enqueue(0)
    batch = asyncio.create_task(rota.enqueue_many(count.call(n) for n in range(100)))
    for _ in range(3):  # turns of the loop in which it is sent; the answer takes longer
        await asyncio.sleep(0)
    batch.cancel()
    with pytest.raises(asyncio.CancelledError):
        await batch

    await count.enqueue(1)

    assert (await rota.queue().counts())["pending"] in (2, 102)


async def test_one_queue_that_cannot_be_used_does_not_spoil_the_next_call(
    rota: Rota, count: Any, raw: redis.Redis
) -> None:
    # A foreign key has the name that the queue's key would have.
    raw.set(sessions_of(rota).keys.queue("broken", "jobs"), "x")
    with pytest.raises(Exception, match="WRONGTYPE"):
        await rota.enqueue_many([count.using(queue="broken").call(1), count.using(queue="fine").call(2)])
    raw.delete(sessions_of(rota).keys.queue("broken", "jobs"))

    jobs = await rota.enqueue_many([count.using(queue="broken").call(3), count.using(queue="fine").call(4)])

    assert [await handle(job).state() for job in jobs] == [JobState.PENDING] * 2


async def test_a_queue_is_listed_again_after_the_server_has_lost_its_data(
    rota: Rota, count: Any, raw: redis.Redis, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await count.enqueue(1)
    delete_keys(raw, namespace)
    monkeypatch.setattr("rota.client.shard_directory.REFRESH_S", 0)

    await count.enqueue(2)

    assert [queue.name for queue in await rota.queues()] == ["default"]


class Stamp(Middleware):
    def __init__(self, name: str, seen: list[str]) -> None:
        self.name, self.seen = name, seen

    async def enqueue(self, call: Call[Any]) -> Call[Any]:
        self.seen.append(f"{self.name} {call.task.name}")
        if call.task.name == "refused":
            raise InvalidJob("not here")
        return call.task.using(tags=[self.name]).call(7) if self.name == "b" else call


async def test_middleware_sees_and_may_change_or_refuse_every_call(
    valkey: Server, raw: redis.Redis, namespace: str
) -> None:
    seen: list[str] = []
    async with Rota(valkey.url, namespace=namespace, middleware=[Stamp("a", seen), Stamp("b", seen)]) as rota:
        count = rota.task(name="count")(_number)
        refused = rota.task(name="refused")(_number)

        job = await count.enqueue(1)

        assert seen == ["a count", "b count"]
        record = await job.refresh()
        assert (record.arguments, record.options.tags) == (b"[7]", ("b",))
        before = dump(raw, namespace)
        with pytest.raises(InvalidJob, match="not here"):
            await rota.enqueue_many([count.call(1), refused.call(1)])
        assert dump(raw, namespace) == before


async def test_an_unknown_task_is_not_found_by_name(rota: Rota) -> None:
    with pytest.raises(UnknownTask):
        rota.tasks.get("nobody")


def _nothing() -> None: ...


def _number(number: int) -> int:
    return number


def test_a_loop_that_ends_while_jobs_are_enqueued_leaves_no_task_behind(
    own_server: OwnServers, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    """As Ctrl-C does in `asyncio.run`: it cancels every task, and waits for no task that a cancelled one starts."""
    server = own_server()

    async def program() -> list[asyncio.Task[Any]]:
        async with Rota(server.url, namespace=namespace) as rota:
            send = rota.task(name="send")(_nothing)
            await send.enqueue()
            server.pause()
            callers = [asyncio.create_task(send.enqueue()) for _ in range(3)]
            for _ in range(3):  # turns of the loop in which the first is sent
                await asyncio.sleep(0)
        return callers

    callers = asyncio.run(program())
    server.resume()
    assert all(caller.cancelled() for caller in callers)
    del callers
    gc.collect()
    assert [record.message for record in caplog.records if record.name == "asyncio"] == []
