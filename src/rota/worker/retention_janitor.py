"""Deletes finished jobs whose retention is over, in queues where no other job ends and does so.

Removes the blobs of jobs that are gone from the user's own store, too: the server cannot reach that.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Sequence
from typing import Final

from rota.client.blob_transfer import folder_of
from rota.client.external_blobs import ExternalBlobs
from rota.errors import StoreError
from rota.store.blob_store import REMOVAL_BATCH, BlobStore
from rota.store.job_store import JobStore

logger = logging.getLogger("rota.worker")

SWEEP_S: Final = 60.0


class RetentionJanitor:
    """Purges the queues of a worker now and then. Every worker has one; they do not interfere."""

    def __init__(self, store: JobStore, queues: Sequence[str], *, blobs: str = "") -> None:
        self._store = store
        self._queues = queues
        self._blobs = BlobStore(store)
        self._external = ExternalBlobs(blobs) if blobs else None

    async def run(self) -> None:
        """Runs until cancelled. The pause is random, so that workers started together do not purge together."""
        while True:
            await asyncio.sleep(SWEEP_S * random.uniform(0.5, 1.5))
            for queue in self._queues:
                await self.sweep(queue)

    async def sweep(self, queue: str) -> None:
        """Deletes what is over in one queue, slice by slice."""
        try:
            while await self._store.apply_retention(queue):
                pass
            if self._external is not None:
                while await self._remove_external_blobs(queue, self._external) == REMOVAL_BATCH:
                    pass
        except StoreError as error:
            logger.debug("not swept: %s", error)

    async def _remove_external_blobs(self, queue: str, external: ExternalBlobs) -> int:
        """Removes a slice. Returns how many; 0 where the user's store fails, and a later sweep tries again."""
        blobs = await self._blobs.take_removable(queue)
        if not blobs:
            return 0
        try:
            await external.remove(folder_of(self._store.keys.namespace, queue), blobs)
        except Exception as error:  # each store of fsspec has errors of its own; the entries stay, to be tried again
            logger.warning("blobs of queue %s were not removed from %s: %s", queue, external.url, error)
            return 0
        await self._blobs.ack_removed(queue, blobs)
        return len(blobs)
