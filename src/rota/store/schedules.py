"""Schedules in the store: each lives in the slot of its queue, so that a tick and its job are one step.

Every call may be sent again: a tick by the moment it names, a change by what it finds, a rare call by its token.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from rota.core.schedule import Decision, Schedule, encode_schedule, tick_id
from rota.store.gateway import Argument, Gateway
from rota.store.keys import Keys
from rota.store.scripts import script

#: Schedules that one call reads.
BATCH: Final = 100


class StoredSchedule(NamedTuple):
    """One schedule as the store holds it: its next tick (None while it is paused, or there is none), its record."""

    queue: str
    name: str
    tick: int | None
    record: bytes


class Due(NamedTuple):
    """What is due in a queue at a moment of the server's clock, and when something will be; None when nothing will."""

    now: int
    next_tick: int | None
    schedules: list[StoredSchedule]


class Fired(NamedTuple):
    """What became of a tick: "fired"; "moved", "changed" or "early" when it was not for this caller to fire."""

    outcome: str
    made: int = 0
    skipped: int = 0


class ScheduleStore:
    """What can be done to schedules, and asked of them."""

    def __init__(self, gateway: Gateway, keys: Keys) -> None:
        self._gateway = gateway
        self._keys = keys

    # --- reading -----------------------------------------------------------------------------------------------

    async def queues(self) -> list[str]:
        """Names of the queues that have, or once had, schedules."""
        names = await self._gateway.command("SMEMBERS", self._keys.shared("recurring"))
        return sorted(name.decode() for name in names)

    async def names(self, queue: str) -> list[str]:
        """Names of a queue's schedules."""
        return sorted(
            name.decode() for name in await self._gateway.command("HKEYS", self._keys.queue(queue, "schedules"))
        )

    async def read(self, queue: str, names: Sequence[str]) -> tuple[int, list[StoredSchedule]]:
        """The server's time, and those of the schedules that exist."""
        now, found = 0, list[StoredSchedule]()
        for start in range(0, max(1, len(names)), BATCH):
            part = names[start : start + BATCH]
            answer = await self._run("read_schedules", queue, part)
            now = int(answer[0])
            found += (
                StoredSchedule(queue, name, _number(answer[2 * place + 1]), answer[2 * place + 2])
                for place, name in enumerate(part)
                if answer[2 * place + 2]
            )
        return now, found

    async def due(self, queue: str) -> Due:
        """What is to be fired now."""
        answer = await self._run("due_schedules", queue, [BATCH])
        found = [
            StoredSchedule(queue, answer[at].decode(), int(answer[at + 1]), answer[at + 2])
            for at in range(2, len(answer), 3)
        ]
        return Due(int(answer[0]), _number(answer[1]), found)

    # --- writing -----------------------------------------------------------------------------------------------

    async def put(self, schedule: Schedule) -> tuple[str, int]:
        """Makes or changes a schedule: "made", "changed", "same"; or "older" and the version that stays."""
        # Known before it is there: whoever ticks looks into these queues alone.
        await self._gateway.command("SADD", self._keys.shared("recurring"), schedule.queue)
        now, _ = await self.read(schedule.queue, [])
        following = schedule.rule.next_after(now)
        words: list[Argument] = [
            schedule.queue, self._keys.inbox_prefix, schedule.name, schedule.version, _text(following),
            *encode_schedule(schedule),
        ]  # fmt: skip
        answer = await self._run("put_schedule", schedule.queue, words)
        return answer[0].decode(), int(answer[1]) if len(answer) > 1 else schedule.version

    async def fire(self, schedule: Schedule, revision: int, tick: int, decision: Decision) -> Fired:
        """Does what was decided of a tick, unless somebody else has."""
        words: list[Argument] = [
            schedule.queue, self._keys.inbox_prefix, schedule.name, revision, tick, _text(decision.next_tick),
            schedule.overlap, decision.dropped, schedule.priority, schedule.expiry,
        ]  # fmt: skip
        for run in decision.run:
            words += (run, tick_id(schedule.name, run))
        answer = await self._run("fire", schedule.queue, words)
        return Fired(answer[0].decode(), *map(int, answer[1:]))

    async def pause(self, queue: str, name: str, *, wanted: str, revision: int, next_tick: int | None) -> str:
        """Stops ticks ("paused") or lets them go on ("open"): that word, "missing", or "changed" since it was read."""
        words: list[Argument] = [queue, self._keys.inbox_prefix, name, wanted, revision, _text(next_tick)]
        return (await self._run("pause_schedule", queue, words)).decode()

    async def run(self, schedule: Schedule, revision: int, job_id: str) -> str:
        """Makes a job now: its run, "missing", "changed" since it was read, or "in_use"."""
        words: list[Argument] = [
            schedule.queue, self._keys.inbox_prefix, schedule.name, revision, job_id, schedule.priority,
            schedule.expiry,
        ]  # fmt: skip
        return (await self._run("run_schedule", schedule.queue, words)).decode()

    async def remove(self, queue: str, name: str) -> bool:
        """Forgets a schedule; False when there is none."""
        return await self._run("remove_schedule", queue, [name]) == b"removed"

    async def _run(self, verb: str, queue: str, words: Sequence[Argument]) -> Any:
        token = secrets.token_hex(8)
        keys = [self._keys.queue(queue, key, token if key == "call" else "") for key in script(verb).keys]
        return await self._gateway.run(verb, keys, words)


def _text(tick: int | None) -> str:
    return "" if tick is None else str(tick)


def _number(text: bytes) -> int | None:
    return int(text) if text else None
