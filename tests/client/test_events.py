"""The event stream: hints that can be resumed, and that say so when some were missed."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import pytest
import redis

from rota import Event, InvalidOption, Job, Keep, Rota, StoreUnavailable, Task
from rota.client.session import sessions_of
from tests.client.manual_worker import Hand, connections_of
from tests.eventually import eventually
from tests.servers import OwnServers


@pytest.fixture
def send(rota: Rota) -> Task[[], Any, Any]:
    @rota.task
    async def send() -> Any: ...

    return send


class Follower:
    """Follows in the background, so that the test can act meanwhile."""

    def __init__(self, events: AsyncIterator[Event]) -> None:
        self._events = events
        self.heard: list[Event] = []
        self.task = asyncio.create_task(self._follow())

    async def _follow(self) -> None:
        async for event in self._events:
            self.heard.append(event)

    @property
    def verbs(self) -> list[str]:
        return [event.verb for event in self.heard]

    async def wait_for(self, count: int, timeout: float = 10) -> list[Event]:
        def is_there() -> bool:
            if self.task.done():
                self.task.result()
            return len(self.heard) >= count

        await eventually(is_there, timeout)
        return self.heard


@contextlib.asynccontextmanager
async def following(rota: Rota, **options: Any) -> AsyncGenerator[Follower]:
    follower = Follower(rota.events(**options))
    await asyncio.sleep(0.1)  # nothing can be seen of it from outside
    try:
        yield follower
    finally:
        follower.task.cancel()
        await asyncio.gather(follower.task, return_exceptions=True)


@pytest.mark.usefixtures("on_each")
async def test_events_are_delivered_as_they_happen(rota: Rota, send: Task[[], Any, Any], hand: Hand) -> None:
    await send.enqueue()
    async with following(rota) as follower:
        job = await send.enqueue()
        await follower.wait_for(1)
        for claimed in await hand.claim(2, queue="default"):
            await hand.complete(claimed)

        heard = await follower.wait_for(4)

    told = [(event.queue, event.verb, event.runs) for event in heard]
    assert told[0] == ("default", "enqueue", (job.run,))
    assert [verb for _, verb, _ in told] == ["enqueue", "claim", "completed", "completed"]
    assert len({event.id for event in heard}) == 4
    enqueued_at = (await job.refresh()).enqueued_at
    assert all(abs(event.at - enqueued_at) < 60_000 for event in heard)


async def test_one_entry_tells_of_all_that_moved_together(rota: Rota, send: Task[[], Any, Any]) -> None:
    await send.enqueue()
    async with following(rota) as follower:
        jobs = await rota.enqueue_many([send.call()] * 5)

        (event,) = await follower.wait_for(1)

    assert event.runs == tuple(job.run for job in jobs if isinstance(job, Job))


async def test_queues_can_be_chosen(rota: Rota, send: Task[[], Any, Any]) -> None:
    async with following(rota, queues=["a", "b"]) as follower:
        for queue in ("c", "a", "default", "b"):
            await send.using(queue=queue).enqueue()

        heard = await follower.wait_for(2)

    assert [event.queue for event in heard] == ["a", "b"]


async def test_following_goes_on_where_it_was_left(rota: Rota, send: Task[[], Any, Any]) -> None:
    first = [await send.enqueue() for _ in range(3)]
    async with following(rota) as follower:
        second = [await send.enqueue() for _ in range(3)]
        heard = list(await follower.wait_for(3))
    missed = [await send.using(queue=queue).enqueue() for queue in ("default", "new", "default")]

    for place, event in enumerate(heard):
        async with following(rota, after=event.id) as follower:
            again = await follower.wait_for(2 - place + len(missed))
            runs = {(event.queue, run) for event in again for run in event.runs}
            assert runs == {(job.queue, job.run) for job in [*second[place + 1 :], *missed]}
            assert "reset" not in follower.verbs
    assert first[0].run not in [run for event in heard for run in event.runs]


async def test_a_queue_that_is_new_is_followed_too(
    rota: Rota, send: Task[[], Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rota.client.events.BLOCK_MS", 200)
    async with following(rota) as follower:  # there is no queue at all yet
        one = await send.enqueue()
        await follower.wait_for(1)
        other = await send.using(queue="other").enqueue()

        heard = await follower.wait_for(2)

    assert [(event.queue, event.runs) for event in heard] == [("default", (one.run,)), ("other", (other.run,))]


async def test_a_follower_that_missed_events_gets_a_reset(
    rota: Rota, send: Task[[], Any, Any], raw: redis.Redis
) -> None:
    await send.enqueue()
    async with following(rota) as follower:
        await send.enqueue()
        position = (await follower.wait_for(1))[0].id
    for _ in range(4):
        await send.enqueue()
    raw.xtrim(sessions_of(rota).keys.queue("default", "events"), maxlen=2, approximate=False)

    async with following(rota, after=position) as follower:
        reset = (await follower.wait_for(1))[0]
        job = await send.enqueue()
        heard = list(await follower.wait_for(2))

    assert (reset.verb, reset.queue, reset.runs) == ("reset", "default", ())
    assert heard[-1].runs == (job.run,)
    async with following(rota, after=reset.id) as follower:
        assert "reset" not in [event.verb for event in await follower.wait_for(1)]


async def test_a_follower_that_started_before_the_first_event_receives_it(
    rota: Rota, send: Task[[], Any, Any], raw: redis.Redis
) -> None:
    async with following(rota, queues=["default", "other"]) as follower:
        await send.using(queue="other").enqueue()
        position = (await follower.wait_for(1))[0].id
    for _ in range(4):
        await send.enqueue()

    async with following(rota, queues=["default", "other"], after=position) as follower:
        assert [event.verb for event in await follower.wait_for(4)] == ["enqueue"] * 4
    raw.xtrim(sessions_of(rota).keys.queue("default", "events"), maxlen=2, approximate=False)
    async with following(rota, queues=["default", "other"], after=position) as follower:
        assert (await follower.wait_for(1))[0].verb == "reset"


async def test_a_follower_that_is_too_slow_gets_an_error(
    rota: Rota, send: Task[[], Any, Any], raw: redis.Redis
) -> None:
    await send.enqueue()
    events = rota.events()
    first = asyncio.ensure_future(anext(events))
    await eventually(lambda: any(client["cmd"] == "xread" for client in raw.client_list()))
    await send.enqueue()
    assert (await first).verb == "enqueue"
    # While it does something else, more comes than is kept.
    key = sessions_of(rota).keys.queue("default", "events")
    with raw.pipeline(transaction=False) as pipe:
        for _ in range(1_500):
            pipe.xadd(key, {"claim": "000000001"})
        pipe.xtrim(key, maxlen=700, approximate=False)
        pipe.execute()

    assert (await anext(events)).verb == "reset"
    await events.aclose()


def made_up(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "after",
    [
        "x",
        "ü",
        "AAAA",
        made_up([]),
        made_up({"default": 5}),
        made_up({"default": "x"}),
        made_up({"default": "1-2-3"}),
        made_up({"default": ""}),
        made_up({"default": "-1"}),
        made_up({"default": " 1"}),
        made_up({"default": "1-"}),
        made_up({"default": f"{2**64}-0"}),
        made_up({"default": "١-0"}),
        made_up({"default": "$"}),
    ],
)
async def test_what_is_no_id_of_an_event_is_refused(rota: Rota, send: Task[[], Any, Any], after: str) -> None:
    await send.enqueue()

    with pytest.raises(InvalidOption, match="after"):
        await asyncio.wait_for(anext(aiter(rota.events(after=after))), 5)


async def test_a_bad_queue_is_refused(rota: Rota) -> None:
    with pytest.raises(InvalidOption, match="queue"):
        await anext(aiter(rota.events(queues=["a b"])))


async def test_reading_again_and_again_uses_one_connection(own_server: OwnServers, namespace: str) -> None:
    server = own_server()
    async with Rota(server.url, namespace=namespace) as rota:
        send = rota.task(name="send")(_nothing)
        await send.enqueue()
        async with following(rota) as follower:
            with server.client() as raw:
                before = connections_of(raw)
                for count in range(1, 20):
                    await send.enqueue()
                    await follower.wait_for(count)

                assert connections_of(raw) - before <= 2


async def test_who_stops_following_leaves_no_connection(own_server: OwnServers, namespace: str) -> None:
    server = own_server()
    async with Rota(server.url, namespace=namespace) as rota:
        await rota.task(name="send")(_nothing).enqueue()
        with server.client() as raw:
            before = len(raw.client_list())
            async with following(rota) as follower:
                await eventually(lambda: len(raw.client_list()) > before)
            assert follower.task.cancelled()
            await eventually(lambda: len(raw.client_list()) == before)


async def test_following_survives_a_restart_and_ends_with_a_clear_error(own_server: OwnServers, namespace: str) -> None:
    server = own_server(appendonly="yes", appendfsync="always")
    async with Rota(server.url, namespace=namespace, patience=2) as rota:
        send = rota.task(name="send")(_nothing)
        await send.enqueue()
        async with following(rota) as follower:
            await asyncio.to_thread(server.restart)
            await send.enqueue()
            await follower.wait_for(1)
            server.kill()
            with pytest.raises(StoreUnavailable):
                await follower.wait_for(2)


async def _nothing() -> Any: ...


async def test_events_of_one_task_leave_others_out(rota: Rota, send: Task[[], Any, Any]) -> None:
    @rota.task(keep=Keep(finished=0, failed=0))
    async def brief() -> None: ...

    async with following(rota, task="brief") as follower:
        made = await rota.enqueue_many([send.call(), brief.call(), send.call(), brief.call()])
        mixed = [job for job in made if isinstance(job, Job)]
        runs = [job.ref.run for job in mixed]
        await follower.wait_for(1)
        for job in mixed:
            await job.cancel()  # nothing is kept of the brief ones then
        await follower.wait_for(3)

    assert [(event.verb, event.runs) for event in follower.heard] == [
        ("enqueue", (runs[1], runs[3])),
        ("cancelled", (runs[1],)),
        ("cancelled", (runs[3],)),
    ]


async def test_events_of_a_task_beyond_the_hundred_that_have_a_number(rota: Rota) -> None:
    def noop() -> None: ...

    tasks = [rota.task(name=f"t{number}")(noop) for number in range(103)]
    async with following(rota, task="t102") as follower:
        made = await rota.enqueue_many(task.call() for task in tasks)
        await follower.wait_for(1)

    last = made[102]
    assert isinstance(last, Job)
    assert [event.runs for event in follower.heard] == [(last.ref.run,)]
