"""Deletes finished jobs whose retention is over, in queues where no other job ends and does so."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Sequence
from typing import Final

from rota.errors import StoreError
from rota.store.job_store import JobStore

logger = logging.getLogger("rota.worker")

SWEEP_S: Final = 60.0


class RetentionJanitor:
    """Purges the queues of a worker now and then. Every worker has one; they do not interfere."""

    def __init__(self, store: JobStore, queues: Sequence[str]) -> None:
        self._store = store
        self._queues = queues

    async def run(self) -> None:
        """Runs until cancelled. The pause is random, so that workers started together do not purge together."""
        while True:
            await asyncio.sleep(SWEEP_S * random.uniform(0.5, 1.5))
            for queue in self._queues:
                try:
                    while await self._store.apply_retention(queue):
                        pass  # slice by slice
                except StoreError as error:
                    logger.debug("not swept: %s", error)
