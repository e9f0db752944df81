"""The event stream. Events are hints: the stored state of a job is authoritative, an event names what has changed.

Each queue has a capped stream of its own, so a position is a vector: the last id read of every queue. A client that
resumes from a position that has been trimmed away gets a `reset` event and has to read the state again.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple

import msgspec

from rota.core.ids import decode_run, encode_runs, is_run
from rota.errors import InvalidOption
from rota.store.job_search import Search
from rota.store.keys import Keys
from rota.store.redis.hash_and_time_replies import read_text_hash
from rota.store.redis.retrying_client import READ_BATCH, RedisClient

#: Duration of a blocking read. Bounds how long a dead connection or a new queue goes unnoticed: the first event of a
#: new queue is to be shown in under a second.
BLOCK_MS: Final = 500
NO_QUEUE_POLL_S: Final = 0.5
BEGINNING: Final = "0-0"
#: Runs of a task that a filter remembers, whether they are still kept or not.
REMEMBERED: Final = 100_000
#: The queue of events that belong to no queue: those of workers, workflows and bulk operations.
NO_QUEUE: Final = "~"
_ENTRY_ID: Final = re.compile(r"[0-9]+-[0-9]+")


class Event(msgspec.Struct, frozen=True):
    """A verb changed some runs of a queue. `id` resumes after this event.

    With queue "~" the verb is "worker", "workflow", "operation" or "scaling", and `runs` are the ids of those. A
    worker that enters a state has a second event, which names it: `worker_active`, `worker_error`, … A schedule that
    was put, paused, removed, fired or run by hand has an event of its own: `put_schedule`, `pause_schedule`,
    `remove_schedule`, `fire`, `run_schedule`.
    """

    id: str
    queue: str
    verb: str
    runs: tuple[str, ...]
    at: int


class EventEntry(NamedTuple):
    """An event with its position in the stream of its own queue only."""

    entry: str
    queue: str
    verb: str
    runs: tuple[str, ...]
    at: int


@dataclass(frozen=True, slots=True)
class EventBatch:
    """The events of one read of the streams, and the positions before and after it."""

    before: Mapping[str, str]
    after: Mapping[str, str]
    events: Sequence[EventEntry] = ()
    #: Queues whose position was trimmed away: their state has to be read again.
    resets: Sequence[str] = ()


class TaskFilter:
    """Selects events of one task: looks up the runs that it has not seen before.

    An event does not name the task of each run: that would cost memory with every event, also without readers.
    """

    def __init__(self, search: Search, task: str) -> None:
        self._search = search
        self._task = task
        #: Runs of the task, the oldest first: when they end, their records may be gone.
        self._known: dict[tuple[str, str], None] = {}

    async def select(self, events: Sequence[EventEntry]) -> list[EventEntry]:
        """Returns events of one queue with only the runs of the task. Events of no queue stay as they are."""
        if not events or events[0].queue == NO_QUEUE:
            return list(events)
        queue = events[0].queue
        runs = {run for event in events for run in event.runs if is_run(run)}
        found = await self._search.filter_by_task(queue, self._task, runs)
        self._known |= {(queue, run): None for run in found}
        for oldest in [*islice(self._known, max(0, len(self._known) - REMEMBERED))]:
            del self._known[oldest]
        narrowed = [
            event._replace(runs=tuple(run for run in event.runs if (queue, run) in self._known)) for event in events
        ]
        return [event for event in narrowed if event.runs]


async def follow(
    redis: RedisClient,
    keys: Keys,
    queues: Callable[[], Awaitable[Sequence[str]]],
    after: str | None,
    pace_s: float = 0.0,
    of_task: TaskFilter | None = None,
) -> AsyncIterator[Event]:
    """Yields the events of the queues from `after` on, or from now on. Calls `queues` repeatedly to find new ones."""
    given = None if after is None else positions_of(after)
    async for batch in follow_batches(redis, keys, queues, given, pace_s):
        seen = dict(batch.before)
        for queue in batch.resets:
            seen[queue] = batch.after[queue]
            yield Event(cursor_of(seen), queue, "reset", (), _order(seen[queue])[0])
        for event in batch.events if of_task is None else await of_task.select(batch.events):
            seen[event.queue] = event.entry
            yield Event(cursor_of(seen), event.queue, event.verb, event.runs, event.at)


async def follow_batches(
    redis: RedisClient,
    keys: Keys,
    queues: Callable[[], Awaitable[Sequence[str]]],
    given: Mapping[str, str] | None = None,
    pace_s: float = 0.0,
) -> AsyncIterator[EventBatch]:
    """Yields the events of each read of the streams as one batch. The first batch is empty and has the start position.

    With `pace_s` the server is read no more often than that, as long as one read returns all events there are.
    """
    seen: dict[str, str] = {}
    is_first = True
    while True:
        for queue in await queues():
            if queue in seen:
                continue
            stream = keys.queue(queue, "events")
            if given is None and is_first:
                seen[queue] = await _newest(redis, stream)
                continue
            # A queue that has appeared since is read from its first event on.
            before = {**seen, queue: (given or {}).get(queue, BEGINNING)}
            seen[queue] = before[queue]
            if await _has_gap(redis, stream, seen[queue]):
                seen[queue] = await _newest(redis, stream)
                yield EventBatch(before, dict(seen), resets=(queue,))
        if is_first:
            is_first = False
            yield EventBatch(dict(seen), dict(seen))
        if not seen:
            await asyncio.sleep(NO_QUEUE_POLL_S)
            continue
        streams = {keys.queue(queue, "events"): queue for queue in seen}
        found = await redis.read_streams({stream: seen[queue] for stream, queue in streams.items()}, BLOCK_MS)
        read_at = asyncio.get_running_loop().time()
        is_complete = True
        for stream, entries in found.items():
            queue, before = streams[stream], dict(seen)
            is_full = len(entries) >= READ_BATCH
            is_complete = is_complete and not is_full
            # Only a reader that is far behind can have missed trimmed entries.
            if is_full and await _has_gap(redis, stream, seen[queue]):
                seen[queue] = await _newest(redis, stream)
                yield EventBatch(before, dict(seen), resets=(queue,))
                continue
            seen[queue] = entries[-1][0]
            yield EventBatch(before, dict(seen), _entries(queue, entries))
        if found and pace_s and is_complete:
            await asyncio.sleep(max(0.0, read_at + pace_s - asyncio.get_running_loop().time()))


async def read_between(
    redis: RedisClient, keys: Keys, given: Mapping[str, str], until: Mapping[str, str]
) -> AsyncIterator[EventBatch]:
    """Yields the events after the given positions, up to those of `until`, queue by queue."""
    seen = {queue: given.get(queue, BEGINNING) for queue in until}
    for queue, last in until.items():
        stream = keys.queue(queue, "events")
        while _order(seen[queue]) < _order(last):
            before = dict(seen)
            entries = await redis.command("XRANGE", stream, f"({seen[queue]}", last, "COUNT", READ_BATCH)
            # Compared after the read, with what has been trimmed by then.
            if await _has_gap(redis, stream, seen[queue]):
                seen[queue] = last
                yield EventBatch(before, dict(seen), resets=(queue,))
                break
            found = [(entry.decode(), read_text_hash(fields)) for entry, fields in entries]
            seen[queue] = found[-1][0] if len(found) >= READ_BATCH else last
            yield EventBatch(before, dict(seen), _entries(queue, found))


async def _newest(redis: RedisClient, stream: str) -> str:
    entries = await redis.command("XREVRANGE", stream, "+", "-", "COUNT", 1)
    return entries[0][0].decode() if entries else BEGINNING


async def _has_gap(redis: RedisClient, stream: str, position: str) -> bool:
    """True when entries after the position may have been trimmed away."""
    oldest = await redis.command("XRANGE", stream, "-", "+", "COUNT", 1)
    if not oldest or _order(oldest[0][0].decode()) <= _order(position):
        return False
    if position != BEGINNING:
        return True
    added = await redis.stream_entries_added(stream)
    return added > int(await redis.command("XLEN", stream))


def _entries(queue: str, entries: Sequence[tuple[str, dict[str, str]]]) -> list[EventEntry]:
    return [
        EventEntry(entry, queue, verb, _runs(verb, runs), _order(entry)[0])
        for entry, fields in entries
        for verb, runs in fields.items()
    ]


def cursor_of(seen: Mapping[str, str]) -> str:
    """Encodes positions as the id of an event."""
    return base64.urlsafe_b64encode(msgspec.json.encode(seen)).decode().rstrip("=")


def _runs(verb: str, text: str) -> tuple[str, ...]:
    """Decodes the runs of an entry: for an enqueue the first, and the number of those that follow it."""
    first, plus, more = text.partition("+") if verb == "enqueue" else (text, "", "")
    return tuple(encode_runs(decode_run(first), 1 + int(more))) if plus else tuple(text.split(" "))


def positions_of(after: str) -> dict[str, str]:
    """Decodes the id of an event. Raises InvalidOption."""
    try:
        positions = msgspec.json.decode(base64.urlsafe_b64decode(after + "=" * (-len(after) % 4)), type=dict[str, str])
        for position in positions.values():
            if not _ENTRY_ID.fullmatch(position) or max(_order(position)) >= 2**64:
                raise ValueError(position)
        return positions
    except (ValueError, binascii.Error, msgspec.DecodeError) as error:
        raise InvalidOption("after", f"{after!r} is not the id of an event") from error


def _order(entry_id: str) -> tuple[int, int]:
    ms, _, number = entry_id.partition("-")
    return int(ms), int(number)
