"""Requests to shut a worker down: drain, undrain, stop, finish."""

from __future__ import annotations

import asyncio


class ShutdownRequests:
    """Records that the worker should drain, stop, or stop without grace. May be called before it has started."""

    def __init__(self) -> None:
        self.drain_requested = asyncio.Event()
        #: The opposite of `drain_requested`.
        self.drain_withdrawn = asyncio.Event()
        self.drain_withdrawn.set()
        self.stop_requested = asyncio.Event()
        self.hurry_requested = asyncio.Event()
        self._stops = 0
        #: How often a drain was requested or withdrawn.
        self.drain_changes = 0

    def drain(self) -> None:
        """Requests that the worker claims no more jobs, finishes those it runs, however long that takes, and stops."""
        self.drain_changes += 1
        self.drain_requested.set()
        self.drain_withdrawn.clear()

    def undrain(self) -> None:
        """Withdraws `drain`. Without effect on a worker that stops."""
        if self.stop_requested.is_set():
            return
        self.drain_changes += 1
        self.drain_requested.clear()
        self.drain_withdrawn.set()

    def stop(self) -> None:
        """Requests a graceful stop; called again, a stop without grace."""
        self._stops += 1
        self.stop_requested.set()
        if self._stops > 1:
            self.hurry_requested.set()

    def finish(self) -> None:
        """Requests a stop because nothing is left to do, or can be done."""
        self.stop_requested.set()
