"""Gauges for monitoring: locks, schedules, outbox and workflows, each read with one O(1) command."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from rota.store.keys import Keys
from rota.store.redis.hash_and_time_replies import read_time_ms
from rota.store.redis.retrying_client import RedisClient


class QueueGauges(msgspec.Struct, frozen=True):
    """The gauges of one queue."""

    queue: str
    #: Locks that are held by a run that is pending or processing.
    locks: int
    #: Unfinished runs that wait for a lock.
    lock_waiting: int
    schedules: int
    paused_schedules: int
    #: How long the earliest tick is overdue, ms; 0 if none is.
    schedule_lag_ms: int
    #: Outcomes of parents that have not been delivered to their dependents.
    outbox: int
    #: Cancelled runs whose handlers have not stopped yet.
    stopping: int


class WorkflowGauges(msgspec.Struct, frozen=True):
    """The gauges of all workflows."""

    kept: int
    stuck: int
    awaiting_decision: int


class Gauges:
    """Reads the gauges, in one round trip."""

    def __init__(self, redis: RedisClient, keys: Keys) -> None:
        self._redis = redis
        self._keys = keys

    async def read(self, queues: Sequence[str]) -> tuple[list[QueueGauges], WorkflowGauges]:
        """The gauges of these queues, and those of all workflows."""
        commands = [
            ["TIME"],
            *(["ZCARD", self._keys.shared(name)] for name in ("workflows", "stuck_workflows", "workflow_due")),
        ]
        for queue in queues:
            commands += (["HLEN", self._keys.queue(queue, name)] for name in ("locks", "locked", "schedules"))
            commands += (["ZCARD", self._keys.queue(queue, name)] for name in ("schedule_due", "outbox", "stopping"))
            commands.append(["ZRANGE", self._keys.queue(queue, "schedule_due"), "0", "0", "WITHSCORES"])
        answers = await self._redis.commands(commands)
        now = read_time_ms(answers[0])
        rest = answers[4:]
        width = len(rest) // len(queues) if queues else 0
        found = [_queue(queue, rest[index * width : (index + 1) * width], now) for index, queue in enumerate(queues)]
        return found, WorkflowGauges(*map(int, answers[1:4]))


def _queue(queue: str, part: Sequence[Any], now: int) -> QueueGauges:
    locks, locked, schedules, ticks, outbox, stopping = map(int, part[:6])
    return QueueGauges(
        queue=queue,
        locks=locks,
        lock_waiting=max(0, locked - locks),
        schedules=ticks,
        paused_schedules=max(0, schedules - ticks),
        schedule_lag_ms=max(0, now - int(float(part[6][1]))) if part[6] else 0,
        outbox=outbox,
        stopping=stopping,
    )
