"""Sees to workflows that wait for a decision: a failure to undo, a list to go through, a place to take."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from rota.errors import StoreError
from rota.store.flows import Flows
from rota.store.store import Store
from rota.store.ties import Ties

logger = logging.getLogger("rota.worker")

#: News of a step brings a decision at once, and the announcer hears of workflows whose last conductor died.
LOOK_AGAIN_S: Final = 60.0


class Conductor:
    """Decides and acts. Any number of them may: a workflow is taken by one at a time, and no act counts twice."""

    def __init__(self, store: Store, *, wake: Callable[[], None]) -> None:
        self._flows = Flows(store, Ties(store))
        self._wake = wake
        self._something = asyncio.Event()
        #: Set while no workflow is known to wait for a decision.
        self.is_idle = asyncio.Event()

    def nudge(self) -> None:
        """A workflow has had news."""
        self._something.set()
        self.is_idle.clear()

    async def run(self) -> None:
        """For ever."""
        is_first = True
        while True:
            try:
                if is_first:
                    await self._flows.resume_held()
                    is_first = False
                if await self._flows.drive_due():
                    self._wake()
            except StoreError as error:
                logger.debug("workflows were not seen to: %s", error)
            if not self._something.is_set():
                self.is_idle.set()
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_AGAIN_S * random.uniform(0.8, 1.2)):
                    await self._something.wait()
            self._something.clear()
