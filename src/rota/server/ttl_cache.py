"""A cache whose values live for a short time; concurrent callers share one load."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class TtlCache(Generic[T]):
    """A value that is read on demand and cached for `fresh_s` seconds."""

    def __init__(self, read: Callable[[], Awaitable[T]], fresh_s: float) -> None:
        self._read = read
        self._fresh_s = fresh_s
        self._reading: asyncio.Task[T] | None = None
        self._until = 0.0

    async def get(self) -> T:
        """Returns the value. Concurrent callers share one read, and its error."""
        now = asyncio.get_running_loop().time()
        task = self._reading
        if task is None or (task.done() and (now >= self._until or task.cancelled() or task.exception() is not None)):
            task = self._reading = asyncio.create_task(self._load(), name="rota-cached")
        return await asyncio.shield(task)

    def forget(self) -> None:
        """Drops the value: the next caller reads it again."""
        self._reading = None

    async def _load(self) -> T:
        value = await self._read()
        self._until = asyncio.get_running_loop().time() + self._fresh_s
        return value
