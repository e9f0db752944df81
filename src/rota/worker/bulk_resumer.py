"""Resumes bulk operations whose driver exited or crashed."""

from __future__ import annotations

import asyncio
import logging
import random
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from rota.client.bulk_operations import OperationDriver
from rota.client.session import sessions_of
from rota.errors import RotaError

if TYPE_CHECKING:
    from rota.client.rota import Rota

logger = logging.getLogger("rota.worker")

#: `Registration` wakes the driver for operations without one; this interval is for deleting those that have expired.
LOOK_S: Final = 60.0


class BulkResumer:
    """Drives bulk operations. Every worker has one: an operation is taken by one driver at a time."""

    def __init__(self, rota: Rota) -> None:
        self._driver = OperationDriver(sessions_of(rota), rota.tasks)
        self._wake_up = asyncio.Event()

    def wake(self) -> None:
        """Makes the driver look for operations now."""
        self._wake_up.set()

    async def run(self) -> None:
        """Runs until cancelled."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S * random.uniform(0.5, 1.5)):
                    await self._wake_up.wait()
            self._wake_up.clear()
            try:
                while await self._driver.run_waiting():
                    pass  # one is taken at a time, so that other workers take the others meanwhile
            except RotaError as error:
                logger.debug("bulk operations were not driven: %s", error)
