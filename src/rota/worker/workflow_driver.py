"""Drives workflows that need a decision: what follows a failure, a cancel or a list known at run time."""

from __future__ import annotations

import asyncio
import logging
import random
from contextlib import suppress
from typing import Final

from rota.errors import StoreError
from rota.store.carry_out_workflow_decisions import WorkflowStore
from rota.store.job_store import JobStore
from rota.worker.claim_queues import ClaimQueues

logger = logging.getLogger("rota.worker")

#: The outcome of a step wakes the driver at once, and `Registration` wakes it for workflows whose driver died.
LOOK_AGAIN_S: Final = 60.0


class WorkflowDriver:
    """Decides what follows in workflows, and does it.

    Every worker has a driver: a workflow is taken by one at a time, and no action counts twice.
    """

    def __init__(self, store: JobStore, queues: ClaimQueues) -> None:
        self._workflows = WorkflowStore(store)
        self._queues = queues
        self._wake_up = asyncio.Event()
        #: Set while no workflow is known to wait for a decision.
        self.is_idle = asyncio.Event()

    def wake(self) -> None:
        """Makes the driver look for workflows now."""
        self._wake_up.set()
        self.is_idle.clear()

    async def run(self) -> None:
        """Runs until cancelled."""
        is_first = True
        while True:
            try:
                if is_first:
                    await self._workflows.resume_failed()
                    is_first = False
                if await self._workflows.drive_due():
                    self._queues.wake()
            except StoreError as error:
                logger.debug("workflows were not driven: %s", error)
            if not self._wake_up.is_set():
                self.is_idle.set()
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_AGAIN_S * random.uniform(0.8, 1.2)):
                    await self._wake_up.wait()
            self._wake_up.clear()
