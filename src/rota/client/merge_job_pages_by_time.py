"""Merges the jobs of several queues into one order, a page at a time."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rota.core.job_record import JobRecord


class Entry(NamedTuple):
    """A job of one queue. `key` is its place in the common order: a score or a time."""

    key: float
    run: str
    record: JobRecord


@dataclass(slots=True)
class QueueEntries:
    """The entries of one queue that have been read and not taken yet."""

    queue: str
    entries: deque[Entry] = field(default_factory=deque[Entry])
    #: The run that was taken last; empty before the first.
    taken: str = ""
    #: No entries follow those that have been read.
    is_done: bool = False
    #: The search stopped at this run, before it found an entry.
    stopped_at: str = ""


#: Reads on in each of the given queues, until it has entries, is done or has stopped.
Fill = Callable[[Sequence[QueueEntries]], Awaitable[None]]


class Merge:
    """Takes the entries of several queues in the order of their keys; equal keys in the order of the queues."""

    def __init__(self, queues: Sequence[QueueEntries], fill: Fill, *, is_newest: bool) -> None:
        self._queues = queues
        self._fill = fill
        self._sign = -1 if is_newest else 1
        #: Key and index of each queue whose next entry is known.
        self._heads: list[tuple[float, int]] = []
        #: Indexes of the other queues.
        self._open = list(range(len(queues)))

    @property
    def is_at_end(self) -> bool:
        """True when no queue has another entry."""
        return all(queue.is_done and not queue.entries for queue in self._queues)

    async def take(self) -> tuple[QueueEntries, Entry] | None:
        """Takes the next entry; None at the end, or where the search of a queue stopped: what follows is unknown."""
        queues = self._queues
        if empty := [queues[index] for index in self._open if not queues[index].entries]:
            await self._fill(empty)
        for index in self._open:
            if queues[index].entries:
                heapq.heappush(self._heads, (self._sign * queues[index].entries[0].key, index))
        self._open.clear()
        if not self._heads or any(queue.stopped_at for queue in empty):
            return None
        _, index = heapq.heappop(self._heads)
        self._open.append(index)
        entry = queues[index].entries.popleft()
        queues[index].taken = entry.run
        return queues[index], entry
