"""Runs the same work once for all callers that ask for it at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class SingleFlight:
    """Shares one running task per name. Cancelling one caller does not stop the work for the others."""

    def __init__(self) -> None:
        self._running: dict[str, asyncio.Task[None]] = {}

    async def run(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Starts `work`, or joins the task of that name that is running already."""
        task = self._running.get(name)
        if task is None:
            task = self._running[name] = asyncio.create_task(work())
            task.add_done_callback(lambda _: self._running.pop(name))
        await asyncio.shield(task)
