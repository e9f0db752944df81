"""Wakes a scaler by the event streams of its queues, so that the first job of an empty pool is seen at once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from rota.client.events import follow_batches
from rota.client.session import Session
from rota.errors import StoreError

logger = logging.getLogger("rota.autoscaler")

#: The pause after an error of the store.
AGAIN_S: Final = 0.5


class FirstJobWatch:
    """Reads the events of the served queues while the pool has no worker. Otherwise it reads nothing."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._is_empty = asyncio.Event()
        self._has_workers = asyncio.Event()

    def set_empty(self, is_empty: bool) -> None:
        """Takes over whether the pool has no worker, and none that boots."""
        if is_empty:
            self._is_empty.set()
            self._has_workers.clear()
        else:
            self._has_workers.set()
            self._is_empty.clear()

    async def run(self, session: Session, names: Callable[[], Awaitable[Sequence[str]]]) -> None:
        """Runs until cancelled."""
        while True:
            await self._is_empty.wait()
            reading = asyncio.create_task(wake_on_events(session, names, self._wake))
            stop = asyncio.create_task(self._has_workers.wait())
            try:
                await asyncio.wait((reading, stop), return_when=asyncio.FIRST_COMPLETED)
            finally:
                reading.cancel()
                stop.cancel()
            await asyncio.gather(reading, return_exceptions=True)


async def wake_on_events(
    session: Session, names: Callable[[], Awaitable[Sequence[str]]], wake: Callable[[], None], pace_s: float = 0.0
) -> None:
    """Calls `wake` for the events of these queues, at most once per `pace_s`. Runs until cancelled."""
    while True:
        try:
            # The first batch only says that reading has begun: another look finds what came before it.
            async for _ in follow_batches(session.redis, session.keys, names, pace_s=pace_s):
                wake()
        except StoreError as error:
            logger.debug("the event stream cannot be read: %s", error)
            await asyncio.sleep(AGAIN_S)
