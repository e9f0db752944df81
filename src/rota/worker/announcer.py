"""Says that this worker lives, and what it is doing."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

import msgspec

from rota.errors import StoreError
from rota.store.store import Store
from rota.worker.processes import cpu_seconds, rss_bytes

if TYPE_CHECKING:
    from rota.worker.worker import Worker

logger = logging.getLogger("rota.worker")

VERSION: Final = version("rota")

#: Twice within the ten seconds after which a silent worker is shown as DEAD.
ANNOUNCE_S: Final = 5.0
_SHOWN: Final = 100


class Announcer:
    """Keeps the worker's entry in the registry true."""

    def __init__(self, store: Store, worker: Worker) -> None:
        self._store = store
        self._worker = worker
        self._started_at = time.time()

    async def run(self) -> None:
        """For ever."""
        while True:
            await asyncio.sleep(ANNOUNCE_S)
            try:
                await self.announce()
            except StoreError as error:
                logger.debug("not announced: %s", error)

    async def announce(self) -> None:
        """Once. The answer may be that somebody wants this worker to leave."""
        if await self._store.announce(msgspec.json.encode(self.info()).decode()):
            self._worker.drain()

    def info(self) -> dict[str, Any]:
        """What people want to know of a worker."""
        worker = self._worker
        runners = [runner for runner in worker.pool.runners if runner.pid]
        pids = [os.getpid(), *(runner.pid for runner in runners)]
        flights = list(worker.flights.airborne())
        return {
            "state": "waiting" if worker.state == "active" and not worker.flights.busy else worker.state,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "queues": list(worker.queues),
            "app": worker.config.app,
            "schedules": [schedule.full_name for schedule in worker.schedules],
            "slots": worker.slots,
            "busy": worker.flights.busy,
            "finished": worker.tower.finished,
            "running": [
                {"job": f.job_id, "run": f.job.run, "task": f.task, "attempt": f.job.counts.attempt}
                for f in flights[:_SHOWN]
            ],
            "runners": [{"pid": r.pid, "kind": r.kind, "busy": len(r.flights), "done": r.done} for r in runners],
            "cpu_seconds": round(sum(map(cpu_seconds, pids)), 2),
            "rss_bytes": sum(map(rss_bytes, pids)),
            "started_at": round(self._started_at * 1000),
            "version": VERSION,
        }
