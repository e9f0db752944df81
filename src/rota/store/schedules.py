"""Schedules: each is stored in the hash slot of its queue, so that a tick and its jobs are written in one script.

Every call is idempotent: a tick by its time, a change by the revision it expects, other calls by a random token.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from rota.core.schedule import FireDecision, Schedule, encode_schedule, tick_id
from rota.store.keys import Keys
from rota.store.redis.retrying_client import Argument, RedisClient
from rota.store.redis.script_compiler import script

#: Schedules that one call reads.
BATCH: Final = 100


class StoredSchedule(NamedTuple):
    """A stored schedule: its record, and its next tick (None while paused, or when there is none)."""

    queue: str
    name: str
    tick: int | None
    record: bytes


class DueSchedule(NamedTuple):
    """The schedules of a queue that are due at the server's time `now`, and the tick after them, if any."""

    now: int
    next_tick: int | None
    schedules: list[StoredSchedule]


class FireResult(NamedTuple):
    """The outcome of a tick: "fired"; or "moved", "changed" or "early" when this caller must not fire it."""

    outcome: str
    made: int = 0
    skipped: int = 0


class ScheduleStore:
    """Reads, writes and fires schedules."""

    def __init__(self, redis: RedisClient, keys: Keys) -> None:
        self._redis = redis
        self._keys = keys

    # --- reading -----------------------------------------------------------------------------------------------

    async def queues(self) -> list[str]:
        """Names of the queues that have or had schedules."""
        names = await self._redis.command("SMEMBERS", self._keys.shared("schedule_queues"))
        return sorted(name.decode() for name in names)

    async def names(self, queue: str) -> list[str]:
        """Names of the schedules of a queue."""
        return sorted(
            name.decode() for name in await self._redis.command("HKEYS", self._keys.queue(queue, "schedules"))
        )

    async def read(self, queue: str, names: Sequence[str]) -> tuple[int, list[StoredSchedule]]:
        """The server's time, and the schedules of these names that exist."""
        now, found = 0, list[StoredSchedule]()
        for start in range(0, max(1, len(names)), BATCH):
            part = names[start : start + BATCH]
            answer = await self._run("read_named_schedules", queue, part)
            now = int(answer[0])
            found += (
                StoredSchedule(queue, name, _number(answer[2 * index + 1]), answer[2 * index + 2])
                for index, name in enumerate(part)
                if answer[2 * index + 2]
            )
        return now, found

    async def due(self, queue: str) -> DueSchedule:
        """The schedules of a queue that are due now."""
        answer = await self._run("read_due_schedules", queue, [BATCH])
        found = [
            StoredSchedule(queue, answer[at].decode(), int(answer[at + 1]), answer[at + 2])
            for at in range(2, len(answer), 3)
        ]
        return DueSchedule(int(answer[0]), _number(answer[1]), found)

    # --- writing -----------------------------------------------------------------------------------------------

    async def put(self, schedule: Schedule) -> tuple[str, int]:
        """Creates or changes a schedule: "made", "changed", "same"; or "older", and the version that stays."""
        # Before the schedule exists: schedulers read these queues only.
        await self._redis.command("SADD", self._keys.shared("schedule_queues"), schedule.queue)
        now, _ = await self.read(schedule.queue, [])
        following = schedule.rule.next_after(now)
        words: list[Argument] = [
            schedule.queue,
            self._keys.inbox_prefix,
            schedule.name,
            schedule.version,
            _text(following),
            *encode_schedule(schedule),
        ]
        outcome, *stored = (await self._run("put_schedule", schedule.queue, words)).decode().split(" ")
        return outcome, int(stored[0]) if stored else schedule.version

    async def fire(self, schedule: Schedule, revision: int, tick: int, decision: FireDecision) -> FireResult:
        """Carries out the decision about a tick, unless another scheduler has."""
        words: list[Argument] = [
            schedule.queue,
            self._keys.inbox_prefix,
            schedule.name,
            revision,
            tick,
            _text(decision.next_tick),
            schedule.overlap,
            decision.dropped,
            schedule.priority,
            schedule.expiry,
        ]
        for run in decision.run:
            words += (run, tick_id(schedule.name, run))
        answer = await self._run("fire_schedule", schedule.queue, words)
        return FireResult(answer[0].decode(), *map(int, answer[1:]))

    async def pause(self, queue: str, name: str, *, wanted: str, revision: int, next_tick: int | None) -> str:
        """Pauses ("paused") or resumes ("open") a schedule: that word, "missing", or "changed" since it was read."""
        words: list[Argument] = [queue, self._keys.inbox_prefix, name, wanted, revision, _text(next_tick)]
        return (await self._run("pause_or_resume_schedule", queue, words)).decode()

    async def run(self, schedule: Schedule, revision: int, job_id: str) -> str:
        """Enqueues a job now: returns its run, "missing", "changed" since it was read, or "in_use"."""
        words: list[Argument] = [
            schedule.queue,
            self._keys.inbox_prefix,
            schedule.name,
            revision,
            job_id,
            schedule.priority,
            schedule.expiry,
        ]
        return (await self._run("run_schedule_now", schedule.queue, words)).decode()

    async def remove(self, queue: str, name: str) -> bool:
        """Deletes a schedule; False when there is none."""
        return await self._run("remove_schedule", queue, [name]) == b"removed"

    async def _run(self, verb: str, queue: str, words: Sequence[Argument]) -> Any:
        token = secrets.token_hex(8)
        keys = [self._keys.queue(queue, key, token if key == "reply" else "") for key in script(verb).keys]
        return await self._redis.run(verb, keys, words)


def _text(tick: int | None) -> str:
    return "" if tick is None else str(tick)


def _number(text: bytes) -> int | None:
    return int(text) if text else None
