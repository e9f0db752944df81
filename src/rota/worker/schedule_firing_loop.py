"""Fires the schedules of the queues that a worker serves, when they are due. Every worker does; there is no leader.

The store decides: of all workers that fire a tick one succeeds, and a tick is due by the server's clock. So this loop
only has to be in time. It sleeps until the next tick that it knows of, is woken when schedules change, and polls every
few seconds: one call for all queues, then only the queues that have schedules.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Sequence
from typing import Final

from rota.core.explain import format_count
from rota.core.schedule import UnreadableSchedule, decide, decode_schedule
from rota.errors import StoreError
from rota.store.job_store import JobStore
from rota.store.schedules import DueSchedule, ScheduleStore, StoredSchedule

logger = logging.getLogger("rota.worker")

#: The polling interval: pushes are hints. Idle, that is a tenth of a command per second.
LOOK_AGAIN_S: Final = 10.0
#: Workers that wait for the same tick do not all ask at the same instant.
SPREAD_S: Final = 0.02
#: So many rounds of ticks are fired in one queue before the others get their turn.
ROUNDS: Final = 20
YIELD_S: Final = 0.1


class Scheduler:
    """Fires the ticks that are due, and sleeps until the next."""

    def __init__(self, store: JobStore, queues: Sequence[str]) -> None:
        self._schedules = ScheduleStore(store.redis, store.keys)
        self._queues = queues
        self._recurring: list[str] = []
        self._look_at = 0.0
        self._has_changed = asyncio.Event()
        self._unreadable: set[bytes] = set()

    def wake(self) -> None:
        """Makes the scheduler read the schedules now: they may have changed."""
        self._look_at = 0.0
        self._has_changed.set()

    async def run(self) -> None:
        """Runs until cancelled."""
        while True:
            self._has_changed.clear()
            try:
                wait = await self._tick()
            except StoreError as error:
                logger.debug("schedules were not read: %s", error)
                wait = LOOK_AGAIN_S
            try:
                async with asyncio.timeout(wait + random.uniform(0, SPREAD_S)):
                    await self._has_changed.wait()
            except TimeoutError:
                continue  # a tick is due, or it is time to poll

    async def _tick(self) -> float:
        """Fires the due ticks of all queues; returns the seconds until the next."""
        now = asyncio.get_running_loop().time()
        if self._look_at <= now:
            self._look_at = now + LOOK_AGAIN_S  # before the call: a change during it makes the next round read again
            recurring = await self._schedules.queues()
            self._recurring = [queue for queue in self._queues if queue in recurring]
        waits = [self._look_at - now]
        for queue in self._recurring:
            try:
                waits.append(await self._tick_queue(queue))
            except StoreError as error:  # an error in one queue must not stop the others
                logger.warning("schedules of queue %s: %s", queue, error)
        return max(0.0, min(waits))

    async def _tick_queue(self, queue: str) -> float:
        for _ in range(ROUNDS):
            due = await self._schedules.due(queue)
            handled = [await self._fire(stored, due) for stored in due.schedules]
            if not any(handled):
                # It must not be asked for before it is due by the server's clock: 1 ms is added.
                return LOOK_AGAIN_S if due.next_tick is None else (due.next_tick - due.now + 1) / 1000
        return YIELD_S

    async def _fire(self, stored: StoredSchedule, due: DueSchedule) -> bool:
        """Returns False when this worker cannot fire it."""
        try:
            known, state = decode_schedule(stored.queue, stored.name, stored.record)
        except UnreadableSchedule as error:
            if stored.record not in self._unreadable:  # logged once: a worker of another version may be able to read it
                self._unreadable.add(stored.record)
                logger.error("%s", error)
            return False
        assert stored.tick is not None, "it is due"
        decision = decide(known.rule, known.misfire, stored.tick, due.now)
        fired = await self._schedules.fire(known, state.revision, stored.tick, decision)
        if fired.outcome == "fired":
            fields = {"schedule": known.full_name, "queue": known.queue, "task": known.task}
            logger.debug("schedule %s fired: %s", known.full_name, format_count(fired.made, "job"), extra=fields)
            if fired.skipped:  # as configured, perhaps at every tick
                logger.debug("schedule %s: the job before has not ended", known.full_name, extra=fields)
            if decision.dropped:
                logger.warning(
                    "schedule %s: %d ticks were missed and dropped", known.full_name, decision.dropped, extra=fields
                )
        return fired.outcome != "early"
