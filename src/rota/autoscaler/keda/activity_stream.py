"""Pushes to KEDA whether the queues of a trigger need workers, so that the first job does not wait for KEDA's poll."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Final

from rota.autoscaler.keda.trigger_metadata import Trigger
from rota.autoscaler.keda.workers_needed import Need, workers_needed
from rota.autoscaler.queue_demand_and_pool_machines import DemandReader
from rota.autoscaler.wake_on_first_job import wake_on_events
from rota.client.session import Session
from rota.errors import StoreError

logger = logging.getLogger("rota.keda")

#: The least time between two looks that events start.
PACE_S: Final = 0.5
#: True is sent again after this time while it holds: KEDA drops one that comes before it has set up its own objects.
REPEAT_S: Final = 5.0
#: The pause after an error of the store.
AGAIN_S: Final = 0.5
#: The longest wait for the next scheduled job: clocks drift.
LONGEST_WAIT_S: Final = 3600.0


class ActivityStream:
    """One stream of answers to *do these queues need a worker?*, from when KEDA opens it until it closes it."""

    def __init__(self, session: Session, trigger: Trigger) -> None:
        self._session = session
        self._trigger = trigger
        self._names = DemandReader(trigger.queues).names
        self._wake_up = asyncio.Event()
        self._is_stopping = False
        self._is_store_away = False

    def stop(self) -> None:
        """Ends the stream."""
        self._is_stopping = True
        self._wake_up.set()

    async def answers(self) -> AsyncGenerator[bool]:
        """Yields the present state, each change of it, and True again while no worker serves the queues.

        Raises StoreError if the store does not answer at the start. Later outages are waited for, and nothing is
        yielded meanwhile: a stream that ends with an error is opened again after up to a minute.
        """
        need: Need | None = await workers_needed(self._session, self._trigger)
        events = asyncio.create_task(
            wake_on_events(self._session, lambda: self._names(self._session), self._wake_up.set, PACE_S)
        )
        clock = asyncio.get_running_loop().time
        sent: bool | None = None
        sent_at = 0.0
        try:
            while not self._is_stopping:
                if need is not None:
                    is_active = need.needed > 0
                    is_due = is_active and (not need.serving or clock() - sent_at >= REPEAT_S)
                    if is_active is not sent or is_due:
                        sent, sent_at = is_active, clock()
                        yield is_active
                await self._wait(need)
                # Before the look: an event that comes during it is for the next one.
                self._wake_up.clear()
                need = await self._look()
        finally:
            events.cancel()
            await asyncio.gather(events, return_exceptions=True)

    async def _look(self) -> Need | None:
        """Returns None if the store does not answer."""
        try:
            need = await workers_needed(self._session, self._trigger)
        except StoreError as error:
            if not self._is_store_away:
                logger.warning("nothing is pushed to KEDA until the store answers: %s", error)
            self._is_store_away = True
            return None
        self._is_store_away = False
        return need

    async def _wait(self, need: Need | None) -> None:
        """Waits for an event, or until a scheduled job is so close that a worker has to boot for it."""
        with suppress(TimeoutError):
            async with asyncio.timeout(await self._longest_wait_s(need)):
                await self._wake_up.wait()

    async def _longest_wait_s(self, need: Need | None) -> float:
        if need is None:
            return AGAIN_S
        if need.needed:
            return REPEAT_S
        try:
            next_due = await self._session.scaling.next_due(await self._names(self._session))
        except StoreError:
            return AGAIN_S  # the next look reports it
        if next_due is None:
            return LONGEST_WAIT_S
        wait_s = (next_due - self._trigger.policy.boot_ms - need.at_ms) / 1000
        # A job of a paused queue may be overdue, and needs no worker.
        return min(wait_s, LONGEST_WAIT_S) if wait_s > 0 else REPEAT_S
