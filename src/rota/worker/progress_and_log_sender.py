"""Sends handler progress and log lines to the store, in ordered, fenced batches."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Final

from rota.errors import StoreError, StoreUnavailable
from rota.store.batch_limit_constants import BATCH_BY_VERB
from rota.store.job_store import JobStore
from rota.store.redis.retrying_client import ScriptCall
from rota.worker.runners.protocol import Log, Progress
from rota.worker.running_jobs import RunningJob

logger = logging.getLogger("rota.worker")

#: Progress and log lines of this long a time share a round trip.
GATHER_S: Final = 0.05
#: Log lines of this many characters wait for the server at most; further ones are left out, and the store counts them.
MAX_WAITING: Final = 16 * 2**20
_LINES_PER_CALL: Final = 200


class ProgressAndLogSender:
    """Buffers the latest progress of each run, and all log lines in order."""

    def __init__(self, store: JobStore) -> None:
        self._store = store
        self._progress: dict[str, dict[str, tuple[str, str, str, str, str]]] = {}
        self._lines: dict[tuple[str, str, str], list[tuple[int, str]]] = {}
        self._waiting = 0
        self._wake_up = asyncio.Event()
        #: Queue -> the lock that keeps its lines in order.
        self._sending: dict[str, asyncio.Lock] = {}

    def add(self, job: RunningJob, message: Progress | Log) -> None:
        """Buffers the progress or a log line of a running job."""
        queue, run, claim = job.job[:3]
        if isinstance(message, Progress):
            progress = (run, claim, message.done, message.total, message.note)
            self._progress.setdefault(queue, {})[run] = progress
        else:
            self._waiting += len(message.text)
            if self._waiting > MAX_WAITING:
                self._waiting -= len(message.text)
                return
            self._lines.setdefault((queue, run, claim), []).append((message.number, message.text))
        self._wake_up.set()

    async def run(self) -> None:
        """Runs until cancelled: waits for progress or log lines, gathers for a moment, and sends them."""
        while True:
            await self._wake_up.wait()
            await asyncio.sleep(GATHER_S)
            try:
                await self.flush()
            except StoreError as error:
                logger.debug("progress and log lines were not stored: %s", error)
                await asyncio.sleep(GATHER_S * 10)

    async def flush(self, queues: Iterable[str] | None = None) -> None:
        """Sends the buffer, or that of some queues. What the server does not answer for is kept.

        The claim/report loop calls this before it reports the end of an attempt: afterwards the store refuses its
        progress. One call for each queue: the nodes of a cluster do not wait for each other.
        """
        if queues is None:
            self._wake_up.clear()
        buffered = {*self._progress, *(key[0] for key in self._lines)}
        wanted = buffered if queues is None else buffered.intersection(queues)
        sent = await asyncio.gather(*map(self._flush, wanted), return_exceptions=True)
        for error in sent:
            if error is not None:
                self._wake_up.set()
                raise error

    async def _flush(self, queue: str) -> None:
        async with self._sending.setdefault(queue, asyncio.Lock()):
            progress = {queue: list(self._progress[queue].values())} if queue in self._progress else {}
            lines = {key: list(of_run) for key, of_run in self._lines.items() if key[0] == queue}
            if not progress and not lines:
                return
            try:
                await self._store.redis.run_many(self._calls(progress, lines))
            except StoreUnavailable:
                raise
            except StoreError as error:
                # A full server accepts no logs. The reports of finished jobs must not wait for them.
                logger.warning("progress or log lines were refused: %s", error)
            self._remove(progress, lines)

    def _calls(
        self,
        progress: dict[str, list[tuple[str, str, str, str, str]]],
        lines: dict[tuple[str, str, str], list[tuple[int, str]]],
    ) -> list[ScriptCall]:
        calls = [
            self._store.save_progress_call(queue, items[start : start + BATCH_BY_VERB["save_progress"]])
            for queue, items in progress.items()
            for start in range(0, len(items), BATCH_BY_VERB["save_progress"])
        ]
        for key, of_run in lines.items():
            calls += (
                self._store.append_log_call(*key, part[0][0], [text for _, text in part]) for part in _parts(of_run)
            )
        return calls

    def _remove(
        self,
        progress: dict[str, list[tuple[str, str, str, str, str]]],
        lines: dict[tuple[str, str, str], list[tuple[int, str]]],
    ) -> None:
        """Removes what has been sent. More may have been added meanwhile."""
        for queue, items in progress.items():
            of_queue = self._progress[queue]
            for item in items:
                if of_queue[item[0]] is item:
                    del of_queue[item[0]]
            if not of_queue:
                del self._progress[queue]
        for key, sent in lines.items():
            self._waiting -= sum(len(text) for _, text in sent)
            del self._lines[key][: len(sent)]
            if not self._lines[key]:
                del self._lines[key]


def _parts(lines: list[tuple[int, str]]) -> list[list[tuple[int, str]]]:
    """Lines whose numbers follow each other, in lists for one call each."""
    parts: list[list[tuple[int, str]]] = []
    for line in lines:
        if not parts or len(parts[-1]) == _LINES_PER_CALL or line[0] != parts[-1][-1][0] + 1:
            parts.append([])
        parts[-1].append(line)
    return parts
