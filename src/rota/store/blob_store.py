"""Blobs: large arguments in chunks next to their job, and the names of those in the user's own store.

A blob is stored before its job, and expires unless an enqueue takes it: `take_blobs.lua`. From then on it is removed
with the job, whichever call removes that: `remove_blobs_of_runs.lua`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from rota.store.job_store import JobStore
from rota.store.redis.retrying_client import Argument

#: External blobs that one call gives to a worker for removal.
REMOVAL_BATCH: Final = 100


class BlobStore:
    """Stores, reads and removes blobs. All methods are harmless when their call is sent again."""

    def __init__(self, store: JobStore) -> None:
        self._store = store

    async def append(self, queue: str, blob: str, index: int, chunk: bytes) -> str:
        """Stores a chunk: "ok", "taken" if a job has the blob already, or "missing" if earlier chunks have expired."""
        return (await self._run("append_blob_chunk", queue, [blob, index, chunk])).decode()

    async def reserve(self, queue: str, blob: str) -> None:
        """Notes an external blob that is being written: unless a job takes it within an hour, it is removed."""
        await self._run("reserve_external_blob", queue, [blob])

    async def discard(self, queue: str, blobs: Sequence[str]) -> None:
        """Removes blobs, except those that a job has taken."""
        await self._run("discard_blobs", queue, blobs)

    async def read(self, queue: str, run: str, blob: str, index: int | None) -> bytes | None:
        """Returns a chunk; None if the run does not have the blob. Without an index, only checks that it has."""
        return await self._run("read_blob_chunk", queue, [run, blob, "" if index is None else index])

    async def take_removable(self, queue: str) -> list[str]:
        """Returns external blobs to be removed from the user's store, and then acknowledged."""
        return [blob.decode() for blob in await self._run("take_removable_external_blobs", queue, [REMOVAL_BATCH])]

    async def ack_removed(self, queue: str, blobs: Sequence[str]) -> None:
        """Forgets external blobs that have been removed."""
        await self._run("ack_removed_external_blobs", queue, blobs)

    async def _run(self, name: str, queue: str, arguments: Sequence[Argument]) -> Any:
        return await self._store.redis.run(name, self._store.script_keys(name, queue), arguments)
