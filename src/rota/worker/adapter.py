"""Adapts the number of slots to what the machine can bear (`--concurrency auto`)."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from typing import TYPE_CHECKING, Final

from rota.core.concurrency import Load, next_slots
from rota.worker.processes import cpu_seconds

if TYPE_CHECKING:
    from rota.worker.worker import Worker

logger = logging.getLogger("rota.worker")

MEASURE_S: Final = 1.0


class Adapter:
    """Measures once a second while there is work, and asks `core.concurrency` what to do."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._cpu: dict[int, float] = {}
        self._at = time.monotonic()

    async def run(self) -> None:
        """For ever."""
        while True:
            await asyncio.sleep(MEASURE_S)
            worker = self._worker
            load = Load(
                slots=worker.slots,
                busy=worker.flights.busy,
                has_backlog=worker.desk.has_backlog,
                cpu=self._cpu_share(),
                lag_ms=max((runner.lag_ms for runner in worker.pool.runners), default=0),
            )
            slots = next_slots(load)
            if slots != worker.slots:
                logger.info(
                    "slots %d -> %d (CPU %.0f %%, loop lag %d ms)", worker.slots, slots, load.cpu * 100, load.lag_ms
                )
                worker.slots = slots
                worker.desk.nudge()

    def _cpu_share(self) -> float:
        pids = [os.getpid(), *(runner.pid for runner in self._worker.pool.runners if runner.pid)]
        now, used = time.monotonic(), {pid: cpu_seconds(pid) for pid in pids}
        spent = sum(seconds - self._cpu.get(pid, seconds) for pid, seconds in used.items())
        elapsed, self._cpu, self._at = now - self._at, used, now
        return min(1.0, spent / max(elapsed, 0.001) / (os.cpu_count() or 1))
