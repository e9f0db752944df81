"""Carries news of ended jobs to those that come after them, in whichever queue they are."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from rota.errors import StoreError
from rota.store.store import Store
from rota.store.ties import FLOWS, Ties

logger = logging.getLogger("rota.worker")


class Courier:
    """Delivers when a claim says that there is news. Any number of them may: news counts once, however often told."""

    def __init__(self, store: Store, *, wake: Callable[[str], None], conduct: Callable[[], None]) -> None:
        self._ties = Ties(store)
        self._wake = wake
        self._conduct = conduct
        self._queues: dict[str, None] = {}
        self._something = asyncio.Event()
        #: Set while there is nothing to deliver.
        self.is_idle = asyncio.Event()
        self.is_idle.set()

    def hear(self, queue: str) -> None:
        """There is news of jobs of that queue."""
        self._queues[queue] = None
        self.is_idle.clear()
        self._something.set()

    def _told(self, queue: str) -> None:
        if queue == FLOWS:
            self._conduct()
        else:
            self._wake(queue)

    async def run(self) -> None:
        """For ever. What could not be delivered is still in the outbox, and a later claim says so again."""
        while True:
            await self._something.wait()
            self._something.clear()
            queues, self._queues = list(self._queues), {}
            for queue in queues:
                try:
                    await self._ties.post_all(queue, on_told=self._told)
                except StoreError as error:
                    logger.debug("news of queue %s was not delivered: %s", queue, error)
            if not self._queues:
                self.is_idle.set()
