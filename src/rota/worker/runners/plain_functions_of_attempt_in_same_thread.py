"""Calls the plain functions of one attempt, or of the process: providers, their clean-up, and the handler."""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from functools import partial
from typing import Any

from rota.worker.runners.interruptible_threads import ReservedThread, StoppableCall, Threads
from rota.worker.runners.main_thread_loop import MainLoop


class SyncCalls:
    """Calls plain functions without a running event loop, all in one thread.

    Many libraries have objects that only the thread which made them may use: a connection of sqlite3, for one.
    """

    def __init__(self, threads: Threads, main_loop: MainLoop | None) -> None:
        self._threads = threads
        #: The thread is the main one of a process that runs one job at a time, if this is given.
        self._main_loop = main_loop
        self._reserved: ReservedThread | None = None

    async def run(self, context: contextvars.Context, function: Callable[[], Any]) -> Any:
        """Returns or raises what the function does. If this is cancelled, the function is interrupted."""
        if self._main_loop is not None:
            return await self._main_loop.call(partial(context.run, function))
        return await self.run_stoppable(StoppableCall(context, function))

    async def run_stoppable(self, call: StoppableCall) -> Any:
        """Makes a call that can also be interrupted from outside."""
        if self._reserved is None:
            self._reserved = self._threads.reserve()
        return await self._threads.run(call, self._reserved)

    def close(self) -> None:
        """Gives the thread back. Closing twice does no harm."""
        if self._reserved is not None:
            self._threads.give_back(self._reserved)
            self._reserved = None
