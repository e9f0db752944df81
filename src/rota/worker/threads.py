"""Threads for handlers that are plain functions: as many as run at once, and each can be interrupted."""

from __future__ import annotations

import asyncio
import contextvars
import ctypes
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any


class HandlerStopped(BaseException):
    """Raised inside a handler's thread that is to stop."""


class StoppableCall:
    """A call in a thread that can be interrupted from outside, at its next line of Python."""

    def __init__(self, context: contextvars.Context, call: Callable[[], Any]) -> None:
        self._context = context
        self._call = call
        self._lock = threading.Lock()
        self._thread: int | None = None
        self._is_interrupted = False

    def __call__(self) -> Any:
        """Runs the call; whoever stops it afterwards stops nothing else."""
        thread = threading.get_ident()
        with self._lock:
            if self._is_interrupted:
                raise HandlerStopped
            self._thread = thread
        try:
            return self._context.run(self._call)
        finally:
            with self._lock:
                self._thread = None
                if self._is_interrupted:
                    # An interruption that came too late must not hit what this thread does next.
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), None)

    def interrupt(self) -> None:
        """Raises HandlerStopped in the thread, if it is still at it, or when it comes to it."""
        with self._lock:
            self._is_interrupted = True
            if self._thread is not None:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(self._thread), ctypes.py_object(HandlerStopped)
                )


#: What became of a call: what it returned, or what it raised.
Ended = tuple[Any, BaseException | None]


class Threads:
    """Runs calls in threads, for one event loop, which hears of those that ended meanwhile all at once.

    There is a thread for every call that is under way: as many as there have ever been at once. They end with the
    process, whatever they are doing.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._calls: SimpleQueue[tuple[Callable[[], Any], asyncio.Future[Ended]]] = SimpleQueue()
        self._ended: deque[tuple[asyncio.Future[Ended], Ended]] = deque()
        self._is_told = False
        self._count = 0
        self._under_way = 0

    async def run(self, call: Callable[[], Any]) -> Any:
        """What the call returns, or raises. Whoever stops waiting leaves it running."""
        self._under_way += 1
        if self._under_way > self._count:
            self._count += 1
            threading.Thread(target=self._work, name=f"rota-handler-{self._count}", daemon=True).start()
        future: asyncio.Future[Ended] = self._loop.create_future()
        self._calls.put((call, future))
        value, error = await future
        if error is not None:
            raise error
        return value

    def _work(self) -> None:
        while True:
            call, future = self._calls.get()
            try:
                ended: Ended = call(), None
            except BaseException as error:  # it is the caller's, whatever it is; this thread goes on
                ended = None, error
            self._ended.append((future, ended))
            del call, future, ended  # nothing of this call is to be kept while waiting for the next
            # Told is told: the loop takes all that is there, and lowers the flag before it looks.
            if not self._is_told:
                self._is_told = True
                self._loop.call_soon_threadsafe(self._hear)

    def _hear(self) -> None:
        self._is_told = False
        while self._ended:
            future, ended = self._ended.popleft()
            self._under_way -= 1
            if not future.done():
                future.set_result(ended)
