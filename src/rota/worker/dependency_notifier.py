"""Delivers the outcomes of ended jobs from the outboxes of their queues to their dependents."""

from __future__ import annotations

import asyncio
import logging

from rota.errors import StoreError
from rota.store.create_dependents_and_deliver_outcomes import WORKFLOWS
from rota.store.job_store import JobStore
from rota.worker.claim_queues import ClaimQueues
from rota.worker.workflow_driver import WorkflowDriver

logger = logging.getLogger("rota.worker")


class DependencyNotifier:
    """Delivers outcomes when a claim reports a due outbox.

    Every worker has a notifier: an outcome that is delivered twice counts once.
    """

    def __init__(self, store: JobStore, queues: ClaimQueues, workflow_driver: WorkflowDriver) -> None:
        self._dependencies = store.dependencies
        self._claim_queues = queues
        self._workflow_driver = workflow_driver
        #: Queues with a due outbox.
        self._queues: dict[str, None] = {}
        self._wake_up = asyncio.Event()
        #: Set while there is nothing to deliver.
        self.is_idle = asyncio.Event()
        self.is_idle.set()

    def wake(self, queue: str) -> None:
        """Makes the notifier deliver the outbox of a queue now."""
        self._queues[queue] = None
        self.is_idle.clear()
        self._wake_up.set()

    def _on_delivered(self, queue: str) -> None:
        if queue == WORKFLOWS:
            self._workflow_driver.wake()
        else:
            self._claim_queues.wake(queue)

    async def run(self) -> None:
        """Runs until cancelled. What could not be delivered stays in the outbox, and a later claim reports it again."""
        while True:
            await self._wake_up.wait()
            self._wake_up.clear()
            queues, self._queues = list(self._queues), {}
            for queue in queues:
                try:
                    await self._dependencies.deliver_all(queue, on_delivered=self._on_delivered)
                except StoreError as error:
                    logger.debug("outcomes of queue %s were not delivered: %s", queue, error)
            if not self._queues:
                self.is_idle.set()
