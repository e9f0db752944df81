"""The event stream: what happened, as hints. The state of a job is the truth; an event says where to look.

Each queue has a capped stream of its own, so a position is a vector: the last id seen of every queue. Whoever resumes
from a position that has been trimmed away is told with a `reset` to read the state again.
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

from rota.core.job import decode_run, encode_runs, is_run
from rota.errors import InvalidOption
from rota.store.gateway import READ_AT_ONCE, Gateway, texts
from rota.store.keys import Keys
from rota.store.search import Search

#: A blocking read is asked again this often, so that a dead connection and a new queue are noticed: also what happens
#: first in a queue is to be shown in under a second.
BLOCK_MS: Final = 500
NOTHING_YET_S: Final = 0.5
BEGINNING: Final = "0-0"
#: Runs of a task that are known to be so, whether they are still kept or not.
REMEMBERED: Final = 100_000
#: What workers, workflows and operations do belongs to no queue: that is what their events call it.
EVERYWHERE: Final = "~"
_ENTRY_ID: Final = re.compile(r"[0-9]+-[0-9]+")


class Event(msgspec.Struct, frozen=True):
    """Some runs of a queue were moved by a verb. `id` resumes after this event.

    Where the queue is "~", the verb is "worker", "workflow" or "operation", and `runs` are the ids of those. A schedule
    that was put, paused, removed, fired or run by hand is named by an event of its own: `put_schedule`,
    `pause_schedule`, `remove_schedule`, `fire`, `run_schedule`.
    """

    id: str
    queue: str
    verb: str
    runs: tuple[str, ...]
    at: int


class Moved(NamedTuple):
    """An event without the vector that resumes after it: only where it stands in the stream of its queue."""

    entry: str
    queue: str
    verb: str
    runs: tuple[str, ...]
    at: int


@dataclass(frozen=True, slots=True)
class Stretch:
    """What one look at the streams brought, and the positions before and after it."""

    before: Mapping[str, str]
    after: Mapping[str, str]
    events: Sequence[Moved] = ()
    #: Queues whose position was trimmed away: their state is to be read again.
    resets: Sequence[str] = ()


class OfTask:
    """Which runs are of a task: as the store finds them, or found them when they were heard of before.

    An event does not name the task of each run, which would cost memory with every event, whoever listens.
    """

    def __init__(self, search: Search, task: str) -> None:
        self._search = search
        self._task = task
        #: Runs of it, the oldest first: at their end they may be kept no longer.
        self._known: dict[tuple[str, str], None] = {}

    async def select(self, events: Sequence[Moved]) -> list[Moved]:
        """What is left of events of one queue: its runs of the task. What belongs to no queue stays."""
        if not events or events[0].queue == EVERYWHERE:
            return list(events)
        queue = events[0].queue
        runs = {run for event in events for run in event.runs if is_run(run)}
        found = await self._search.of_task(queue, self._task, runs)
        self._known |= {(queue, run): None for run in found}
        for oldest in [*islice(self._known, max(0, len(self._known) - REMEMBERED))]:
            del self._known[oldest]
        narrowed = [
            event._replace(runs=tuple(run for run in event.runs if (queue, run) in self._known)) for event in events
        ]
        return [event for event in narrowed if event.runs]


async def follow(
    gateway: Gateway,
    keys: Keys,
    queues: Callable[[], Awaitable[Sequence[str]]],
    after: str | None,
    pace_s: float = 0.0,
    of_task: OfTask | None = None,
) -> AsyncIterator[Event]:
    """Events of the queues from `after` on, or from now on. `queues` is asked again and again, as new ones come up."""
    given = None if after is None else positions_of(after)
    async for stretch in follow_together(gateway, keys, queues, given, pace_s):
        seen = dict(stretch.before)
        for queue in stretch.resets:
            seen[queue] = stretch.after[queue]
            yield Event(cursor_of(seen), queue, "reset", (), _order(seen[queue])[0])
        for moved in stretch.events if of_task is None else await of_task.select(stretch.events):
            seen[moved.queue] = moved.entry
            yield Event(cursor_of(seen), moved.queue, moved.verb, moved.runs, moved.at)


async def follow_together(
    gateway: Gateway,
    keys: Keys,
    queues: Callable[[], Awaitable[Sequence[str]]],
    given: Mapping[str, str] | None = None,
    pace_s: float = 0.0,
) -> AsyncIterator[Stretch]:
    """The same, with all that one look brings together. The first one says where it begins.

    With a pace the server is asked no more often than that, as long as one look brings all there is.
    """
    seen: dict[str, str] = {}
    is_first = True
    while True:
        for queue in await queues():
            if queue in seen:
                continue
            stream = keys.queue(queue, "events")
            if given is None and is_first:
                seen[queue] = await _newest(gateway, stream)
                continue
            # What has come up since is new from its first event on.
            before = {**seen, queue: (given or {}).get(queue, BEGINNING)}
            seen[queue] = before[queue]
            if await _has_gap(gateway, stream, seen[queue]):
                seen[queue] = await _newest(gateway, stream)
                yield Stretch(before, dict(seen), resets=(queue,))
        if is_first:
            is_first = False
            yield Stretch(dict(seen), dict(seen))
        if not seen:
            await asyncio.sleep(NOTHING_YET_S)
            continue
        streams = {keys.queue(queue, "events"): queue for queue in seen}
        found = await gateway.read_streams({stream: seen[queue] for stream, queue in streams.items()}, BLOCK_MS)
        asked_at = asyncio.get_running_loop().time()
        is_all = True
        for stream, entries in found.items():
            queue, before = streams[stream], dict(seen)
            is_full = len(entries) >= READ_AT_ONCE
            is_all = is_all and not is_full
            # Only who is far behind can have been overtaken by the trimming of the stream.
            if is_full and await _has_gap(gateway, stream, seen[queue]):
                seen[queue] = await _newest(gateway, stream)
                yield Stretch(before, dict(seen), resets=(queue,))
                continue
            seen[queue] = entries[-1][0]
            yield Stretch(before, dict(seen), _moved(queue, entries))
        if found and pace_s and is_all:
            await asyncio.sleep(max(0.0, asked_at + pace_s - asyncio.get_running_loop().time()))


async def read_between(
    gateway: Gateway, keys: Keys, given: Mapping[str, str], until: Mapping[str, str]
) -> AsyncIterator[Stretch]:
    """What happened after the positions given, up to those of `until`, queue by queue."""
    seen = {queue: given.get(queue, BEGINNING) for queue in until}
    for queue, last in until.items():
        stream = keys.queue(queue, "events")
        while _order(seen[queue]) < _order(last):
            before = dict(seen)
            entries = await gateway.command("XRANGE", stream, f"({seen[queue]}", last, "COUNT", READ_AT_ONCE)
            # What is read is compared with what has been trimmed by then.
            if await _has_gap(gateway, stream, seen[queue]):
                seen[queue] = last
                yield Stretch(before, dict(seen), resets=(queue,))
                break
            found = [(entry.decode(), texts(fields)) for entry, fields in entries]
            seen[queue] = found[-1][0] if len(found) >= READ_AT_ONCE else last
            yield Stretch(before, dict(seen), _moved(queue, found))


def check_position(after: str) -> None:
    """Refuses what is not the id of an event. Raises InvalidOption."""
    positions_of(after)


async def _newest(gateway: Gateway, stream: str) -> str:
    entries = await gateway.command("XREVRANGE", stream, "+", "-", "COUNT", 1)
    return entries[0][0].decode() if entries else BEGINNING


async def _has_gap(gateway: Gateway, stream: str, position: str) -> bool:
    """True when entries that came after the position may have been trimmed away."""
    oldest = await gateway.command("XRANGE", stream, "-", "+", "COUNT", 1)
    if not oldest or _order(oldest[0][0].decode()) <= _order(position):
        return False
    if position != BEGINNING:
        return True
    added = await gateway.added_to_stream(stream)
    return added > int(await gateway.command("XLEN", stream))


def _moved(queue: str, entries: Sequence[tuple[str, dict[str, str]]]) -> list[Moved]:
    return [
        Moved(entry, queue, verb, _runs(verb, runs), _order(entry)[0])
        for entry, fields in entries
        for verb, runs in fields.items()
    ]


def cursor_of(seen: Mapping[str, str]) -> str:
    """Positions as the id of an event."""
    return base64.urlsafe_b64encode(msgspec.json.encode(seen)).decode().rstrip("=")


def _runs(verb: str, text: str) -> tuple[str, ...]:
    """Runs as an entry names them: of those that one call made the first, and how many more (`emit_made.lua`)."""
    first, plus, more = text.partition("+") if verb == "enqueue" else (text, "", "")
    return tuple(encode_runs(decode_run(first), 1 + int(more))) if plus else tuple(text.split(" "))


def positions_of(after: str) -> dict[str, str]:
    """What `cursor_of` wrote. Raises InvalidOption."""
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
