"""What the store pushes to a worker: a job, or that there is one, or that a handler must stop.

Only hints: everything is looked up too.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Final

from rota.errors import StoreError
from rota.store.reports import read_push
from rota.store.store import Store
from rota.worker.announcer import Announcer
from rota.worker.desk import Desk
from rota.worker.heartbeat import Heartbeat
from rota.worker.ticker import Ticker
from rota.worker.tower import Tower

logger = logging.getLogger("rota.worker")

REFUSED_PAUSE_S: Final = 1.0


class Inbox:
    """Listens for as long as the worker lives."""

    def __init__(
        self,
        store: Store,
        desk: Desk,
        tower: Tower,
        heartbeat: Heartbeat,
        ticker: Ticker,
        announcer: Announcer,
        *,
        drain: Callable[[], None],
    ) -> None:
        self._store = store
        self._desk = desk
        self._tower = tower
        self._heartbeat = heartbeat
        self._ticker = ticker
        self._announcer = announcer
        self._drain = drain

    async def run(self) -> None:
        """For ever. A server that lets us in no more is no reason to give up: it may again."""
        while True:
            try:
                await self._listen()
            except StoreError as error:
                logger.warning("no wake-ups: %s", error)
                await asyncio.sleep(REFUSED_PAUSE_S)

    async def _listen(self) -> None:
        async for _ in self._store.gateway.listen(self._store.keys.inbox(self._store.participant), self._hear):
            # The subscription is new: whatever was said before was not heard. Whether there is work is looked up by
            # the desk; a heartbeat brings the news of handlers that must stop, and a sign of life whether this worker
            # is to leave.
            self._desk.wake()
            self._ticker.look()
            with contextlib.suppress(StoreError):
                await self._heartbeat.beat()
                await self._announcer.announce()

    def _hear(self, message: bytes) -> None:
        if message.startswith(b"job "):
            self._desk.receive(*read_push(message))
            return
        match message.decode().split(" "):
            case ["wake", queue]:
                self._desk.wake(queue)
            case ["ticks", _]:
                self._ticker.look()
            case ["stop", queue, run, claim]:
                self._tower.stop_claim(queue, run, claim, "cancelled")
            case ["drain"]:
                self._drain()
            case _:
                logger.debug("a push that this version does not know: %r", message)
