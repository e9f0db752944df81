"""What many readers ask for at the same time is asked of the store once: a dashboard more costs it nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Shared(Generic[T]):
    """A value that is looked up when somebody asks for it, and is good for a while then."""

    def __init__(self, read: Callable[[], Awaitable[T]], fresh_s: float) -> None:
        self._read = read
        self._fresh_s = fresh_s
        self._reading: asyncio.Task[T] | None = None
        self._until = 0.0

    async def get(self) -> T:
        """The value. Whoever asks while it is looked up gets the same answer, be it an error."""
        now = asyncio.get_running_loop().time()
        task = self._reading
        if task is None or (task.done() and (now >= self._until or task.cancelled() or task.exception() is not None)):
            task = self._reading = asyncio.create_task(self._look(), name="rota-shared")
        return await asyncio.shield(task)

    async def _look(self) -> T:
        value = await self._read()
        self._until = asyncio.get_running_loop().time() + self._fresh_s
        return value
