"""Lets code that is not async use the client: one background thread with an event loop of its own.

A coroutine is handed to that loop and waited for, so the twins work from any thread, from a script, and from a
notebook whose own loop is already running.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import weakref
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from rota.errors import ConfigurationError

T = TypeVar("T")


class Portal:
    """The thread, started when first needed. A forked child starts one of its own."""

    def __init__(self, leave: Callable[[], Coroutine[Any, Any, None]]) -> None:
        #: What is to be done on the loop before it ends: closing its connections.
        self._leave = leave
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def wait_for(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Runs the coroutine on the portal's loop, and returns what it returns."""
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise _waits_for_itself()
        with self._lock:  # so that nothing is handed to a loop that has just been told to end
            future = asyncio.run_coroutine_threadsafe(coroutine, self._running())
        try:
            return future.result()
        except BaseException:
            # Ctrl-C in the waiting thread: what was asked for is not wanted any more.
            future.cancel()
            raise

    def close(self) -> None:
        """Ends what is under way there, and the thread. The next call starts another."""
        if threading.current_thread() is self._thread:
            raise _waits_for_itself()
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
            if loop is not None and thread is not None:
                loop.call_soon_threadsafe(loop.stop)
                thread.join(timeout=5)

    def forget(self) -> None:
        """In a forked child: the thread has stayed with the parent, and with it whoever holds the lock."""
        self._lock = threading.Lock()
        self._loop = self._thread = None

    def _running(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(
                target=_run, args=(self._loop, self._leave), name="rota-portal", daemon=True
            )
            self._thread.start()
            _started.add(self)
        return self._loop


def _waits_for_itself() -> ConfigurationError:
    return ConfigurationError("a _sync call would wait for itself here: await the coroutine instead")


def _run(loop: asyncio.AbstractEventLoop, leave: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        loop.run_until_complete(leave())
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


#: Ended in good order with the interpreter: a script need not close anything itself.
_started: weakref.WeakSet[Portal] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for portal in list(_started):
        portal.close()


def _forget_all() -> None:
    for portal in list(_started):
        portal.forget()


if hasattr(os, "register_at_fork"):  # there is no fork on Windows
    os.register_at_fork(after_in_child=_forget_all)
