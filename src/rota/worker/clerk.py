"""Carries out operations on many jobs that whoever started them left to others, or died over."""

from __future__ import annotations

import asyncio
import logging
import random
from typing import TYPE_CHECKING, Final

from rota.errors import RotaError

if TYPE_CHECKING:
    from rota.client import Rota

logger = logging.getLogger("rota.worker")

LOOK_S: Final = 5.0


class Clerk:
    """Looks now and then. Any number of them may: an operation is held by one at a time."""

    def __init__(self, rota: Rota) -> None:
        self._rota = rota

    async def run(self) -> None:
        """For ever."""
        while True:
            await asyncio.sleep(LOOK_S * random.uniform(0.5, 1.5))
            try:
                await self._rota.operations.attend()
            except RotaError as error:
                logger.debug("operations were not seen to: %s", error)
