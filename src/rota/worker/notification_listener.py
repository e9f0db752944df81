"""Receives what the store pushes to a worker: jobs, wake-ups, requests to stop a handler or to drain.

Pushes are hints: a lost one is made up for by polling.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Final

from rota.errors import StoreError
from rota.store.claim_replies import read_push
from rota.store.job_store import JobStore
from rota.worker.claim_queues import ClaimQueues
from rota.worker.claim_report_loop import ClaimReportLoop
from rota.worker.dispatcher import Dispatcher
from rota.worker.lease_heartbeat import Heartbeat
from rota.worker.registration_loop import Registration
from rota.worker.schedule_firing_loop import Scheduler
from rota.worker.shutdown_flags import ShutdownRequests

logger = logging.getLogger("rota.worker")

REFUSED_PAUSE_S: Final = 1.0


class NotificationListener:
    """Subscribes to the worker's channel and passes on its messages."""

    def __init__(
        self,
        store: JobStore,
        claim_loop: ClaimReportLoop,
        queues: ClaimQueues,
        dispatcher: Dispatcher,
        heartbeat: Heartbeat,
        scheduler: Scheduler,
        registration: Registration,
        stop: ShutdownRequests,
    ) -> None:
        self._store = store
        self._claim_loop = claim_loop
        self._queues = queues
        self._dispatcher = dispatcher
        self._heartbeat = heartbeat
        self._scheduler = scheduler
        self._registration = registration
        self._stop = stop
        self._is_reconnected = False

    async def run(self) -> None:
        """Runs until cancelled. A server that refuses the subscription is asked again: it may accept it later."""
        while True:
            try:
                await self._listen()
            except StoreError as error:
                self._queues.is_subscribed = False
                logger.warning("no wake-ups: %s", error)
                await asyncio.sleep(REFUSED_PAUSE_S)

    async def _listen(self) -> None:
        async for _ in self._store.redis.listen(self._store.keys.inbox(self._store.participant), self._on_message):
            # The subscription is new, and earlier messages were missed. Claims find jobs; the reply to a heartbeat
            # names the handlers that must stop, and the reply to a registration whether this worker must drain.
            self._queues.is_subscribed = True
            self._queues.wake()
            self._scheduler.wake()
            with contextlib.suppress(StoreError):
                if self._is_reconnected:
                    await self._registration.register_as("reactivating")
                self._is_reconnected = True
                await self._heartbeat.beat()
                await self._registration.register()

    def _on_message(self, message: bytes) -> None:
        if message.startswith(b"job "):
            self._claim_loop.on_pushed_job(*read_push(message))
            return
        match message.decode().split(" "):
            case ["wake", queue]:
                self._queues.wake(queue)
            case ["schedules", _]:
                self._scheduler.wake()
            case ["stop", queue, run, claim]:
                self._dispatcher.stop_claim(queue, run, claim, "cancelled")
            case ["drain"]:
                self._stop.drain()
            case ["undrain"]:
                self._stop.undrain()
            case _:
                logger.debug("unknown message from the store: %r", message)
