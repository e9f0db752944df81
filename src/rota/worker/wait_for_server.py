"""Waits for the server while a worker starts: an outage then is no reason to exit, as later it is none."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final, TypeVar

from rota.errors import StoreUnavailable
from rota.worker.shutdown_flags import ShutdownRequests

logger = logging.getLogger("rota.worker")
T = TypeVar("T")

RETRY_S: Final = 0.5


class StopRequested(Exception):
    """The worker was asked to stop before the server answered."""


async def until_server_answers(
    step: Callable[[], Coroutine[Any, Any, T]], stop: ShutdownRequests, *, is_burst: bool
) -> T:
    """Runs a step of the start, again as long as the server does not answer. Raises StopRequested.

    In burst mode it raises StoreUnavailable instead: a burst is over when there is nothing to do.
    """
    if is_burst:
        return await step()
    is_waiting = False
    stopped = asyncio.create_task(stop.stop_requested.wait())
    try:
        while True:
            trying = asyncio.create_task(step())
            await asyncio.wait((trying, stopped), return_when=asyncio.FIRST_COMPLETED)
            if not trying.done():
                trying.cancel()
                with suppress(asyncio.CancelledError, StoreUnavailable):
                    await trying
                raise StopRequested
            try:
                result = trying.result()
            except StoreUnavailable as error:
                if not is_waiting:
                    logger.warning("the worker waits for the server: %s", error)
                is_waiting = True
                await asyncio.wait((stopped,), timeout=RETRY_S)
            else:
                if is_waiting:
                    logger.info("the server answers")
                return result
    finally:
        stopped.cancel()
