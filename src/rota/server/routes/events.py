"""`/api/events`: what happens, as it happens, over one connection that can be resumed exactly.

The store is followed once for all readers (`feed`). Each has what it has not been told yet put together, and hears at
most four messages a second. One that reads slowly, or not at all, gets fewer messages that say more: nobody else
notices, and when it reads again it goes on where it was. Events are hints: ids and counts, never what jobs carry.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Annotated, Any, Final, Self

import msgspec
from fastapi import APIRouter, Header, Query
from fastapi.responses import StreamingResponse
from starlette.types import Message, Send

from rota.core.job import JobRef
from rota.core.shapes import exact_moment
from rota.errors import RotaError, StoreError
from rota.events import EVERYWHERE, Moved, OfTask, Stretch, cursor_of, positions_of, read_between
from rota.server import shapes
from rota.server.feed import PACE_S, put_together
from rota.server.problems import Problem, problem_of
from rota.server.schemas.base import FullId, QueueName
from rota.server.visits import Viewer, Visit

logger = logging.getLogger("rota.server")
router = APIRouter(tags=["events"])

TOPICS: Final = ("jobs", "queues", "schedules", "stats", "workers", "workflows", "operations")
#: Of those, what belongs to no queue, by the verb of its events.
BEYOND: Final[Mapping[str, str]] = {"worker": "workers", "workflow": "workflows", "operation": "operations"}
#: A comment after this much silence keeps proxies from closing the connection.
HEARTBEAT_S: Final = 15.0
#: A reader that takes nothing for this long is let go: there is only room for so many.
STALLED_S: Final = 60.0
#: Runs that one event names; it counts them all.
NAMED: Final = 50
#: Ids of workers, workflows, operations and schedules that wait for one reader; beyond them it has to read again.
KEPT: Final = 1_000
#: Runs that wait for one reader of a single task to be sorted; beyond them it has to read again.
UNSORTED: Final = 20_000
#: Events about a queue, and not about its jobs; and about schedules.
QUEUE_VERBS: Final = frozenset({"pause", "resume"})
SCHEDULE_VERBS: Final = frozenset({"put_schedule", "pause_schedule", "remove_schedule", "fire", "run_schedule"})
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
    task: Annotated[str | None, Query(max_length=200, description="Only of jobs of this task.")] = None,
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
    given = positions_of(position) if position else None
    await visit.rota.check()
    of_task = OfTask((await visit.rota.checked_link()).search, task) if task is not None else None
    return EventStream(Reader(visit, wanted, queues, run, of_task, given))


async def _queues(visit: Visit, queues: Sequence[str] | None, job: str | None) -> frozenset[str] | None:
    """The names of all that is to be heard of, shards among them; None where that is everything."""
    if job is not None:
        chosen = [JobRef.parse(job).queue]
    else:
        for name in queues or ():
            visit.check_queue(name)
        chosen = list(queues or visit.identity.queues)
    if not chosen:
        return None
    link = await visit.rota.checked_link()
    return frozenset([name for queue in chosen for name in await link.names_of(queue)])


async def _run_of(visit: Visit, job: str) -> str | None:
    ref = JobRef.parse(job)
    visit.check_queue(ref.queue)
    return (await visit.server.reads.get(ref)).record.ref.run


class EventStream(StreamingResponse):
    """Sends a reader what it is to hear, once it follows; and lets one go that takes nothing."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        super().__init__(
            reader.messages(),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )

    async def stream_response(self, send: Send) -> None:
        """As long as the reader stays."""

        async def patiently(message: Message) -> None:
            async with asyncio.timeout(STALLED_S):
                await send(message)

        async with self._reader:
            try:
                await super().stream_response(patiently)
            except TimeoutError:
                logger.info("a reader of events that took nothing for %g s was let go", STALLED_S)


class Reader:
    """Somebody who follows: what it wants to hear, and what it has not been told yet."""

    def __init__(
        self,
        visit: Visit,
        topics: frozenset[str],
        queues: frozenset[str] | None,
        run: str | None,
        of_task: OfTask | None,
        given: Mapping[str, str] | None,
    ) -> None:
        self._visit = visit
        self._topics = topics
        self._queues = queues
        self._run = run
        self._of_task = of_task
        self._given = given
        self._is_beyond = bool(topics & frozenset(BEYOND.values()))
        self._head: Mapping[str, str] = {}
        self._untold = Untold()
        self._something = asyncio.Event()
        self._error: RotaError | None = None

    async def __aenter__(self) -> Self:
        self._visit.server.readers += 1
        try:
            self._head = await self._visit.server.feed.join(self)
        except BaseException:
            self._visit.server.readers -= 1
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self._visit.server.readers -= 1
        self._visit.server.feed.leave(self)

    def hear(self, stretch: Stretch) -> None:
        """Puts it together with what has not been told yet."""
        if self._note(stretch, self._untold):
            self._something.set()

    def fail(self, error: RotaError) -> None:
        """Nobody can say what happens any more: the reader is told, and has to come again."""
        self._error = error
        self._something.set()

    async def messages(self) -> AsyncGenerator[bytes]:
        """What is sent, for as long as the reader stays."""
        yield b"retry: 1000\n\n"
        if self._given is not None:
            async for message in self._missed(self._given):
                yield message
        while self._error is None or self._untold.after:
            try:
                async with asyncio.timeout(HEARTBEAT_S):
                    await self._something.wait()
            except TimeoutError:
                yield b": still here\n\n"
                continue
            self._something.clear()
            if self._untold.after:
                untold, self._untold = self._untold, Untold()
                yield await self._message(untold)
                # What comes meanwhile is told together.
                await asyncio.sleep(PACE_S)
        yield _encode("trouble", {"message": problem_of(self._error).message}, None)

    async def _missed(self, given: Mapping[str, str]) -> AsyncGenerator[bytes]:
        """What happened between the last event that the reader had, and the first that it will hear of."""
        link = await self._visit.rota.checked_link()
        head = self._own(self._head)
        try:
            async for stretch in read_between(link.gateway, self._visit.rota.keys, given, head):
                untold = Untold()
                if self._note(put_together(stretch), untold):
                    yield await self._message(untold)
                    await asyncio.sleep(PACE_S)
        except RotaError as error:
            self._error = self._error or error

    def _covers(self, queue: str) -> bool:
        return self._is_beyond if queue == EVERYWHERE else self._queues is None or queue in self._queues

    def _own(self, positions: Mapping[str, str]) -> dict[str, str]:
        """Of positions, those of what it follows: nobody is told of queues that are not its business."""
        return {queue: position for queue, position in positions.items() if self._covers(queue)}

    def _note(self, stretch: Stretch, untold: Untold) -> bool:
        """Keeps of a stretch what is to be told; False when none of it is about what the reader follows."""
        resets = [queue for queue in stretch.resets if self._covers(queue)]
        events = [event for event in stretch.events if self._covers(event.queue)]
        if not resets and not events:
            return False
        untold.after = stretch.after
        untold.resets.update(resets)
        for event in events:
            untold.queues.add(event.queue)
            if event.queue == EVERYWHERE:
                untold.keep(BEYOND.get(event.verb, ""), event.queue, event.runs)
            elif event.verb in SCHEDULE_VERBS:
                untold.keep("schedules", event.queue, [f"{event.queue}:{name}" for name in event.runs])
            elif event.verb in QUEUE_VERBS:
                if "queues" in self._topics and self._run is None:
                    _add(untold.changes, event)
            elif "jobs" in self._topics:
                if self._run is None:
                    self._note_runs(event, untold)
                elif self._run in event.runs:
                    self._note_runs(event._replace(runs=(self._run,)), untold)
        return True

    def _note_runs(self, event: Moved, untold: Untold) -> None:
        if self._of_task is None:
            _add(untold.changes, event)
        else:
            untold.keep_unsorted(event)

    async def _sort(self, of_task: OfTask, untold: Untold) -> None:
        """Counts of what is not sorted yet the runs of the task. Where that cannot be said, it has to be read again."""
        for queue, events in untold.unsorted.items():
            try:
                for event in await of_task.select(events):
                    _add(untold.changes, event)
            except StoreError:
                untold.resets.add(queue)

    async def _message(self, untold: Untold) -> bytes:
        last = cursor_of(self._own(untold.after))
        if self._of_task is not None:
            await self._sort(self._of_task, untold)
        if untold.resets:
            return _encode("reset", {"queues": sorted(untold.queues | untold.resets)}, last)
        for change in untold.changes.values():
            change["at"] = exact_moment(change["at"])
        body: dict[str, Any] = {"changes": list(untold.changes.values())}
        body |= {topic: list(ids) for topic, ids in untold.others.items() if topic in self._topics and not self._run}
        if "stats" in self._topics:
            body["stats"] = await self._stats(sorted(untold.queues - {EVERYWHERE}))
        if not any(body.values()):
            # Nothing for this reader; but it shall not be told of it again.
            return f"id: {last}\n\n".encode()
        return _encode("changes", body, last)

    async def _stats(self, queues: list[str]) -> dict[str, Any]:
        try:
            infos = await self._visit.rota.views.queue_infos(queues)
        except StoreError:
            return {}  # the next event brings them, or the trouble itself
        return {info.name: shapes.stats(info.counts) for info in infos}


class Untold:
    """What has happened and was not told yet: as much as there are queues and verbs, however much happened."""

    def __init__(self) -> None:
        #: Where it ends; nothing where nothing has happened.
        self.after: Mapping[str, str] = {}
        self.changes: dict[tuple[str, str], dict[str, Any]] = {}
        self.others: dict[str, dict[str, None]] = {}
        self.queues: set[str] = set()
        self.resets: set[str] = set()
        #: Queue -> events of which somebody has to say yet which runs are of the task that is asked for.
        self.unsorted: dict[str, list[Moved]] = {}
        self._unsorted_runs = 0

    def keep_unsorted(self, event: Moved) -> None:
        """Until the next message; too many runs are a reason to read again."""
        self._unsorted_runs += len(event.runs)
        if self._unsorted_runs > UNSORTED:
            self.resets.add(event.queue)
        else:
            self.unsorted.setdefault(event.queue, []).append(event)

    def keep(self, topic: str, queue: str, ids: Sequence[str]) -> None:
        """Ids of what changed; too many of them are a reason to read again."""
        kept = self.others.setdefault(topic, {})
        kept.update(dict.fromkeys(ids))
        if len(kept) > KEPT:
            kept.clear()
            self.resets.add(queue)


def _add(changes: dict[tuple[str, str], dict[str, Any]], event: Moved) -> None:
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
