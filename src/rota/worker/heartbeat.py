"""Keeps the leases of a worker alive, and hears which of them are gone. Runs where no user code can hold it up."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from rota.errors import StoreError
from rota.store.store import Store
from rota.worker.flights import Flights
from rota.worker.tower import Tower

logger = logging.getLogger("rota.worker")

#: A third of a lease: one heartbeat may get lost, and the next is still in time.
HEARTBEAT_S: Final = 1.5


class Heartbeat:
    """Extends every lease that the worker holds; handlers whose lease is gone are stopped."""

    def __init__(self, store: Store, flights: Flights, tower: Tower) -> None:
        self._store = store
        self._flights = flights
        self._tower = tower

    async def run(self) -> None:
        """For ever. Without a job there is nothing to say."""
        while True:
            await asyncio.sleep(HEARTBEAT_S)
            try:
                await self.beat()
            except StoreError as error:
                # Nobody is robbed while the server is away: it lets a whole lease pass after it is back.
                logger.debug("no heartbeat: %s", error)

    async def beat(self) -> None:
        """Once."""
        for queue, held in self._flights.held().items():
            claims = dict(held)
            for run, why in (await self._store.heartbeat(queue, held)).items():
                self._tower.stop_claim(queue, run, claims[run], why)
