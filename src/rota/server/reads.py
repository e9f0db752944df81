"""Reads single jobs: what is asked for at the same time travels together, as enqueues do."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from rota.client import Rota
from rota.core.job import JobRef
from rota.errors import JobNotFound
from rota.store.views import Snapshot

#: Jobs that one call reads: what keeps it below 5 ms.
BATCH: Final = 100


class Reads:
    """One call per queue is under way; what is asked for meanwhile leaves together with the next."""

    def __init__(self, rota: Rota) -> None:
        self._rota = rota
        self._waiting: dict[str, list[tuple[JobRef, asyncio.Future[Snapshot | None]]]] = {}
        self._sending: dict[str, asyncio.Task[None]] = {}

    async def find(self, ref: JobRef) -> Snapshot | None:
        """A job as it is now; None if there is none."""
        ref = await (await self._rota.checked_link()).locate(ref)
        loop = asyncio.get_running_loop()
        asked: asyncio.Future[Snapshot | None] = loop.create_future()
        self._waiting.setdefault(ref.queue, []).append((ref, asked))
        if ref.queue not in self._sending:
            self._sending[ref.queue] = loop.create_task(self._send(ref.queue))
        return await asked

    async def get(self, ref: JobRef) -> Snapshot:
        """The same. Raises JobNotFound."""
        found = await self.find(ref)
        if found is None:
            raise JobNotFound(str(ref))
        return found

    async def many(self, refs: Sequence[JobRef]) -> list[Snapshot | None]:
        """Several, each None if there is none."""
        return list(await asyncio.gather(*(self.find(ref) for ref in refs)))

    async def _send(self, queue: str) -> None:
        try:
            while waiting := self._waiting.pop(queue, None):
                for start in range(0, len(waiting), BATCH):
                    await self._read(queue, waiting[start : start + BATCH])
        finally:
            del self._sending[queue]

    async def _read(self, queue: str, part: list[tuple[JobRef, asyncio.Future[Snapshot | None]]]) -> None:
        try:
            found = await (await self._rota.checked_views()).read(queue, [ref for ref, _ in part])
        except Exception as error:
            # Whatever it is, it is for those to hear who asked; the next ones get their own try.
            for _, asked in part:
                if not asked.done():
                    asked.set_exception(error)
            return
        for (_, asked), snapshot in zip(part, found, strict=True):
            if not asked.done():
                asked.set_result(snapshot)
