"""Notifies middleware and error hooks about attempts whose process or worker was killed before it could report.

The supervisor runs no user code, so a runner calls the middleware (`Middleware.attempt_lost`) and confirms that. If it
dies before, another runner does. Attempts that the middleware was never notified of are in the job's history, too.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Sequence
from typing import Final

import msgspec

from rota.core.attempts_from_history import LostAttempt, attempts_of
from rota.core.ids import JobRef
from rota.core.job_record import JobRecord
from rota.core.job_record_codec import UndecodableRecord, decode_body
from rota.core.next_attempt_time import TIMEOUT_CLASSES, next_attempt
from rota.core.state_transitions import JobState
from rota.errors import StoreError
from rota.store.reads import Snapshot, Views
from rota.worker.runners.pool import Pool, RunnerProcess
from rota.worker.runners.protocol import LostAttemptNotified, NotifyLostAttempt
from rota.worker.running_jobs import RunningJob

logger = logging.getLogger("rota.worker")

#: So many notifications may be pending: a program that cannot even start must not fill the memory.
MAX_PENDING: Final = 1_000
#: How many runs are read in one call.
READ_BATCH: Final = 50
OUTAGE_PAUSE_S: Final = 1.0


class LostAttemptNotifier:
    """Handles attempts lost in this worker and, when it takes over their leases, in others."""

    def __init__(self, views: Views, pool: Pool) -> None:
        self._views = views
        self._pool = pool
        self._numbers = itertools.count(1)
        #: The notifications that have been sent and not confirmed, with the runner that got each.
        self._pending: dict[int, tuple[RunnerProcess, LostAttempt]] = {}
        self._reaped: list[JobRef] = []
        self._wake_up = asyncio.Event()
        self._notified = asyncio.Event()

    def on_killed(self, job: RunningJob, runner: RunnerProcess, *, is_charged: bool) -> None:
        """Handles an attempt of this worker that ended with its process. It may be charged as a stall."""
        try:
            body = decode_body(job.job.run, job.job.record)
        except UndecodableRecord:
            return  # no handler was called
        queue, run, claim, counts, _ = job.job
        record = JobRecord(
            ref=JobRef(queue, body.id, run),
            task=body.task,
            state=JobState.PROCESSING,
            arguments=body.arguments,
            options=body.options,
            counts=counts,
            enqueued_at=body.enqueued_at,
            claim=claim,
        )
        outcome, note = _outcome_and_note(job, runner)
        took_s, now = time.monotonic() - job.started_at, time.time()
        self._notify(
            LostAttempt(
                record,
                outcome,
                note,
                now - took_s,
                now,
                exit_code=runner.exit_code or 0,
                will_retry=_will_retry(record, outcome, is_charged=is_charged),
            )
        )

    def on_reaped(self, queue: str, runs: Sequence[str]) -> None:
        """Handles runs that a claim has taken from workers that are gone."""
        self._reaped += (JobRef(queue, "", run) for run in runs[: MAX_PENDING - len(self._reaped)])
        self._wake_up.set()

    def on_notified(self, message: LostAttemptNotified) -> None:
        """Handles a runner's confirmation that the middleware has been called."""
        self._pending.pop(message.number, None)
        self._notified.set()

    def on_exit(self, runner: RunnerProcess) -> None:
        """Sends the notifications that a runner has not confirmed before its end to another one."""
        left = [(number, attempt) for number, (notifier, attempt) in self._pending.items() if notifier is runner]
        for number, attempt in left:
            del self._pending[number]
            self._notify(attempt)

    async def until_notified(self) -> None:
        """Waits until the middleware has been notified of all lost attempts so far."""
        while self._pending or self._reaped:
            self._notified.clear()
            await self._notified.wait()

    async def run(self) -> None:
        """Runs until cancelled: reads the runs that were taken from other workers."""
        while True:
            await self._wake_up.wait()
            self._wake_up.clear()
            while self._reaped:
                refs = [ref for ref in self._reaped if ref.queue == self._reaped[0].queue][:READ_BATCH]
                try:
                    found = await self._views.read_runs(refs[0].queue, refs)
                except StoreError as error:
                    logger.debug("lost attempts of %s cannot be read now: %s", refs[0], error)
                    await asyncio.sleep(OUTAGE_PAUSE_S)
                    continue
                self._reaped = [ref for ref in self._reaped if ref not in refs]
                for snapshot in found:
                    self._notify_stalled(snapshot)
                self._notified.set()

    def _notify_stalled(self, snapshot: Snapshot | None) -> None:
        """Notifies about the latest stalled attempt of a run. Its job may have moved on, or be deleted, by now."""
        attempts = attempts_of(snapshot.record, snapshot.history) if snapshot is not None else ()
        stalled = next((one for one in reversed(attempts) if one.outcome == "stalled"), None)
        if snapshot is None or stalled is None or stalled.ended_at is None:
            return
        job = snapshot.record
        counts = msgspec.structs.replace(job.counts, attempt=stalled.number)
        job = msgspec.structs.replace(job, counts=counts, state=JobState.PROCESSING, worker=stalled.worker, result=None)
        note = f"worker {stalled.worker} vanished"
        ended = [entry for entry in snapshot.history if (entry.verb, entry.attempt) == ("reap", stalled.number)]
        will_retry = all(entry.state != JobState.FAILED.value for entry in ended)
        self._notify(
            LostAttempt(job, "stalled", note, stalled.started_at / 1000, stalled.ended_at / 1000, will_retry=will_retry)
        )

    def _notify(self, attempt: LostAttempt) -> None:
        if self._pool.is_closing or len(self._pending) >= MAX_PENDING:
            logger.warning("%s: %s; the middleware cannot be notified", attempt.job.ref, attempt.note)
            return
        number, runner = next(self._numbers), self._pool.runner_for("loop")
        self._pending[number] = runner, attempt
        runner.send(NotifyLostAttempt(number, attempt))


def _will_retry(job: JobRecord, outcome: str, *, is_charged: bool) -> bool:
    """True when an attempt that ended with its process is followed by another."""
    if outcome == "timeout":
        return next_attempt(job.options, job.counts, TIMEOUT_CLASSES, 0.0) != "final"
    return not is_charged or not (job.options.at_most_once or job.counts.stalls + 1 > job.options.max_stalls)


def _outcome_and_note(job: RunningJob, runner: RunnerProcess) -> tuple[str, str]:
    """The outcome of an attempt that was killed, and a sentence about it."""
    match job.stop_reason:
        case None:
            return "killed", f"its process {runner.what_happened}"
        case "timeout" | "progress":
            return "timeout", job.timeout_message
        case "cancelled":
            return "cancelled", "the job was cancelled"
        case "lost":
            return "stopped", "its lease was lost"
        case "retired":
            return "stopped", "its process was killed, because another handler in it did not stop"
        case _:
            return "stopped", "its worker stopped"
