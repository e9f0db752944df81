"""Carries out operations on many jobs that whoever started them left to others, or died over."""

from __future__ import annotations

import asyncio
import logging
import random
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from rota.errors import RotaError

if TYPE_CHECKING:
    from rota.client import Rota

logger = logging.getLogger("rota.worker")

#: The announcer hears of operations that nobody carries on; this is for forgetting those that are no longer kept.
LOOK_S: Final = 60.0


class Clerk:
    """Looks when there is something, and now and then. Any number of them may: one at a time holds an operation."""

    def __init__(self, rota: Rota) -> None:
        self._rota = rota
        self._something = asyncio.Event()

    def nudge(self) -> None:
        """An operation waits for somebody."""
        self._something.set()

    async def run(self) -> None:
        """For ever."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S * random.uniform(0.5, 1.5)):
                    await self._something.wait()
            self._something.clear()
            try:
                await self._rota.operations.attend()
            except RotaError as error:
                logger.debug("operations were not seen to: %s", error)
