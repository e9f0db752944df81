"""`/api/events`: a stream of server-sent events that can be resumed without gaps.

The store is read once for all clients (`event_feed`). Unsent changes of a client are merged, and it gets at most four
messages a second. A client that reads slowly gets fewer, larger messages, does not affect other clients, and continues
where it was. Events carry ids and counts, never arguments or results.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Annotated, Any, Final, Protocol, Self

import msgspec
from fastapi import APIRouter, Header, Query
from fastapi.responses import StreamingResponse
from starlette.types import Message, Send

from rota.client.events import NO_QUEUE, EventBatch, EventEntry, TaskFilter, cursor_of, positions_of, read_between
from rota.client.session import checked_session, session_of, sessions_of
from rota.core.format_iso_time import iso_time
from rota.core.ids import JobRef
from rota.errors import InvalidOption, RotaError, StoreError
from rota.server import serializers
from rota.server.http.problem_responses import Problem, problem_of
from rota.server.request_context_and_permissions import RequestContext, Server, Viewer
from rota.server.schemas.common import FullId, QueueName
from rota.server.shared_event_reader import PACE_S, merge_events

logger = logging.getLogger("rota.server")
router = APIRouter(tags=["events"])

TOPICS: Final = ("jobs", "queues", "schedules", "stats", "workers", "workflows", "operations", "scaling")
#: Verb of events outside any queue -> topic.
GLOBAL_TOPICS: Final[Mapping[str, str]] = {
    "worker": "workers",
    "workflow": "workflows",
    "operation": "operations",
    "scaling": "scaling",
}
#: Interval of comments that keep proxies from closing an idle connection.
HEARTBEAT_S: Final = 15.0
#: The caller of a stream is authenticated again before a message is sent, if this long has passed.
RECHECK_S: Final = 3.0
#: One token may have this fraction of all streams.
READERS_SHARE: Final = 4
#: A client that reads nothing for this long is disconnected, because the number of streams is limited.
STALLED_S: Final = 60.0
#: Maximum number of runs that a change names; all are counted.
MAX_RUNS: Final = 50
#: Maximum number of unsent ids per topic and client; beyond it the client gets a `reset`.
MAX_IDS: Final = 1_000
#: Maximum number of runs of a client whose task has to be looked up; beyond it the client gets a `reset`.
MAX_UNFILTERED: Final = 20_000
#: Verbs of events about queues, and about schedules.
QUEUE_VERBS: Final = frozenset({"pause", "resume"})
SCHEDULE_VERBS: Final = frozenset(
    {"put_schedule", "pause_schedule", "remove_schedule", "fire_schedule", "run_schedule_now"}
)
#: Verb -> state of its runs, for verbs that lead to one state only.
STATES: Final[Mapping[str, str]] = {
    "claim": "PROCESSING",
    "completed": "COMPLETED",
    "failed": "FAILED",
    "cancelled": "CANCELLED",
}


@router.get(
    "/api/events",
    response_class=StreamingResponse,
    responses={
        200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}, "description": "The event stream."}
    },
)
async def follow_events(
    context: Viewer,
    topics: Annotated[
        str,
        Query(max_length=100, description=f"Any of {', '.join(TOPICS)}, separated by commas.", pattern=r"^[a-z,]*$"),
    ] = "jobs,queues",
    queue: Annotated[list[QueueName] | None, Query(max_length=100, description="Only events of these queues.")] = None,
    job: Annotated[FullId | None, Query(description="Only events of this job.")] = None,
    task: Annotated[str | None, Query(max_length=200, description="Only events of this task's jobs.")] = None,
    after: Annotated[
        str | None, Query(max_length=20_000, description="Position to resume at, like Last-Event-ID.")
    ] = None,
    last_event_id: Annotated[str | None, Header(max_length=20_000)] = None,
) -> StreamingResponse:
    """Streams changes as server-sent events. Resume with `Last-Event-ID`; after a `reset`, read the state again.

    A `changes` event has `changes: [{queue, verb, state, count, runs, at}]`: changes of runs for the topic jobs,
    `pause` and `resume` for the topic queues. For other topics it has `stats` by queue, and the ids of changed
    `schedules`, `workers`, `workflows` and `operations`; `scaling` has the numbers of planning rounds, or "settings"
    if settings of the autoscaler were changed. A `store` event reports that the store has not responded for
    two seconds (`is_responding: false`), or responds again.
    """
    wanted = frozenset(topics.split(",")) & frozenset(TOPICS)
    if not wanted:
        raise InvalidOption("topics", f"{topics!r} contains no topic: use any of {', '.join(TOPICS)}")
    global_topics = wanted & frozenset(GLOBAL_TOPICS.values())
    if global_topics:
        context.check_unlimited(" and ".join(sorted(global_topics)))
    run = await _run_of(context, job) if job is not None else None
    queues = await _queues(context, queue, job)
    check_readers(context.server, context.identity.id)
    # Errors are raised here, while the response can still have an error status.
    position = last_event_id or after
    given = positions_of(position) if position else None
    await context.rota.check()
    of_task = TaskFilter((await checked_session(context.rota)).search, task) if task is not None else None
    return EventStream(StreamReader(context, wanted, queues, run, of_task, given))


def check_readers(server: Server, caller: str) -> None:
    """Refuses a stream beyond the number that all callers, or this one, may have. Raises Problem."""
    of_caller = server.readers_of[caller]
    if caller and of_caller >= max(1, server.settings.max_readers // READERS_SHARE):
        raise Problem(
            429,
            "too_many_readers",
            f"this token has {of_caller} event streams, its share: close some of them",
            headers={"Retry-After": "5"},
        )
    if server.readers >= server.settings.max_readers:
        raise Problem(
            503,
            "too_many_readers",
            f"the limit of {server.settings.max_readers} event streams is reached: try again later",
            headers={"Retry-After": "5"},
        )


async def _queues(context: RequestContext, queues: Sequence[str] | None, job: str | None) -> frozenset[str] | None:
    """Returns the queues to follow, including shards; None for all queues."""
    if job is not None:
        chosen = [JobRef.parse(job).queue]
    else:
        for name in queues or ():
            context.check_queue(name)
        chosen = list(queues or context.identity.queues)
    if not chosen:
        return None
    session = await checked_session(context.rota)
    return frozenset([name for queue in chosen for name in await session.shards.names_of(queue)])


async def _run_of(context: RequestContext, job: str) -> str | None:
    ref = JobRef.parse(job)
    context.check_queue(ref.queue)
    return (await context.server.job_reader.get(ref)).record.ref.run


class MessageReader(Protocol):
    """Yields the messages of one stream, while it is open."""

    def messages(self) -> AsyncGenerator[bytes]:
        """Yields the messages."""
        ...

    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, *_: object) -> None: ...


class EventStream(StreamingResponse):
    """The response: sends the messages of a reader, and disconnects a client that reads nothing."""

    def __init__(self, reader: MessageReader) -> None:
        self._reader = reader
        super().__init__(
            reader.messages(),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )

    async def stream_response(self, send: Send) -> None:
        """Sends messages until the client disconnects."""

        async def send_with_timeout(message: Message) -> None:
            async with asyncio.timeout(STALLED_S):
                await send(message)

        async with self._reader:
            try:
                await super().stream_response(send_with_timeout)
            except TimeoutError:
                logger.info("an event stream whose client read nothing for %g s was closed", STALLED_S)


class StreamReader:
    """The state of one stream: its filters, and the changes that have not been sent."""

    def __init__(
        self,
        context: RequestContext,
        topics: frozenset[str],
        queues: frozenset[str] | None,
        run: str | None,
        of_task: TaskFilter | None,
        given: Mapping[str, str] | None,
    ) -> None:
        self._context = context
        self._topics = topics
        self._queues = queues
        self._run = run
        self._of_task = of_task
        self._given = given
        self._has_global_topics = bool(topics & frozenset(GLOBAL_TOPICS.values()))
        self._head: Mapping[str, str] = {}
        self._unsent = UnsentChanges()
        self._has_changes = asyncio.Event()
        self._error: RotaError | Problem | None = None
        self._checked_at = asyncio.get_running_loop().time()
        #: The latest state of the store, until it is sent.
        self._store_states: list[bool] = []

    async def __aenter__(self) -> Self:
        # Again: others may have been opened since the request was checked.
        check_readers(self._context.server, self._context.identity.id)
        self._context.server.readers += 1
        self._context.server.readers_of[self._context.identity.id] += 1
        try:
            self._head = await self._context.server.event_feed.join(self)
        except BaseException:
            self._release()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self._release()
        self._context.server.event_feed.leave(self)

    def _release(self) -> None:
        server = self._context.server
        server.readers -= 1
        server.readers_of[self._context.identity.id] -= 1
        server.readers_of += Counter()  # drops callers without streams

    async def _has_access(self) -> bool:
        """False, with the error set, if the token was revoked or its rights have changed since the stream began."""
        now = asyncio.get_running_loop().time()
        if now - self._checked_at >= RECHECK_S:
            self._checked_at = now
            try:
                async with asyncio.timeout(1):
                    identity = await self._context.server.authenticator.identify(self._context.request)
            except Problem as error:
                self._error = error
            except (RotaError, TimeoutError):
                pass  # the store does not respond: it sends no events either
            else:
                if identity != self._context.identity:
                    message = "the rights of this token have changed: open the stream again"
                    self._error = Problem(401, "unauthenticated", message)
        return not isinstance(self._error, Problem)

    def on_events(self, batch: EventBatch) -> None:
        """Adds a batch to the unsent changes."""
        if self._add(batch, self._unsent):
            self._has_changes.set()

    def on_error(self, error: RotaError) -> None:
        """Ends the stream with an error event: the feed has stopped, and the client has to reconnect."""
        self._error = error
        self._has_changes.set()

    def on_store_state(self, is_responding: bool) -> None:
        """Reports to the client that the store has stopped responding, or responds again."""
        self._store_states.append(is_responding)
        del self._store_states[:-1]
        self._has_changes.set()

    async def messages(self) -> AsyncGenerator[bytes]:
        """Yields the messages of the stream."""
        yield b"retry: 1000\n\n"
        if self._given is not None:
            async for message in self._missed(self._given):
                yield message
        while self._error is None or self._unsent.after:
            try:
                async with asyncio.timeout(HEARTBEAT_S):
                    await self._has_changes.wait()
            except TimeoutError:
                if not await self._has_access():
                    break
                yield b": still here\n\n"
                continue
            self._has_changes.clear()
            if self._store_states:
                yield _encode("store", {"is_responding": self._store_states.pop()}, None)
            if not await self._has_access():
                break
            if self._unsent.after:
                unsent, self._unsent = self._unsent, UnsentChanges()
                yield await self._message(unsent)
                # Changes that arrive meanwhile are merged into the next message.
                await asyncio.sleep(PACE_S)
        error = self._error
        assert error is not None, "the loop ends with an error"
        problem = error if isinstance(error, Problem) else problem_of(error)
        yield _encode("trouble", {"message": problem.message}, None)

    async def _missed(self, given: Mapping[str, str]) -> AsyncGenerator[bytes]:
        """Yields the changes between the client's position and the first batch of the feed."""
        session = await checked_session(self._context.rota)
        head = self._own(self._head)
        try:
            async for batch in read_between(session.redis, sessions_of(self._context.rota).keys, given, head):
                unsent = UnsentChanges()
                if self._add(merge_events(batch), unsent):
                    yield await self._message(unsent)
                    await asyncio.sleep(PACE_S)
        except RotaError as error:
            self._error = self._error or error

    def _covers(self, queue: str) -> bool:
        return self._has_global_topics if queue == NO_QUEUE else self._queues is None or queue in self._queues

    def _own(self, positions: Mapping[str, str]) -> dict[str, str]:
        """Returns the positions of the queues that the stream follows; other queue names are not disclosed."""
        return {queue: position for queue, position in positions.items() if self._covers(queue)}

    def _add(self, batch: EventBatch, unsent: UnsentChanges) -> bool:
        """Adds the changes that the stream follows. Returns False if there are none."""
        resets = [queue for queue in batch.resets if self._covers(queue)]
        events = [event for event in batch.events if self._covers(event.queue)]
        if not resets and not events:
            return False
        unsent.after = batch.after
        unsent.resets.update(resets)
        for event in events:
            unsent.queues.add(event.queue)
            if event.queue == NO_QUEUE:
                unsent.add_ids(GLOBAL_TOPICS.get(event.verb, ""), event.queue, event.runs)
            elif event.verb in SCHEDULE_VERBS:
                unsent.add_ids("schedules", event.queue, [f"{event.queue}:{name}" for name in event.runs])
            elif event.verb in QUEUE_VERBS:
                if "queues" in self._topics and self._run is None:
                    _merge(unsent.changes, event)
            elif "jobs" in self._topics:
                if self._run is None:
                    self._add_runs(event, unsent)
                elif self._run in event.runs:
                    self._add_runs(event._replace(runs=(self._run,)), unsent)
        return True

    def _add_runs(self, event: EventEntry, unsent: UnsentChanges) -> None:
        if self._of_task is None:
            _merge(unsent.changes, event)
        else:
            unsent.add_unfiltered(event)

    async def _filter_by_task(self, of_task: TaskFilter, unsent: UnsentChanges) -> None:
        """Adds the unfiltered runs that belong to the task. If the lookup fails, the client gets a `reset`."""
        for queue, events in unsent.unfiltered.items():
            try:
                for event in await of_task.select(events):
                    _merge(unsent.changes, event)
            except StoreError:
                unsent.resets.add(queue)

    async def _message(self, unsent: UnsentChanges) -> bytes:
        last = cursor_of(self._own(unsent.after))
        if self._of_task is not None:
            await self._filter_by_task(self._of_task, unsent)
        if unsent.resets:
            return _encode("reset", {"queues": sorted(unsent.queues | unsent.resets)}, last)
        for change in unsent.changes.values():
            change["at"] = iso_time(change["at"])
        body: dict[str, Any] = {"changes": list(unsent.changes.values())}
        body |= {topic: list(ids) for topic, ids in unsent.others.items() if topic in self._topics and not self._run}
        if "stats" in self._topics:
            body["stats"] = await self._stats(sorted(unsent.queues - {NO_QUEUE}))
        if not any(body.values()):
            # No changes for this client, but its position advances.
            return f"id: {last}\n\n".encode()
        return _encode("changes", body, last)

    async def _stats(self, queues: list[str]) -> dict[str, Any]:
        try:
            infos = await session_of(self._context.rota).views.queue_infos(queues)
        except StoreError:
            return {}  # the next event has them, or the feed reports the error
        return {info.name: serializers.stats_json(info.counts) for info in infos}


class UnsentChanges:
    """Unsent changes, merged by queue and verb, so that their size does not depend on the number of events."""

    def __init__(self) -> None:
        #: Stream positions after the last change; empty without changes.
        self.after: Mapping[str, str] = {}
        self.changes: dict[tuple[str, str], dict[str, Any]] = {}
        self.others: dict[str, dict[str, None]] = {}
        self.queues: set[str] = set()
        self.resets: set[str] = set()
        #: Queue -> events whose runs have to be filtered by task.
        self.unfiltered: dict[str, list[EventEntry]] = {}
        self._unfiltered_runs = 0

    def add_unfiltered(self, event: EventEntry) -> None:
        """Keeps an event until the next message. Too many runs lead to a `reset`."""
        self._unfiltered_runs += len(event.runs)
        if self._unfiltered_runs > MAX_UNFILTERED:
            self.resets.add(event.queue)
        else:
            self.unfiltered.setdefault(event.queue, []).append(event)

    def add_ids(self, topic: str, queue: str, ids: Sequence[str]) -> None:
        """Adds ids of changed objects. Too many lead to a `reset`."""
        kept = self.others.setdefault(topic, {})
        kept.update(dict.fromkeys(ids))
        if len(kept) > MAX_IDS:
            kept.clear()
            self.resets.add(queue)


def _merge(changes: dict[tuple[str, str], dict[str, Any]], event: EventEntry) -> None:
    """Merges an event into the change of its queue and verb."""
    change = changes.setdefault(
        (event.queue, event.verb),
        {
            "queue": event.queue,
            "verb": event.verb,
            "state": STATES.get(event.verb),
            "count": 0,
            "runs": [],
            "at": event.at,
        },
    )
    change["count"] += len(event.runs)
    change["runs"] += event.runs[: MAX_RUNS - len(change["runs"])]
    change["at"] = event.at


def _encode(event: str, data: dict[str, Any], last: str | None) -> bytes:
    head = f"id: {last}\n" if last is not None else ""
    return f"{head}event: {event}\ndata: ".encode() + msgspec.json.encode(data) + b"\n\n"
