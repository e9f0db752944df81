"""Renews the leases of a worker, and stops handlers whose lease is gone. Runs where no user code can block it."""

from __future__ import annotations

import asyncio
import logging
import math
from contextlib import suppress
from typing import Final

from rota.errors import StoreError, StoreUnavailable
from rota.store.job_store import JobStore
from rota.worker.claim_queues import ClaimQueues
from rota.worker.dispatcher import Dispatcher
from rota.worker.running_jobs import RunningJobs

logger = logging.getLogger("rota.worker")

#: A heartbeat without an answer for this long may have got lost with its connection: another is sent on a separate one.
SLOW_S: Final = 0.5
#: The pause after a heartbeat that failed, or is slow.
AGAIN_S: Final = 0.1


class Heartbeat:
    """Extends every lease that the worker holds."""

    def __init__(self, store: JobStore, queues: ClaimQueues, running: RunningJobs, dispatcher: Dispatcher) -> None:
        self._store = store
        self._queues = queues
        self._running = running
        self._dispatcher = dispatcher
        #: When the server last accepted a heartbeat for every lease; by the loop's clock.
        self.accepted_at = 0.0
        #: Queue -> when the last heartbeat for it that was answered was sent.
        self._answered_at: dict[str, float] = {}

    async def run(self) -> None:
        """Runs until cancelled. Without leases nothing is sent."""
        is_well = True
        async with asyncio.TaskGroup() as beats:
            while True:
                await self._pause(is_well=is_well)
                if not self._running.by_run:
                    is_well, self.accepted_at = True, asyncio.get_running_loop().time()
                    continue
                beat = beats.create_task(self._try(is_separate=not is_well), name="rota-beat")
                answered, _ = await asyncio.wait((beat,), timeout=SLOW_S)
                is_well = bool(answered) and beat.result()

    async def _pause(self, *, is_well: bool) -> None:
        """Waits until the next heartbeat is due. After a change of the settings that is now: a lease may be shorter."""
        durations = self._queues.durations
        with suppress(TimeoutError):
            async with asyncio.timeout(durations.heartbeat_ms / 1000 if is_well else AGAIN_S):
                await durations.changed.wait()
        durations.changed.clear()

    async def beat(self, *, is_separate: bool = False) -> None:
        """Sends one heartbeat for each queue. An error in one queue does not affect the others."""
        beats = (self._beat(queue, leases, is_separate=is_separate) for queue, leases in self._running.leases().items())
        for error in await asyncio.gather(*beats, return_exceptions=True):
            if error is not None:
                raise error
        self.accepted_at = asyncio.get_running_loop().time()

    async def _beat(self, queue: str, leases: list[tuple[str, str]], *, is_separate: bool) -> None:
        claims = dict(leases)
        sent_at = asyncio.get_running_loop().time()
        given_up = self._queues.give_up_overdue(queue, self._answered_at.get(queue, -math.inf), sent_at)
        refused = await self._store.heartbeat(
            queue,
            leases,
            given_up=given_up,
            lease_ms=self._queues.durations.lease_ms,
            outage_gap_ms=self._queues.durations.outage_gap_ms,
            on_separate_connection=is_separate,
        )
        # A slow heartbeat is overtaken by the next one, on a separate connection.
        self._answered_at[queue] = max(sent_at, self._answered_at.get(queue, -math.inf))
        for run, why in refused.items():
            self._dispatcher.stop_claim(queue, run, claims[run], why)

    async def _try(self, *, is_separate: bool) -> bool:
        """Returns False when it is worth trying again at once.

        After a long outage no lease is reclaimed: the server lets a whole lease pass when it is back. A short outage is
        not noticed there: then the next heartbeat must come before the lease runs out.
        """
        try:
            await self.beat(is_separate=is_separate)
        except StoreError as error:
            logger.debug("heartbeat failed: %s", error)
            return not isinstance(error, StoreUnavailable)
        return True
