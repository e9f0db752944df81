"""Adapts the number of slots to the load of the machine (`--concurrency auto`)."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from typing import Final

from rota.core.slot_autosizing import WorkerLoad, next_slots
from rota.worker.claim_queues import ClaimQueues
from rota.worker.claim_report_loop import ClaimReportLoop
from rota.worker.runners.measure_and_kill_process_trees import cpu_seconds
from rota.worker.runners.pool import Pool
from rota.worker.running_jobs import RunningJobs

logger = logging.getLogger("rota.worker")

MEASURE_S: Final = 1.0


class Autosizer:
    """Measures the load once a second and sets the slots that `core.slot_autosizing` computes from it."""

    def __init__(self, running: RunningJobs, queues: ClaimQueues, claim_loop: ClaimReportLoop, pool: Pool) -> None:
        self._running = running
        self._queues = queues
        self._claim_loop = claim_loop
        self._pool = pool
        self._cpu: dict[int, float] = {}
        self._at = time.monotonic()

    async def run(self) -> None:
        """Runs until cancelled."""
        while True:
            await asyncio.sleep(MEASURE_S)
            load = WorkerLoad(
                slots=self._running.slots,
                busy=self._running.busy,
                has_backlog=self._queues.has_backlog,
                cpu=self._cpu_share(),
                lag_ms=max((runner.lag_ms for runner in self._pool.runners), default=0),
            )
            slots = next_slots(load)
            if slots != load.slots:
                cpu = load.cpu * 100
                logger.info("slots %d -> %d (CPU %.0f %%, loop lag %d ms)", load.slots, slots, cpu, load.lag_ms)
                self._running.slots = slots
                self._claim_loop.wake()

    def _cpu_share(self) -> float:
        pids = [os.getpid(), *(runner.pid for runner in self._pool.runners if runner.pid)]
        now, used = time.monotonic(), {pid: cpu_seconds(pid) for pid in pids}
        spent = sum(seconds - self._cpu.get(pid, seconds) for pid, seconds in used.items())
        elapsed, self._cpu, self._at = now - self._at, used, now
        return min(1.0, spent / max(elapsed, 0.001) / (os.cpu_count() or 1))
