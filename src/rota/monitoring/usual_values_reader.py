"""Reads what is usual at this hour, by queue and task, from the counters of past hours. Cached: it changes slowly."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from rota.client.rota import Rota
from rota.client.session import checked_session
from rota.core.health.usual_values import Usual, compared_hours, usual_values
from rota.core.metric_series import HOUR_MS, MINUTE_MS, Counts, add_counts
from rota.core.shards import base_of
from rota.store.read_metric_counters import QueueCounters

#: How long values are used before they are read again.
KEPT_S: Final = 300.0
#: Queues that are read in one round trip.
QUEUES_PER_CALL: Final = 20
#: Minutes of the last hour that say what is usual in a system without history; the latest ten may be the incident.
LAST_HOUR: Final = 60
LATEST: Final = 10


class UsualOfQueue(msgspec.Struct, frozen=True):
    """What is usual for a queue and for each of its tasks."""

    queue: Usual | None = None
    tasks: Mapping[str, Usual] = {}


class UsualValuesReader:
    """What is usual in each queue."""

    def __init__(self, rota: Rota) -> None:
        self._rota = rota
        self._known: dict[str, UsualOfQueue] = {}
        self._read_at: dict[str, tuple[int, float]] = {}

    async def read(self, names: Sequence[str], now: int) -> Mapping[str, UsualOfQueue]:
        """Returns queue -> its usual values. `names` are those of queues and shards, `now` the server's time."""
        hour, clock = now // HOUR_MS, time.monotonic()
        shards: dict[str, list[str]] = {}
        for name in names:
            shards.setdefault(base_of(name), []).append(name)
        stale = [queue for queue in shards if not self._is_fresh(queue, hour, clock)]
        for start in range(0, len(stale), QUEUES_PER_CALL):
            await self._refresh(stale[start : start + QUEUES_PER_CALL], shards, now)
        for queue in stale:
            self._read_at[queue] = (hour, clock)
        self._known = {queue: self._known[queue] for queue in shards}
        return self._known

    def _is_fresh(self, queue: str, hour: int, clock: float) -> bool:
        read_hour, read_at = self._read_at.get(queue, (0, 0.0))
        return queue in self._known and read_hour == hour and clock - read_at < KEPT_S

    async def _refresh(self, queues: Sequence[str], shards: Mapping[str, Sequence[str]], now: int) -> None:
        names = [name for queue in queues for name in shards[queue]]
        counters = (await checked_session(self._rota)).counters
        hours = compared_hours(now // HOUR_MS)
        past = dict(zip(names, await counters.read_hours(names, hours), strict=True))
        minute = now // MINUTE_MS
        lately = dict(
            zip(names, await counters.read(names, "minute", minute - LAST_HOUR, minute - LATEST), strict=True)
        )
        for queue in queues:
            of_queue = [past[name] for name in shards[queue]]
            self._known[queue] = _usual_of(now // HOUR_MS, of_queue, [lately[name] for name in shards[queue]])


def _usual_of(hour: int, past: Sequence[QueueCounters], lately: Sequence[QueueCounters]) -> UsualOfQueue:
    by_hour: dict[int, Counts] = {}
    by_task: dict[str, dict[int, Counts]] = {}
    for counter in past:
        for number in counter.intervals:
            in_hour = counter.only(number).recent_by_task()
            for task, counts in in_hour.items():
                _add(by_task.setdefault(task, {}), number, counts)
            _add(by_hour, number, add_counts(in_hour.values()))
    recent: dict[str, Counts] = {}
    for counter in lately:
        for task, counts in counter.recent_by_task().items():
            recent[task] = add_counts((recent[task], counts)) if task in recent else counts
    tasks = {task: usual_values(hour, by_task.get(task, {}), recent.get(task)) for task in {*by_task, *recent}}
    return UsualOfQueue(
        usual_values(hour, by_hour, add_counts(recent.values()) if recent else None),
        {task: usual for task, usual in tasks.items() if usual is not None},
    )


def _add(sums: dict[int, Counts], number: int, counts: Counts) -> None:
    sums[number] = add_counts((sums[number], counts)) if number in sums else counts
