"""Keeps the leases of a worker alive, and hears which of them are gone. Runs where no user code can hold it up."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from rota.errors import StoreError, StoreUnavailable
from rota.store.store import Store
from rota.worker.flights import Flights
from rota.worker.tower import Tower

logger = logging.getLogger("rota.worker")

#: A third of a lease: one heartbeat may get lost, and the next is still in time.
HEARTBEAT_S: Final = 1.5
#: One that has had no answer for this long may have got lost with its connection: another is sent beside it, on one of
#: its own.
SLOW_S: Final = 0.5
#: After one that failed, or is slow, the next comes this soon.
AGAIN_S: Final = 0.1


class Heartbeat:
    """Extends every lease that the worker holds; handlers whose lease is gone are stopped."""

    def __init__(self, store: Store, flights: Flights, tower: Tower) -> None:
        self._store = store
        self._flights = flights
        self._tower = tower
        #: When the server last took one for every lease; by the loop's clock.
        self.accepted_at = 0.0

    async def run(self) -> None:
        """For ever. Without a job there is nothing to say."""
        is_well = True
        async with asyncio.TaskGroup() as beats:
            while True:
                await asyncio.sleep(HEARTBEAT_S if is_well else AGAIN_S)
                if not self._flights.by_run:
                    is_well, self.accepted_at = True, asyncio.get_running_loop().time()
                    continue
                beat = beats.create_task(self._try(is_aside=not is_well), name="rota-beat")
                answered, _ = await asyncio.wait((beat,), timeout=SLOW_S)
                is_well = bool(answered) and beat.result()

    async def beat(self, *, is_aside: bool = False) -> None:
        """Once. What cannot be said of one queue does not keep the others from being heard."""
        said = (self._beat(queue, held, is_aside=is_aside) for queue, held in self._flights.held().items())
        for outcome in await asyncio.gather(*said, return_exceptions=True):
            if outcome is not None:
                raise outcome
        self.accepted_at = asyncio.get_running_loop().time()

    async def _beat(self, queue: str, held: list[tuple[str, str]], *, is_aside: bool) -> None:
        claims = dict(held)
        for run, why in (await self._store.heartbeat(queue, held, is_aside=is_aside)).items():
            self._tower.stop_claim(queue, run, claims[run], why)

    async def _try(self, *, is_aside: bool) -> bool:
        """True unless it is worth trying again at once.

        Nobody is robbed after a long outage, as the server lets a whole lease pass when it is back. A short one is not
        noticed there: then the next heartbeat must come before the lease runs out.
        """
        try:
            await self.beat(is_aside=is_aside)
        except StoreError as error:
            logger.debug("no heartbeat: %s", error)
            return not isinstance(error, StoreUnavailable)
        return True
