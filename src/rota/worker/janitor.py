"""Forgets finished jobs whose time is over, in queues where nothing else ends and pushes them out."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Sequence
from typing import Final

from rota.errors import StoreError
from rota.store.store import Store

logger = logging.getLogger("rota.worker")

SWEEP_S: Final = 60.0


class Janitor:
    """Sweeps now and then. Any number of them may: none is in another's way."""

    def __init__(self, store: Store, queues: Sequence[str]) -> None:
        self._store = store
        self._queues = queues

    async def run(self) -> None:
        """For ever. The pause is drawn, so that workers started together do not sweep together."""
        while True:
            await asyncio.sleep(SWEEP_S * random.uniform(0.5, 1.5))
            for queue in self._queues:
                try:
                    while await self._store.sweep(queue):
                        pass  # slice by slice
                except StoreError as error:
                    logger.debug("not swept: %s", error)
