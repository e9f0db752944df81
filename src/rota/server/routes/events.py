"""`/api/events`: what happens, as it happens, over one connection that can be resumed exactly.

Each reader follows the store for itself, through a queue of bounded size, and hears at most four messages a second. One
that reads slowly, or not at all, fills its own queue and then stops following: nobody else notices, and when it reads
again it goes on where it was. Events are hints: ids and counts, never what jobs carry.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, Final

import msgspec
from fastapi import APIRouter, Header, Query
from fastapi.responses import StreamingResponse

from rota.core.job import JobRef
from rota.core.shapes import exact_moment
from rota.errors import RotaError, StoreError
from rota.events import EVERYWHERE, Event, check_position
from rota.server import shapes
from rota.server.problems import Problem, problem_of
from rota.server.schemas.base import FullId, QueueName
from rota.server.visits import Viewer, Visit

router = APIRouter(tags=["events"])

TOPICS: Final = ("jobs", "queues", "schedules", "stats", "workers", "workflows", "operations")
#: Of those, what belongs to no queue, by the verb of its events.
BEYOND: Final[Mapping[str, str]] = {"worker": "workers", "workflow": "workflows", "operation": "operations"}
#: Between two messages to one reader: what is shown is less than a second old.
PACE_S: Final = 0.25
#: A comment after this much silence keeps proxies from closing the connection.
HEARTBEAT_S: Final = 15.0
#: Events that wait for one reader.
QUEUED: Final = 500
#: Runs that one event names; it counts them all.
NAMED: Final = 50
#: Events about a queue, and not about its jobs; and about schedules.
QUEUE_VERBS: Final = frozenset({"pause", "resume"})
SCHEDULE_VERBS: Final = frozenset({"put_schedule", "pause_schedule", "remove_schedule"})
#: Where a verb leaves its runs, if there is only one state it can leave them in.
STATES: Final[Mapping[str, str]] = {
    "claim": "PROCESSING", "completed": "COMPLETED", "failed": "FAILED", "cancelled": "CANCELLED",
}  # fmt: skip


@router.get(
    "/api/events",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}, "description": "The stream."}},
)
async def follow_events(
    visit: Viewer,
    topics: Annotated[
        str, Query(max_length=100, description=f"Of {', '.join(TOPICS)}; with commas between.", pattern=r"^[a-z,]*$")
    ] = "jobs,queues",
    queue: Annotated[list[QueueName] | None, Query(max_length=100, description="Only of these.")] = None,
    job: Annotated[FullId | None, Query(description="Only of this job.")] = None,
    after: Annotated[str | None, Query(max_length=20_000, description="As Last-Event-ID.")] = None,
    last_event_id: Annotated[str | None, Header(max_length=20_000)] = None,
) -> StreamingResponse:
    """What happens, as server-sent events. Resume with the `Last-Event-ID` of the last; a `reset` says to read again.

    An event is `changes` with `changes: [{queue, verb, state, count, runs, at}]`: for topic jobs what happened to runs,
    for queues `pause` and `resume`. Beside it stand, for other topics, `stats` by queue, and the ids of `schedules`,
    `workers`, `workflows` and `operations` that changed.
    """
    wanted = frozenset(topics.split(",")) & frozenset(TOPICS)
    if not wanted:
        raise Problem(422, "invalid", f"topics: {topics!r} names none of {', '.join(TOPICS)}")
    beyond = wanted & frozenset(BEYOND.values())
    if beyond:
        visit.check_unlimited(" and ".join(sorted(beyond)))
    run = await _run_of(visit, job) if job is not None else None
    queues = await _queues(visit, queue, job)
    server = visit.server
    if server.readers >= server.settings.max_readers:
        raise Problem(
            503,
            "too_many_readers",
            f"{server.readers} readers follow already: try again later",
            headers={"Retry-After": "5"},
        )
    # What would be refused is refused here, where it is still an answer and not the end of a stream.
    position = last_event_id or after
    if position:
        check_position(position)
    await visit.rota.check()
    events = visit.rota.events(queues=queues, after=position or None, beyond=bool(beyond), pace=PACE_S)
    stream = Stream(visit, events, wanted, run)
    return StreamingResponse(
        stream.messages(),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _queues(visit: Visit, queues: Sequence[str] | None, job: str | None) -> list[str] | None:
    if job is not None:
        return [JobRef.parse(job).queue]
    for name in queues or ():
        visit.check_queue(name)
    return list(queues or visit.identity.queues) or None


async def _run_of(visit: Visit, job: str) -> str | None:
    ref = JobRef.parse(job)
    visit.check_queue(ref.queue)
    return (await visit.server.reads.get(ref)).record.ref.run


class Stream:
    """One reader."""

    def __init__(self, visit: Visit, events: AsyncGenerator[Event], topics: frozenset[str], run: str | None) -> None:
        self._visit = visit
        self._events = events
        self._topics = topics
        self._run = run
        #: None says that no more will come.
        self._queue: asyncio.Queue[Event | RotaError] = asyncio.Queue(QUEUED)

    async def messages(self) -> AsyncGenerator[bytes]:
        """What is sent, for as long as the reader stays."""
        server = self._visit.server
        server.readers += 1
        pump = asyncio.create_task(self._pump(), name="rota-events")
        try:
            yield b"retry: 1000\n\n"
            while True:
                try:
                    async with asyncio.timeout(HEARTBEAT_S):
                        first = await self._queue.get()
                except TimeoutError:
                    yield b": still here\n\n"
                    continue
                await asyncio.sleep(PACE_S)
                found = [first, *self._waiting()]
                last = found[-1]
                message = await self._message([one for one in found if isinstance(one, Event)])
                if message:
                    yield message
                if isinstance(last, RotaError):
                    yield _encode("trouble", {"message": problem_of(last).message}, None)
                    return
        finally:
            server.readers -= 1
            pump.cancel()
            with suppress(asyncio.CancelledError):
                await pump

    async def _pump(self) -> None:
        """From the store into the queue, which holds it up when it is full."""
        try:
            async for event in self._events:
                await self._queue.put(event)
        except RotaError as error:
            await self._queue.put(error)
        finally:
            await self._events.aclose()

    def _waiting(self) -> list[Event | RotaError]:
        return [self._queue.get_nowait() for _ in range(self._queue.qsize())]

    async def _message(self, events: Sequence[Event]) -> bytes:
        if not events:
            return b""
        last = events[-1].id
        if any(event.verb == "reset" for event in events):
            return _encode("reset", {"queues": sorted({event.queue for event in events})}, last)
        changes: dict[tuple[str, str], dict[str, Any]] = {}
        others: dict[str, dict[str, None]] = {}
        for event in events:
            if event.queue == EVERYWHERE:
                others.setdefault(BEYOND.get(event.verb, ""), {}).update(dict.fromkeys(event.runs))
            elif event.verb in SCHEDULE_VERBS:
                others.setdefault("schedules", {}).update({f"{event.queue}:{name}": None for name in event.runs})
            elif self._is_wanted(event):
                _add(changes, event)
        for change in changes.values():
            change["at"] = exact_moment(change["at"])
        body: dict[str, Any] = {"changes": list(changes.values())}
        body |= {topic: list(ids) for topic, ids in others.items() if topic in self._topics and self._run is None}
        if "stats" in self._topics:
            body["stats"] = await self._stats(sorted({event.queue for event in events} - {EVERYWHERE}))
        if not any(body.values()):
            # Nothing for this reader; but it shall not be told of it again.
            return f"id: {last}\n\n".encode()
        return _encode("changes", body, last)

    def _is_wanted(self, event: Event) -> bool:
        if event.verb in QUEUE_VERBS:
            return "queues" in self._topics and self._run is None
        return "jobs" in self._topics and (self._run is None or self._run in event.runs)

    async def _stats(self, queues: list[str]) -> dict[str, Any]:
        try:
            infos = await self._visit.rota.views.queue_infos(queues)
        except StoreError:
            return {}  # the next event brings them, or the trouble itself
        return {info.name: shapes.stats(info.counts) for info in infos}


def _add(changes: dict[tuple[str, str], dict[str, Any]], event: Event) -> None:
    """Counts an event with others of its queue and verb; some of its runs are named."""
    change = changes.setdefault(
        (event.queue, event.verb),
        {
            "queue": event.queue, "verb": event.verb, "state": STATES.get(event.verb), "count": 0, "runs": [],
            "at": event.at,
        },
    )  # fmt: skip
    change["count"] += len(event.runs)
    change["runs"] += event.runs[: NAMED - len(change["runs"])]
    change["at"] = event.at


def _encode(event: str, data: dict[str, Any], last: str | None) -> bytes:
    head = f"id: {last}\n" if last is not None else ""
    return f"{head}event: {event}\ndata: ".encode() + msgspec.json.encode(data) + b"\n\n"
