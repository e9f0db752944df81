"""Threads for plain functions, handlers and providers: one thread per attempt, and each call can be interrupted."""

from __future__ import annotations

import asyncio
import contextvars
import ctypes
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any


class HandlerStopped(BaseException):
    """Raised inside a handler's thread to stop it."""


class StoppableCall:
    """A call in a thread that can be interrupted from outside, at its next line of Python."""

    def __init__(self, context: contextvars.Context, call: Callable[[], Any]) -> None:
        self._context = context
        self._call = call
        self._lock = threading.Lock()
        self._thread: int | None = None
        self._is_interrupted = False
        self.has_begun = False

    def __call__(self) -> Any:
        """Runs the call. An interrupt after its end has no effect."""
        thread = threading.get_ident()
        with self._lock:
            if self._is_interrupted:
                raise HandlerStopped
            self._thread = thread
            self.has_begun = True
        try:
            return self._context.run(self._call)
        finally:
            with self._lock:
                self._thread = None
                if self._is_interrupted:
                    # An interrupt that came too late must not hit the next call in this thread.
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), None)

    def interrupt(self) -> None:
        """Raises HandlerStopped in the thread while the call runs, or when it begins."""
        with self._lock:
            self._is_interrupted = True
            if self._thread is not None:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(self._thread), ctypes.py_object(HandlerStopped)
                )


#: The result of a call, or the exception that it raised.
Ended = tuple[Any, BaseException | None]


def outcome_of(call: Callable[[], Any]) -> Ended:
    """Makes a call. Its exception, whatever it is, is for the attempt that needs the result: this thread goes on."""
    try:
        return call(), None
    except BaseException as error:
        return None, error


class _Call:
    """A call and the future that its caller waits for. A caller that is cancelled waits for another one."""

    __slots__ = ("call", "ended", "future", "is_of_reserved")

    def __init__(self, call: StoppableCall, future: asyncio.Future[Ended], *, is_of_reserved: bool) -> None:
        self.call = call
        self.future = future
        self.is_of_reserved = is_of_reserved
        self.ended: Ended | None = None


class ReservedThread:
    """The calls of a thread that makes no others, until it is given back."""

    __slots__ = ("calls",)

    def __init__(self) -> None:
        #: None ends the reservation.
        self.calls: SimpleQueue[_Call | None] = SimpleQueue()


class Threads:
    """Runs calls in threads, for one event loop. The loop handles all calls that have ended meanwhile at once.

    There are as many threads as there have ever been calls and reservations at once. They end with the process,
    whatever they do.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._calls: SimpleQueue[_Call | ReservedThread] = SimpleQueue()
        self._ended: deque[_Call | ReservedThread] = deque()
        self._is_notified = False
        self._count = 0
        self._under_way = 0

    async def run(self, call: StoppableCall, thread: ReservedThread | None = None) -> Any:
        """Returns what the call returns, or raises what it raises. It runs in the reserved thread, if one is given.

        If this is cancelled, the call is interrupted, and has ended when CancelledError is raised. Otherwise a handler
        would run on without a slot, and beside the next holder of its lock.
        """
        entry = _Call(call, self._loop.create_future(), is_of_reserved=thread is not None)
        if thread is None:
            self._put(entry)
        else:
            thread.calls.put(entry)
        try:
            value, error = await entry.future
        except asyncio.CancelledError:
            call.interrupt()
            while entry.ended is None and call.has_begun:
                entry.future = self._loop.create_future()
                with suppress(asyncio.CancelledError):
                    await entry.future
            raise
        if error is not None:
            raise error
        return value

    def reserve(self) -> ReservedThread:
        """Reserves a thread for calls that must be made in the same one."""
        reserved = ReservedThread()
        self._put(reserved)
        return reserved

    def give_back(self, reserved: ReservedThread) -> None:
        """Ends a reservation, after the calls that are under way."""
        reserved.calls.put(None)

    def _put(self, work: _Call | ReservedThread) -> None:
        self._under_way += 1
        if self._under_way > self._count:
            self._count += 1
            threading.Thread(target=self._work, name=f"rota-handler-{self._count}", daemon=True).start()
        self._calls.put(work)

    def _work(self) -> None:
        while True:
            work = self._calls.get()
            if isinstance(work, _Call):
                work.ended = outcome_of(work.call)
            else:
                while (call := work.calls.get()) is not None:
                    call.ended = outcome_of(call.call)
                    self._report(call)
                    del call  # keep no reference to this call while waiting for the next
            self._report(work)
            del work

    def _report(self, ended: _Call | ReservedThread) -> None:
        self._ended.append(ended)
        # One notification is enough: the loop clears the flag before it takes all calls that have ended.
        if not self._is_notified:
            self._is_notified = True
            self._loop.call_soon_threadsafe(self._on_ended)

    def _on_ended(self) -> None:
        self._is_notified = False
        while self._ended:
            work = self._ended.popleft()
            if isinstance(work, ReservedThread):
                self._under_way -= 1
                continue
            if not work.is_of_reserved:
                self._under_way -= 1
            if not work.future.done() and work.ended is not None:
                work.future.set_result(work.ended)
