"""Dispatches claimed jobs to runners, stops them when they must stop, and decides what is reported of each.

Events of the store, the runners and the clock meet here. It does no I/O of its own: jobs go to the pool, reports to the
report buffer.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import math
import os
import random
from collections.abc import Sequence
from time import monotonic
from typing import TYPE_CHECKING, Final

import msgspec

from rota.core.error_record import record_error
from rota.core.job_record import ErrorRecord
from rota.core.job_record_codec import FIRST_ATTEMPT, UndecodableRecord, decode_task_and_options, encode_error
from rota.core.next_attempt_time import TIMEOUT_CLASSES, next_attempt
from rota.core.state_transitions import JobState
from rota.store.claim_replies import ClaimedJob
from rota.store.report_encoding import CancelConfirmed, Cancelled, Completed, Failed, Lost, Report, Returned, Snoozed
from rota.worker.monitoring.log_failed_attempts import log_failure, log_killed
from rota.worker.progress_and_log_sender import ProgressAndLogSender
from rota.worker.report_buffer import ReportBuffer
from rota.worker.runners.pool import Pool, RunnerProcess
from rota.worker.runners.protocol import (
    AppDescription,
    AttemptEnded,
    AttemptStopped,
    FromRunner,
    Log,
    LoopBlocked,
    LostAttemptNotified,
    Progress,
    RunnerFailed,
    RunnerReady,
    StartAttempt,
    StopAttempt,
)
from rota.worker.running_jobs import RunningJob, RunningJobs

if TYPE_CHECKING:
    from rota.worker.lost_attempt_middleware_notifier import LostAttemptNotifier
    from rota.worker.monitoring.prometheus_metrics import WorkerMetrics

logger = logging.getLogger("rota.worker")

#: A handler that was asked to stop has this long; then its runner is retired.
STOP_PATIENCE_S: Final = 5.0
#: Other handlers on a runner that is retired have this long to finish.
RETIRE_BOUND_S: Final = 30.0
#: When handlers that took longer than UNHURRIED_S end together, their slots are given away after every BURST of them.
#: Otherwise the next ones would start together and end together, over and over, and each slot would be empty until all
#: of them had been handled.
BURST: Final = 8
UNHURRIED_S: Final = 0.005
#: After so many crashes beside other jobs a job is charged for the next one, whatever runs beside it: if no more
#: runners can be started, the reason might never be found.
MAX_CRASHES: Final = 8


class Dispatcher:
    """Controls the running jobs of one worker."""

    def __init__(
        self,
        app: AppDescription,
        running: RunningJobs,
        pool: Pool,
        reports: ReportBuffer,
        progress: ProgressAndLogSender,
        *,
        lost_attempts: LostAttemptNotifier | None = None,
        metrics: WorkerMetrics | None = None,
        always_logs_tracebacks: bool = False,
    ) -> None:
        self._app = app
        self._running = running
        self._pool = pool
        self._reports = reports
        self._progress = progress
        self._lost_attempts = lost_attempts
        self._metrics = metrics
        self._always_logs_tracebacks = always_logs_tracebacks
        self._kinds = {
            name.encode(): "process" if declared["run_in"] == "process" else "loop"
            for name, declared in (app.tasks | app.failure_handlers).items()
        }
        self._attempt_ids = itertools.count(1)
        self._deadline_set = asyncio.Event()
        self._wakes_at = 0.0
        self._job_finished = asyncio.Event()
        self.finished = 0

    async def run(self) -> None:
        """Runs until cancelled: acts on deadlines when they are due."""
        while True:
            self._deadline_set.clear()
            for job, deadline in self._running.deadlines.due(monotonic()):
                self._on_deadline(job, deadline)
            self._wakes_at = self._running.deadlines.next() or math.inf
            try:
                async with asyncio.timeout(None if self._wakes_at == math.inf else self._wakes_at - monotonic()):
                    await self._deadline_set.wait()
            except TimeoutError:
                continue  # a deadline is due

    # --- claimed jobs ------------------------------------------------------------------------------------------

    def dispatch(self, claimed: ClaimedJob) -> None:
        """Gives a claimed job to a runner when there is a slot; fails it for good if no runner could run it."""
        if self._metrics is not None:
            self._metrics.job_claimed(claimed.queue)
        try:
            task, options = decode_task_and_options(claimed.run, claimed.record)
        except UndecodableRecord as error:
            self._fail_undispatched(RunningJob(claimed), record_error(error, kind="permanent"))
            return
        kind = self._kinds.get(task)
        if kind is None:
            known = ", ".join(sorted(self._app.tasks)) or "none"
            message = (
                f"no task is called {task.decode(errors='replace')!r} in {self._pool.app}, which declares: {known}"
            )
            unknown = ErrorRecord(kind="permanent", type="UnknownTask", message=message)
            self._fail_undispatched(RunningJob(claimed, options), unknown)
            return
        if not self._running.task_slots.take(task):
            self._reports.add(claimed.queue, Returned(claimed.run, claimed.claim, "unstarted"))
            return
        job = RunningJob(claimed, options, kind, counted_task=task)
        older = self._running.add(job)
        if older is not None:
            self.stop(older, "lost")
        if self._running.busy < self._running.slots:
            self._start(job)
        else:
            job.claimed_at = monotonic()
            self._running.waiting.append(job)

    def flush(self) -> None:
        """Sends the jobs that were dispatched to their runners, now."""
        self._pool.flush()

    def return_waiting(self) -> None:
        """Returns the jobs that wait for a slot to the store."""
        waiting = self._running.waiting
        while waiting:
            self._return_unstarted(waiting.popleft())

    def return_late(self) -> None:
        """Returns the jobs that have waited too long for a slot; but not while a runner starts, which they wait for."""
        if self._pool.is_starting:
            self._restart_waiting_time()
        else:
            self.return_waiting()

    def _restart_waiting_time(self) -> None:
        for job in self._running.waiting:
            job.claimed_at = monotonic()

    def _return_unstarted(self, job: RunningJob) -> None:
        self._running.finish(job)
        self._reports.add(job.job.queue, Returned(job.job.run, job.job.claim, "unstarted"))

    def _fail_undispatched(self, job: RunningJob, error: ErrorRecord) -> None:
        self._running.add(job)
        retention = job.options.keep.retention(JobState.FAILED)
        self._report_failed(job, Failed(job.job.run, job.job.claim, "final", retention, encode_error(error)))

    def _start_waiting(self) -> None:
        """Gives free slots to the jobs that have waited longest."""
        waiting = self._running.waiting
        while waiting and self._running.busy < self._running.slots:
            self._start(waiting.popleft())

    def _start(self, job: RunningJob) -> None:
        self._running.start(job)
        crashes = job.job.counts.crashes
        if crashes and job.kind == "loop":
            runner = job.runner = self._pool.isolated_runner(crashes, self._running.slots)
        else:
            runner = job.runner = self._pool.runner_for(job.kind)
        attempt_id = job.attempt_id = next(self._attempt_ids)
        runner.jobs[attempt_id] = job
        queue, run, claim, counts, record = job.job
        so_far = () if counts is FIRST_ATTEMPT else msgspec.structs.astuple(counts)
        runner.send(StartAttempt(attempt_id, queue, run, claim, so_far, record))
        if runner.is_ready:
            self._set_timeouts(job)

    def _set_timeouts(self, job: RunningJob) -> None:
        job.started_at = monotonic()
        options = job.options
        if options.timeout_ms is not None:
            self._set_deadline("timeout", options.timeout_ms / 1000, job)
        if options.progress_timeout_ms is not None:
            self._set_deadline("progress", options.progress_timeout_ms / 1000, job)

    # --- events of runners: `PoolListener` -----------------------------------------------------------------------

    def on_messages(self, runner: RunnerProcess, messages: list[FromRunner]) -> None:
        """Handles what a runner sent: outcomes, progress, that it is ready."""
        for message in messages:
            if isinstance(message, AttemptEnded | AttemptStopped):
                job = runner.jobs.pop(message.attempt_id, None)
                if job is not None:
                    runner.done += 1
                    runner.blocked_by = None  # this message comes from its loop
                    self._finish(job, message.report if isinstance(message, AttemptEnded) else None)
                    if runner.is_retired or runner.kind == "isolated" or self._pool.wears_out:
                        self._after_finish(runner)
                    if runner.done % BURST == 0 and self._running.waiting:
                        self._break_up_burst(job)
            elif isinstance(message, Progress | Log):
                job = runner.jobs.get(message.attempt_id)
                if job is not None:
                    self._on_progress(job, message)
            elif isinstance(message, RunnerReady):
                for job in runner.jobs.values():
                    self._set_timeouts(job)
                self._restart_waiting_time()
            elif isinstance(message, RunnerFailed) and runner.is_ready and not runner.is_kill_requested:
                # No job is the reason: they run again elsewhere, and none is charged.
                for job in runner.jobs.values():
                    job.stop_reason = job.stop_reason or "retired"
                self._pool.on_failure(runner)
            elif isinstance(message, LoopBlocked):
                self._on_blocked_loop(runner, message.attempt_id)
            elif isinstance(message, LostAttemptNotified) and self._lost_attempts is not None:
                self._lost_attempts.on_notified(message)
        if self._running.waiting:
            self._start_waiting()
            self._pool.flush()

    def _on_blocked_loop(self, runner: RunnerProcess, attempt_id: int | None) -> None:
        """A handler blocks the loop of its runner. Those beside it that have timed out did not have their time."""
        runner.blocked_by = None
        culprit = runner.jobs.get(attempt_id) if attempt_id is not None else None
        if culprit is None:
            return
        runner.blocked_by = attempt_id
        logger.warning("%s blocks the event loop of its runner", culprit.job_id, extra=culprit.log_fields())
        for job in runner.jobs.values():
            if job is not culprit and job.stop_reason in ("timeout", "progress"):
                job.stop_reason = "retired"

    def on_exit(self, runner: RunnerProcess) -> None:
        """Handles the end of a runner: every handler that it had has certainly ended.

        A job that was alone in it is charged a stall. Of several, any may be the reason: they run again in isolation.
        """
        others = len(runner.jobs) - 1
        for job in runner.jobs.values():
            if job.stop_reason is None and not runner.is_ready:
                self._return_unstarted(job)
            else:
                lost = _lost(job, runner, others)
                if self._lost_attempts is not None:
                    self._lost_attempts.on_killed(job, runner, is_charged=lost.charge == "charged")
                self._finish(job, None, lost=lost)
        runner.jobs.clear()
        self._job_finished.set()
        self._start_waiting()
        if self._lost_attempts is not None:
            self._lost_attempts.on_exit(runner)

    def _break_up_burst(self, job: RunningJob) -> None:
        """Others may have ended together with this one: the slots that are free so far are given away now."""
        if monotonic() - job.started_at > UNHURRIED_S:
            self._start_waiting()
            self._pool.flush()
            os.sched_yield()  # to the runner, where it shares our core

    def _on_progress(self, job: RunningJob, message: Progress | Log) -> None:
        allowed_ms = job.options.progress_timeout_ms
        if allowed_ms is not None and isinstance(message, Progress):
            self._set_deadline("progress", allowed_ms / 1000, job)
        self._progress.add(job, message)

    def _after_finish(self, runner: RunnerProcess) -> None:
        is_left = bool(runner.jobs) and all(job.stop_reason for job in runner.jobs.values())
        if runner.is_retired and is_left and not runner.failure:
            # Only handlers that do not stop are left on it. A runner that ends by itself is cleaning up.
            runner.kill()
        self._pool.dismiss_if_done(runner)

    # --- stopping ----------------------------------------------------------------------------------------------

    def stop(self, job: RunningJob, reason: str) -> None:
        """Stops a handler: its process is killed, or it is asked to stop, and its runner retired if it does not."""
        if job.is_finished or job.stop_reason is not None:
            return
        job.stop_reason = reason
        runner = job.runner
        if runner is None:
            self._running.waiting.remove(job)
            self._finish(job, None)
        elif runner.kind == "process":
            runner.kill()
        else:
            note = job.timeout_message if reason in ("timeout", "progress") else ""
            runner.send(StopAttempt(job.attempt_id, reason, note))
            self._set_deadline("ignored", STOP_PATIENCE_S, job)

    def stop_claim(self, queue: str, run: str, claim: str, reason: str) -> None:
        """Stops the handler of this claim, if it is still held."""
        job = self._running.by_run.get((queue, run))
        if job is not None and job.job.claim == claim:
            self.stop(job, reason)

    def _on_deadline(self, job: RunningJob, deadline: str) -> None:
        assert job.runner is not None
        match deadline:
            case "timeout" | "progress":
                is_blocked = job.runner.blocked_by not in (None, job.attempt_id)
                self.stop(job, "retired" if is_blocked else deadline)
            case "ignored":
                self._retire_runner_of(job)
            case _:
                for other in job.runner.jobs.values():
                    if other.attempt_id != job.runner.blocked_by:  # that one runs again in isolation
                        other.stop_reason = other.stop_reason or "retired"
                job.runner.kill()

    def _retire_runner_of(self, job: RunningJob) -> None:
        """Retires the runner of a handler that did not stop; it is killed when its other handlers have finished."""
        runner = job.runner
        assert runner is not None
        if not runner.is_retired:
            logger.warning("%s does not stop: its runner is retired", job.job_id, extra=job.log_fields())
            self._pool.retire(runner)
        self._set_deadline("kill", RETIRE_BOUND_S, job)
        self._after_finish(runner)

    def _set_deadline(self, what: str, seconds: float, job: RunningJob) -> None:
        at = self._running.deadlines.put((what, seconds), job, monotonic())
        if at < self._wakes_at:
            self._deadline_set.set()

    # --- reports -----------------------------------------------------------------------------------------------

    def _finish(self, job: RunningJob, report: Report | None, *, lost: Lost | None = None) -> None:
        """Ends a running job. `report` is what its runner made of the handler's end; None if it was stopped, or ended
        with its process: then `lost` is the report, unless it was to be stopped anyway.
        """
        match report:
            case Completed():
                self._report(job, report)
                if logger.isEnabledFor(logging.DEBUG):
                    logger.debug("%s completed", job.job_id, extra=job.log_fields())
            case Failed() if job.stop_reason not in ("shutdown", "retired"):
                self._report_failed(job, report)
            case Snoozed() | Cancelled():
                self._report(job, report)
            case _:
                # Stopped or killed; or cut off by this worker, and the handler raised an error because of that.
                self._finish_stopped(job, lost)

    def _finish_stopped(self, job: RunningJob, lost: Lost | None) -> None:
        """Reports a handler that did not end by itself: it was stopped, or its process died."""
        run, claim = job.job.run, job.job.claim
        match job.stop_reason:
            case "timeout" | "progress":
                error = ErrorRecord(kind="timeout", type="Timeout", message=job.timeout_message)
                self._report_failure(job, error, TIMEOUT_CLASSES)
            case "shutdown" | "retired":
                self._report(job, Returned(run, claim, "started"))
            case "cancelled":
                self._report(job, CancelConfirmed(run, claim))
                logger.info("%s was cancelled", job.job_id, extra=job.log_fields())
            case "lost":
                self._running.finish(job)
                self._running.acknowledge(job.job.queue, run, claim)
                self._job_finished.set()
                logger.warning("%s was stopped: its lease was lost", job.job_id, extra=job.log_fields())
            case _ if lost is not None:
                self._report(job, lost)
                log_killed(job, lost.what_happened)
            case _:
                error = ErrorRecord(type="CancelledError", message="the handler cancelled itself")
                self._report_failure(job, error, ["CancelledError"])

    def _report_failure(self, job: RunningJob, error: ErrorRecord, kinds: Sequence[str]) -> None:
        options = job.options
        when = next_attempt(options, job.job.counts, kinds, random.random())
        retention = options.keep.retention(JobState.FAILED)
        self._report_failed(job, Failed(job.job.run, job.job.claim, when, retention, encode_error(error)))

    def _report_failed(self, job: RunningJob, report: Failed) -> None:
        self._report(job, report)
        log_failure(job, report, always_traceback=self._always_logs_tracebacks)

    def _report(self, job: RunningJob, report: Report) -> None:
        self._running.finish(job)
        self.finished += 1
        if self._metrics is not None:
            self._metrics.attempt_ended(job, report)
        self._reports.add(job.job.queue, report)
        self._job_finished.set()

    async def until_finished(self) -> None:
        """Waits until no handler is running."""
        while self._running.busy:
            self._job_finished.clear()
            await self._job_finished.wait()


def _lost(job: RunningJob, runner: RunnerProcess, others: int) -> Lost:
    is_charged = others == 0 or job.job.counts.crashes >= MAX_CRASHES
    beside = f" and {others} other{'s' if others > 1 else ''}" if others else ""
    what_happened = f"the process running this job{beside} {runner.what_happened}"
    return Lost(job.job.run, job.job.claim, "charged" if is_charged else "uncharged", what_happened)
