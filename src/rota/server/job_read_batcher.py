"""Reads single jobs, in batches: concurrent reads of a queue share one call."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from rota.client.rota import Rota
from rota.client.session import checked_session
from rota.core.ids import JobRef
from rota.errors import JobNotFound
from rota.store.reads import Snapshot

#: Jobs per call, which keeps a call below 5 ms.
BATCH: Final = 100


class JobReadBatcher:
    """Sends one call per queue at a time; reads that arrive meanwhile are sent with the next."""

    def __init__(self, rota: Rota) -> None:
        self._rota = rota
        self._waiting: dict[str, list[tuple[JobRef, asyncio.Future[Snapshot | None]]]] = {}
        self._sending: dict[str, asyncio.Task[None]] = {}

    async def find(self, ref: JobRef) -> Snapshot | None:
        """Returns the current snapshot of a job; None if it does not exist."""
        ref = await (await checked_session(self._rota)).shards.locate(ref)
        loop = asyncio.get_running_loop()
        result: asyncio.Future[Snapshot | None] = loop.create_future()
        self._waiting.setdefault(ref.queue, []).append((ref, result))
        if ref.queue not in self._sending:
            self._sending[ref.queue] = loop.create_task(self._send(ref.queue))
        return await result

    async def get(self, ref: JobRef) -> Snapshot:
        """Returns the current snapshot of a job. Raises JobNotFound."""
        found = await self.find(ref)
        if found is None:
            raise JobNotFound(str(ref))
        return found

    async def many(self, refs: Sequence[JobRef]) -> list[Snapshot | None]:
        """Returns the snapshots of several jobs, without arguments and results; None for each that does not exist."""
        session = await checked_session(self._rota)
        located = [await session.shards.locate(ref) for ref in refs]
        found: dict[JobRef, Snapshot | None] = {}
        for queue in dict.fromkeys(ref.queue for ref in located):
            of_queue = [ref for ref in located if ref.queue == queue]
            for start in range(0, len(of_queue), BATCH):
                part = of_queue[start : start + BATCH]
                snapshots = await session.views.read_runs(queue, part, detail="history", max_arguments=0)
                found.update(zip(part, snapshots, strict=True))
        return [found[ref] for ref in located]

    async def _send(self, queue: str) -> None:
        try:
            while waiting := self._waiting.pop(queue, None):
                for start in range(0, len(waiting), BATCH):
                    await self._read(queue, waiting[start : start + BATCH])
        finally:
            del self._sending[queue]

    async def _read(self, queue: str, part: list[tuple[JobRef, asyncio.Future[Snapshot | None]]]) -> None:
        try:
            found = await (await checked_session(self._rota)).views.read_runs(queue, [ref for ref, _ in part])
        except Exception as error:
            # The error goes to the callers of this batch; the next batch is tried on its own.
            for _, result in part:
                if not result.done():
                    result.set_exception(error)
            return
        for (_, result), snapshot in zip(part, found, strict=True):
            if not result.done():
                result.set_result(snapshot)
