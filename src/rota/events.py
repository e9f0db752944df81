"""The event stream: what happened, as hints. The state of a job is the truth; an event says where to look.

Each queue has a capped stream of its own, so a position is a vector: the last id seen of every queue. Whoever resumes
from a position that has been trimmed away is told with a `reset` to read the state again.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from itertools import islice
from typing import Final

import msgspec

from rota.core.job import decode_run, encode_runs, is_run
from rota.errors import InvalidOption
from rota.store.gateway import READ_AT_ONCE, Gateway
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


class OfTask:
    """Which runs are of a task: as the store finds them, or found them when they were heard of before.

    An event does not name the task of each run, which would cost memory with every event, whoever listens.
    """

    def __init__(self, search: Search, task: str) -> None:
        self._search = search
        self._task = task
        #: Runs of it, the oldest first: at their end they may be kept no longer.
        self._known: dict[tuple[str, str], None] = {}

    async def select(self, events: Sequence[Event]) -> list[Event]:
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
            msgspec.structs.replace(event, runs=tuple(run for run in event.runs if (queue, run) in self._known))
            for event in events
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
    """Events of the queues from `after` on, or from now on. `queues` is asked again and again, as new ones come up.

    With a pace the server is asked no more often than that, whatever happens there.
    """
    given = None if after is None else _positions(after)
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
            seen[queue] = (given or {}).get(queue, BEGINNING)
            if await _has_gap(gateway, stream, seen[queue]):
                seen[queue] = await _newest(gateway, stream)
                yield _reset(seen, queue)
        is_first = False
        if not seen:
            await asyncio.sleep(NOTHING_YET_S)
            continue
        streams = {keys.queue(queue, "events"): queue for queue in seen}
        found = await gateway.read_streams({stream: seen[queue] for stream, queue in streams.items()}, BLOCK_MS)
        asked_at = asyncio.get_running_loop().time()
        for stream, entries in found.items():
            queue = streams[stream]
            # Only who is far behind can have been overtaken by the trimming of the stream.
            if len(entries) >= READ_AT_ONCE and await _has_gap(gateway, stream, seen[queue]):
                seen[queue] = await _newest(gateway, stream)
                yield _reset(seen, queue)
                continue
            events: list[Event] = []
            for entry_id, fields in entries:
                seen[queue] = entry_id
                for verb, runs in fields.items():
                    events.append(Event(_cursor(seen), queue, verb, _runs(verb, runs), _order(entry_id)[0]))
            for event in events if of_task is None else await of_task.select(events):
                yield event
        if found and pace_s:
            await asyncio.sleep(max(0.0, asked_at + pace_s - asyncio.get_running_loop().time()))


def check_position(after: str) -> None:
    """Refuses what is not the id of an event. Raises InvalidOption."""
    _positions(after)


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


def _reset(seen: dict[str, str], queue: str) -> Event:
    return Event(_cursor(seen), queue, "reset", (), _order(seen[queue])[0])


def _cursor(seen: dict[str, str]) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(seen)).decode().rstrip("=")


def _runs(verb: str, text: str) -> tuple[str, ...]:
    """Runs as an entry names them: of those that one call made the first, and how many more (`emit_made.lua`)."""
    first, plus, more = text.partition("+") if verb == "enqueue" else (text, "", "")
    return tuple(encode_runs(decode_run(first), 1 + int(more))) if plus else tuple(text.split(" "))


def _positions(after: str) -> dict[str, str]:
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
