"""Takes what handlers say while they run, progress and log lines, to the store: fenced, in order, in batches."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from rota.errors import StoreError, StoreUnavailable
from rota.store.bounds import SLICES
from rota.store.gateway import Call
from rota.store.store import Store
from rota.worker.flights import Flight
from rota.worker.wire import Log, Progress

logger = logging.getLogger("rota.worker")

#: What is said within this time travels together.
GATHER_S: Final = 0.05
#: Lines of one attempt kept for a server that is away; what comes after them is dropped.
MOST_LINES: Final = 10_000
_LINES: Final = 200


class Sayings:
    """Progress is kept per run, the latest only; log lines are kept in order."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._progress: dict[str, dict[str, tuple[str, str, str, str, str]]] = {}
        self._lines: dict[tuple[str, str, str], list[tuple[int, str]]] = {}
        self._something = asyncio.Event()
        self._sending = asyncio.Lock()

    def hear(self, flight: Flight, message: Progress | Log) -> None:
        """A runner passes on what a handler said."""
        queue, run, claim = flight.job[:3]
        if isinstance(message, Progress):
            said = (run, claim, message.done, message.total, message.note)
            self._progress.setdefault(queue, {})[run] = said
        else:
            lines = self._lines.setdefault((queue, run, claim), [])
            if len(lines) < MOST_LINES:
                lines.append((message.number, message.text))
        self._something.set()

    async def run(self) -> None:
        """For ever: waits until something was said, gathers a moment, and sends it."""
        while True:
            await self._something.wait()
            await asyncio.sleep(GATHER_S)
            try:
                await self.flush()
            except StoreError as error:
                logger.debug("progress and logs wait: %s", error)
                await asyncio.sleep(GATHER_S * 10)

    async def flush(self) -> None:
        """Sends what there is, in one round trip. Where the server does not answer, it is kept for the next time.

        The desk does this before it reports the end of an attempt: afterwards nobody would take it.
        """
        async with self._sending:
            self._something.clear()
            if not self._progress and not self._lines:
                return
            progress = {queue: list(of_queue.values()) for queue, of_queue in self._progress.items()}
            lines = {key: list(of_run) for key, of_run in self._lines.items()}
            try:
                await self._store.gateway.run_many(self._calls(progress, lines))
            except StoreUnavailable:
                self._something.set()
                raise
            except StoreError as error:
                # A full server takes no logs. Nothing is worth holding up the reports of jobs that have ended.
                logger.warning("progress or log lines were refused: %s", error)
            self._forget(progress, lines)

    def _calls(
        self,
        progress: dict[str, list[tuple[str, str, str, str, str]]],
        lines: dict[tuple[str, str, str], list[tuple[int, str]]],
    ) -> list[Call]:
        calls = [
            self._store.progress_call(queue, items[start : start + SLICES["progress"]])
            for queue, items in progress.items()
            for start in range(0, len(items), SLICES["progress"])
        ]
        for key, of_run in lines.items():
            for start in range(0, len(of_run), _LINES):
                part = of_run[start : start + _LINES]
                calls.append(self._store.log_call(*key, part[0][0], [text for _, text in part]))
        return calls

    def _forget(
        self,
        progress: dict[str, list[tuple[str, str, str, str, str]]],
        lines: dict[tuple[str, str, str], list[tuple[int, str]]],
    ) -> None:
        """Drops what has been sent. More may have been said meanwhile."""
        for queue, items in progress.items():
            of_queue = self._progress[queue]
            for item in items:
                if of_queue[item[0]] is item:
                    del of_queue[item[0]]
            if not of_queue:
                del self._progress[queue]
        for key, sent in lines.items():
            del self._lines[key][: len(sent)]
            if not self._lines[key]:
                del self._lines[key]
