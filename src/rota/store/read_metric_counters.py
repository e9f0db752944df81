"""The counters behind metrics: totals by queue and task, and increments by minute and hour."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from rota.core.metric_series import (
    HOUR_MS,
    MINUTE_MS,
    OTHER_TASK_NUMBER,
    OTHER_TASKS,
    WIDTH,
    Counts,
    Increments,
    counts_from,
)
from rota.store.keys import Keys
from rota.store.redis.hash_and_time_replies import read_text_hash, read_time_ms
from rota.store.redis.retrying_client import RedisClient, ScriptCall
from rota.store.redis.script_compiler import script

UNIT_MS: Final[Mapping[str, int]] = {"minute": MINUTE_MS, "hour": HOUR_MS}
_MINUTE: Final = " minute"
_increments: Final = msgspec.msgpack.Decoder(list[int])


class Intervals(Mapping[int, Increments]):
    """Number of a minute or hour -> its increments, decoded when they are read.

    Decoded at once, the minutes of ten queues would take 200 MB and block the event loop for half a second.
    """

    def __init__(self, encoded: dict[int, bytes], latest: dict[int, Increments]) -> None:
        self._encoded: dict[int, bytes | Increments] = {**encoded, **latest}

    def __getitem__(self, number: int) -> Increments:
        value = self._encoded[number]
        if not isinstance(value, bytes):
            return value
        return _decode_increments(value)

    def __iter__(self) -> Iterator[int]:
        return iter(self._encoded)

    def __len__(self) -> int:
        return len(self._encoded)


class QueueCounters(NamedTuple):
    """The counters of one queue at one moment of the server's clock."""

    now: int
    #: Task -> its number among the tasks of the queue.
    task_numbers: dict[str, int]
    #: Totals, task by task.
    totals: tuple[int, ...]
    #: Number of a minute or hour -> its increments.
    intervals: Mapping[int, Increments]

    def counts_of(self, interval: int) -> Counts:
        """The sum over all tasks in one interval."""
        numbers = [0] * WIDTH
        for index, amount in self.intervals.get(interval, {}).items():
            numbers[index % WIDTH] += amount
        return counts_from(numbers)

    def only(self, interval: int) -> QueueCounters:
        """The same with one interval alone."""
        return self._replace(intervals={interval: self.intervals[interval]} if interval in self.intervals else {})

    def recent_by_task(self) -> dict[str, Counts]:
        """Task -> the sum of its counters over all intervals."""
        sums: dict[int, list[int]] = {}
        for increments in self.intervals.values():
            for index, amount in increments.items():
                number, count = divmod(index, WIDTH)
                sums.setdefault(number + 1, [0] * WIDTH)[count] += amount
        names = self._names()
        return {names[number]: counts_from(numbers) for number, numbers in sums.items()}

    def _names(self) -> dict[int, str]:
        return {**{number: task for task, number in self.task_numbers.items()}, OTHER_TASK_NUMBER: OTHER_TASKS}

    def total_by_task(self) -> dict[str, Counts]:
        """Task -> its totals."""
        names = self._names()
        found: dict[str, Counts] = {}
        for start in range(0, len(self.totals), WIDTH):
            numbers = self.totals[start : start + WIDTH]
            if any(numbers):
                found[names[start // WIDTH + 1]] = counts_from(numbers)
        return found

    def numbers_of(self, task: str | None) -> list[int] | None:
        """The numbers of a task: None for all tasks, none for a task that the queue has never had."""
        if task is None:
            return None
        return (
            [OTHER_TASK_NUMBER]
            if task == OTHER_TASKS
            else [number for name, number in self.task_numbers.items() if name == task]
        )


class CounterStore:
    """Reads the counters of one namespace."""

    def __init__(self, redis: RedisClient, keys: Keys) -> None:
        self._redis = redis
        self._keys = keys

    async def read(
        self, queues: Sequence[str], unit: str = "minute", first: int = 0, last: int = -1
    ) -> list[QueueCounters]:
        """The counters of queues, with the increments of each minute or hour from `first` to `last`."""
        keys = script("read_counters").keys
        calls = [
            ScriptCall("read_counters", [self._keys.queue(queue, key) for key in keys], [unit, first, last])
            for queue in queues
        ]
        answers = await self._redis.run_many(calls) if calls else []
        return [_read_counters(answer, unit, first) for answer in answers]

    async def read_hours(self, queues: Sequence[str], hours: Sequence[int]) -> list[QueueCounters]:
        """The counters of queues with the increments of past hours, by their numbers; without totals."""
        commands: list[list[str]] = [["TIME"]]
        for queue in queues:
            commands.append(["HGETALL", self._keys.queue(queue, "task_numbers")])
            commands.append(["MGET", *(self._keys.queue(queue, "hour_counters", str(hour)) for hour in hours)])
        answers = await self._redis.commands(commands)
        now = read_time_ms(answers[0])
        found: list[QueueCounters] = []
        for fields, stored in zip(answers[1::2], answers[2::2], strict=True):
            numbers = {name: int(number) for name, number in read_text_hash(fields).items() if name != _MINUTE}
            intervals = {hour: encoded for hour, encoded in zip(hours, stored, strict=True) if encoded}
            found.append(QueueCounters(now, numbers, (), Intervals(intervals, {})))
        return found


def _decode_increments(encoded: bytes) -> Increments:
    words = _increments.decode(encoded)
    return dict(zip(words[::2], words[1::2], strict=True))


def _read_counters(answer: list[Any], unit: str, first: int) -> QueueCounters:
    now, fields, totals, before, *added = answer
    task_numbers = {fields[at].decode(): int(fields[at + 1]) for at in range(0, len(fields), 2)}
    minute = task_numbers.pop(_MINUTE, 0)
    numbers, earlier = _unpack(totals), _unpack(before)
    stored = {first + index: encoded for index, encoded in enumerate(added) if encoded}
    current: dict[int, Increments] = {}
    latest = minute * MINUTE_MS // UNIT_MS[unit]
    if first <= latest < first + len(added):
        # The current interval is not stored yet: it is the difference to the totals at its start.
        earlier += (0,) * (len(numbers) - len(earlier))
        current[latest] = {index: n - earlier[index] for index, n in enumerate(numbers) if n != earlier[index]}
    return QueueCounters(int(now), task_numbers, numbers, Intervals(stored, current))


def _unpack(text: bytes) -> tuple[int, ...]:
    # The stored text ends at the last count that is not 0.
    text += b"\0" * (-len(text) % (8 * WIDTH))
    return struct.unpack(f">{len(text) // 8}q", text)
