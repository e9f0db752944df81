"""Carries news of ended jobs to those that come after them, in whichever queue they are."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from rota.errors import StoreError
from rota.store.store import Store
from rota.store.ties import Ties

logger = logging.getLogger("rota.worker")


class Courier:
    """Delivers when a claim says that there is news. Any number of them may: news counts once, however often told."""

    def __init__(self, store: Store, *, wake: Callable[[str], None]) -> None:
        self._ties = Ties(store)
        self._wake = wake
        self._queues: dict[str, None] = {}
        self._something = asyncio.Event()

    def hear(self, queue: str) -> None:
        """There is news of jobs of that queue."""
        self._queues[queue] = None
        self._something.set()

    async def run(self) -> None:
        """For ever. What could not be delivered is still in the outbox, and a later claim says so again."""
        while True:
            await self._something.wait()
            self._something.clear()
            queues, self._queues = list(self._queues), {}
            for queue in queues:
                try:
                    await self._ties.post_all(queue, on_told=self._wake)
                except StoreError as error:
                    logger.debug("news of queue %s was not delivered: %s", queue, error)
