"""The event loop in a background thread that runs the `_sync` methods.

A `_sync` method runs a coroutine on that loop and waits for it, so it works from any thread, from a script, and from a
notebook whose own loop is already running.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import threading
import weakref
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from rota.errors import ConfigurationError

logger = logging.getLogger("rota")

T = TypeVar("T")


class BackgroundLoop:
    """A thread with an event loop, started on first use. A forked child starts one of its own."""

    def __init__(self, cleanup: Callable[[], Coroutine[Any, Any, None]]) -> None:
        #: Runs on the loop before it ends: closes its connections.
        self._cleanup = cleanup
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Runs the coroutine on the loop and returns its result."""
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise _would_deadlock()
        _warn_if_blocking(getattr(coroutine, "__name__", "a method"))
        with self._lock:  # so that nothing is handed to a loop that is being closed
            future = asyncio.run_coroutine_threadsafe(coroutine, self._running())
        try:
            return future.result()
        except BaseException:
            # Ctrl-C in the waiting thread: its result is no longer needed.
            future.cancel()
            raise

    def close(self) -> None:
        """Cancels the running coroutines and ends the thread. The next use starts another."""
        if threading.current_thread() is self._thread:
            raise _would_deadlock()
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
            if loop is not None and thread is not None:
                loop.call_soon_threadsafe(loop.stop)
                thread.join(timeout=5)

    def forget(self) -> None:
        """In a forked child: the thread, and a holder of the lock, exist only in the parent."""
        self._lock = threading.Lock()
        self._loop = self._thread = None

    def _running(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(
                target=_run, args=(self._loop, self._cleanup), name="rota-sync", daemon=True
            )
            self._thread.start()
            _started.add(self)
        return self._loop


_has_warned = False


def _warn_if_blocking(method: str) -> None:
    """Warns, once in a process, that a `_sync` method blocks the event loop of this thread."""
    global _has_warned
    if not _has_warned and asyncio._get_running_loop() is not None:
        _has_warned = True
        logger.warning(
            "%s_sync() was called in a running event loop, which does nothing else until the server has answered: "
            "in async code and in notebooks, write: await ….%s(…)",
            method,
            method,
        )


def _would_deadlock() -> ConfigurationError:
    return ConfigurationError(
        "a _sync method cannot be called from the loop that runs the _sync methods: await the async method instead"
    )


def _run(loop: asyncio.AbstractEventLoop, cleanup: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        _end_tasks(loop)
        loop.run_until_complete(cleanup())
        _end_tasks(loop)  # those that were started meanwhile
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


def _end_tasks(loop: asyncio.AbstractEventLoop) -> None:
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))


#: Closed at interpreter exit: a script need not close anything itself.
_started: weakref.WeakSet[BackgroundLoop] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for background in list(_started):
        background.close()


def _forget_all() -> None:
    for background in list(_started):
        background.forget()


if hasattr(os, "register_at_fork"):  # there is no fork on Windows
    os.register_at_fork(after_in_child=_forget_all)
