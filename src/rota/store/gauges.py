"""What monitoring wants to know of the store beyond the queues themselves: each figure at the cost of one lookup."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from rota.store.gateway import Gateway
from rota.store.keys import Keys


class QueueGauges(msgspec.Struct, frozen=True):
    """How things stand around one queue."""

    queue: str
    #: Locks that a run has, or is about to have.
    locks: int
    #: Unfinished runs that ask for a lock, and do not have it.
    lock_waiting: int
    schedules: int
    paused_schedules: int
    #: How long the next tick has been due, ms; 0 while it is not.
    schedule_lag_ms: int
    #: Ends of jobs that dependents have not heard of.
    outbox: int
    #: Runs that were cancelled, and whose handler has yet to stop.
    stopping: int


class FlowGauges(msgspec.Struct, frozen=True):
    """How the workflows stand."""

    kept: int
    held: int
    undecided: int


class Gauges:
    """Asks for them, in one round trip."""

    def __init__(self, gateway: Gateway, keys: Keys) -> None:
        self._gateway = gateway
        self._keys = keys

    async def read(self, queues: Sequence[str]) -> tuple[list[QueueGauges], FlowGauges]:
        """Of these queues, and of all workflows."""
        commands = [
            ["TIME"],
            *(["ZCARD", self._keys.shared(name)] for name in ("flows", "held", "flow_due")),
        ]
        for queue in queues:
            commands += (["HLEN", self._keys.queue(queue, name)] for name in ("locks", "locked", "schedules"))
            commands += (["ZCARD", self._keys.queue(queue, name)] for name in ("ticks", "outbox", "stopping"))
            commands.append(["ZRANGE", self._keys.queue(queue, "ticks"), "0", "0", "WITHSCORES"])
        answers = await self._gateway.commands(commands)
        now = int(answers[0][0]) * 1000 + int(answers[0][1]) // 1000
        rest = answers[4:]
        width = len(rest) // len(queues) if queues else 0
        found = [_queue(queue, rest[place * width : (place + 1) * width], now) for place, queue in enumerate(queues)]
        return found, FlowGauges(*map(int, answers[1:4]))


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
