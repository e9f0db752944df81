"""Has the program told of attempts that could not tell themselves, because what ran them was killed.

The supervisor runs nothing of the program's, so a runner that lives tells its middleware (`Middleware.vanished`), and
says when it has. One that dies before it has is followed by another. What could not be told at all is in the job's
history all the same.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Sequence
from typing import Final

import msgspec

from rota.core.attempts import Vanished, attempts_of
from rota.core.codec import UndecodableRecord, decode_body
from rota.core.job import JobRecord, JobRef
from rota.core.states import JobState
from rota.errors import StoreError
from rota.store.views import Snapshot, Views
from rota.worker import wire
from rota.worker.flights import Flight
from rota.worker.pool import Pool, RunnerProcess
from rota.worker.tower import lateness_of

logger = logging.getLogger("rota.worker")

#: So many wait to be told of, at most: a program that cannot even start must not fill the memory.
MOST_UNTOLD: Final = 1_000
#: Runs that are looked up together.
LOOK_UP: Final = 50
OUTAGE_PAUSE_S: Final = 1.0


class Witness:
    """Sees attempts vanish, in this worker and, when it takes over their leases, in others."""

    def __init__(self, views: Views, pool: Pool) -> None:
        self._views = views
        self._pool = pool
        self._numbers = itertools.count(1)
        #: Who is to tell what.
        self._untold: dict[int, tuple[RunnerProcess, Vanished]] = {}
        self._reaped: list[JobRef] = []
        self._something = asyncio.Event()
        self._is_told = asyncio.Event()

    def saw(self, flight: Flight, runner: RunnerProcess) -> None:
        """An attempt of this worker ended with its process."""
        try:
            body = decode_body(flight.job.run, flight.job.record)
        except UndecodableRecord:
            return  # no handler has ever seen it
        queue, run, claim, counts, _ = flight.job
        job = JobRecord(
            ref=JobRef(queue, body.id, run), task=body.task, state=JobState.PROCESSING, arguments=body.arguments,
            options=body.options, counts=counts, enqueued_at=body.enqueued_at, claim=claim,
        )  # fmt: skip
        outcome, note = _fate(flight, runner)
        took_s, now = time.monotonic() - flight.started_at, time.time()
        self._tell(Vanished(job, outcome, note, now - took_s, now))

    def heard_of(self, queue: str, runs: Sequence[str]) -> None:
        """A claim has taken these from workers that are gone."""
        self._reaped += (JobRef(queue, "", run) for run in runs[: MOST_UNTOLD - len(self._reaped)])
        self._something.set()

    def hear(self, messages: Sequence[wire.FromRunner]) -> None:
        """A runner has told the program of some."""
        for message in messages:
            if isinstance(message, wire.Told):
                self._untold.pop(message.number, None)
                self._is_told.set()

    def bury(self, runner: RunnerProcess) -> None:
        """A runner is gone: what it has not told, another will."""
        left = [(number, attempt) for number, (teller, attempt) in self._untold.items() if teller is runner]
        for number, attempt in left:
            del self._untold[number]
            self._tell(attempt)

    async def until_told(self) -> None:
        """Until the program knows of all that has been seen."""
        while self._untold or self._reaped:
            self._is_told.clear()
            await self._is_told.wait()

    async def run(self) -> None:
        """For ever: looks up what was taken from other workers."""
        while True:
            await self._something.wait()
            self._something.clear()
            while self._reaped:
                refs = [ref for ref in self._reaped if ref.queue == self._reaped[0].queue][:LOOK_UP]
                try:
                    found = await self._views.read(refs[0].queue, refs)
                except StoreError as error:
                    logger.debug("what became of %s cannot be looked up now: %s", refs[0], error)
                    await asyncio.sleep(OUTAGE_PAUSE_S)
                    continue
                self._reaped = [ref for ref in self._reaped if ref not in refs]
                for snapshot in found:
                    self._tell_of_stall(snapshot)
                self._is_told.set()

    def _tell_of_stall(self, snapshot: Snapshot | None) -> None:
        """The latest attempt of a run that ended without a word. Its job may have moved on, or be gone, by now."""
        attempts = attempts_of(snapshot.record, snapshot.history) if snapshot is not None else ()
        stalled = next((one for one in reversed(attempts) if one.outcome == "stalled"), None)
        if snapshot is None or stalled is None or stalled.ended_at is None:
            return
        job = snapshot.record
        counts = msgspec.structs.replace(job.counts, attempt=stalled.number)
        job = msgspec.structs.replace(job, counts=counts, state=JobState.PROCESSING, worker=stalled.worker, result=None)
        note = f"worker {stalled.worker} vanished"
        self._tell(Vanished(job, "stalled", note, stalled.started_at / 1000, stalled.ended_at / 1000))

    def _tell(self, attempt: Vanished) -> None:
        if self._pool.is_closing or len(self._untold) >= MOST_UNTOLD:
            logger.warning("%s: %s, and nobody can be told", attempt.job.ref, attempt.note)
            return
        number, runner = next(self._numbers), self._pool.runner_for("loop")
        self._untold[number] = runner, attempt
        runner.say(wire.Vanished(number, attempt))


def _fate(flight: Flight, runner: RunnerProcess) -> tuple[str, str]:
    """How such an attempt ended, in a word, and in words for people."""
    match flight.stop_reason:
        case None:
            code = runner.exit_code or 0
            how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
            return "killed", f"its process {how}"
        case "timeout" | "progress":
            return "timeout", lateness_of(flight)
        case "cancelled":
            return "cancelled", "the job was cancelled"
        case "lost":
            return "stopped", "its lease was lost"
        case "retired":
            return "stopped", "its process was killed, because another handler in it did not stop"
        case _:
            return "stopped", "its worker stopped"
