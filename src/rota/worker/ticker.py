"""Fires the schedules of the queues that a worker serves, when they are due. Every worker does; none leads.

The store decides: of all who fire a tick one does, and a tick is due by the server's clock. So this loop only has to be
there in time. It sleeps until the next tick that it knows of, hears of schedules that were changed, and looks for
itself every few seconds: once for all queues, and then only where there are schedules.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Sequence
from typing import Final

from rota.core.schedule import UnreadableSchedule, decide, decode_schedule
from rota.errors import StoreError
from rota.store.schedules import Due, ScheduleStore, StoredSchedule
from rota.store.store import Store

logger = logging.getLogger("rota.worker")

#: Pushes are hints: it looks for itself this often. Idle, that is a tenth of a command per second.
LOOK_AGAIN_S: Final = 10.0
#: Workers that wait for the same tick do not all ask in the same instant.
SPREAD_S: Final = 0.02
#: Rounds in which it looks and fires before it lets others have their turn.
ROUNDS: Final = 20
BREATH_S: Final = 0.1


class Ticker:
    """Fires what is due, and sleeps until something is."""

    def __init__(self, store: Store, queues: Sequence[str]) -> None:
        self._schedules = ScheduleStore(store.gateway, store.keys)
        self._queues = queues
        self._recurring: list[str] = []
        self._look_at = 0.0
        self._has_changed = asyncio.Event()
        self._unreadable: set[bytes] = set()

    def look(self) -> None:
        """Schedules may have changed: looks at once."""
        self._look_at = 0.0
        self._has_changed.set()

    async def run(self) -> None:
        """For ever."""
        while True:
            self._has_changed.clear()
            try:
                wait = await self._tick()
            except StoreError as error:
                logger.debug("not ticking: %s", error)
                wait = LOOK_AGAIN_S
            try:
                async with asyncio.timeout(wait + random.uniform(0, SPREAD_S)):
                    await self._has_changed.wait()
            except TimeoutError:
                continue  # something is due, or it is time to look

    async def _tick(self) -> float:
        """Fires what is due in all queues; seconds until there may be more."""
        now = asyncio.get_running_loop().time()
        if self._look_at <= now:
            recurring = await self._schedules.queues()
            self._recurring = [queue for queue in self._queues if queue in recurring]
            self._look_at = now + LOOK_AGAIN_S
        waits = [self._look_at - now]
        for queue in self._recurring:
            try:
                waits.append(await self._tick_queue(queue))
            except StoreError as error:  # what is wrong with one queue must not keep others from ticking
                logger.warning("schedules of queue %s: %s", queue, error)
        return max(0.0, min(waits))

    async def _tick_queue(self, queue: str) -> float:
        for _ in range(ROUNDS):
            due = await self._schedules.due(queue)
            handled = [await self._fire(stored, due) for stored in due.schedules]
            if not any(handled):
                # It must not be asked for before it is due by the server's clock: a moment is added.
                return LOOK_AGAIN_S if due.next_tick is None else (due.next_tick - due.now + 1) / 1000
        return BREATH_S

    async def _fire(self, stored: StoredSchedule, due: Due) -> bool:
        """False when nothing can be done about it here."""
        try:
            known, state = decode_schedule(stored.queue, stored.name, stored.record)
        except UnreadableSchedule as error:
            if stored.record not in self._unreadable:  # said once: a worker of another version may know better
                self._unreadable.add(stored.record)
                logger.error("%s", error)
            return False
        assert stored.tick is not None, "it is due"
        decision = decide(known.rule, known.misfire, stored.tick, due.now)
        fired = await self._schedules.fire(known, state.revision, stored.tick, decision)
        if fired.outcome == "fired":
            fields = {"schedule": known.full_name, "queue": known.queue, "task": known.task}
            logger.debug("schedule %s fired: %d jobs", known.full_name, fired.made, extra=fields)
            if fired.skipped:  # as asked for, perhaps at every tick
                logger.debug("schedule %s: the job before has not ended", known.full_name, extra=fields)
            if decision.dropped:
                logger.warning(
                    "schedule %s: %d ticks were missed and dropped", known.full_name, decision.dropped, extra=fields
                )
        return fired.outcome != "early"
