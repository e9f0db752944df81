"""Decides what becomes of each flight: who runs it, when it must stop, and what is reported of its end.

What the store, the runners and the clock say meets here. No I/O of its own: it hands jobs to the pool and reports to
the desk.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import math
import random
from collections.abc import Callable
from time import monotonic
from typing import Any, Final

import msgspec

from rota.core.codec import FIRST_ATTEMPT, UndecodableRecord, encode_error, peek
from rota.core.job import ErrorRecord
from rota.core.outcome import next_attempt, record_error
from rota.core.states import JobState
from rota.store.reports import Cancelled, Claimed, Completed, Failed, Lost, Report, Returned, Snoozed
from rota.worker import wire
from rota.worker.flights import Flight, Flights
from rota.worker.pool import Pool, RunnerProcess

logger = logging.getLogger("rota.worker")

#: A handler that has been told to stop gets this long; then its runner is retired.
STOP_PATIENCE_S: Final = 5.0
#: Other handlers on a runner that must go get this long to finish.
RETIRE_BOUND_S: Final = 30.0


class Tower:
    """Control of one worker's flights."""

    def __init__(
        self,
        flights: Flights,
        pool: Pool,
        *,
        app: str,
        slots: Callable[[], int],
        report: Callable[[str, Report], None],
        pass_on: Callable[[Flight, wire.Progress | wire.Log], None],
    ) -> None:
        self._flights = flights
        self._pool = pool
        self._app = app
        self._slots = slots
        self._report_to_desk = report
        self._pass_on = pass_on
        self._calendar_changed = asyncio.Event()
        self._alarm_at = 0.0
        self._something_landed = asyncio.Event()
        self._numbers = itertools.count(1)
        self._kinds: dict[bytes, str] = {}
        self.tasks: dict[str, dict[str, Any]] = {}
        self.handlers: dict[str, dict[str, Any]] = {}
        self.finished = 0
        #: Is told of every attempt that has ended, where somebody counts them.
        self.watch: Callable[[Flight, Report], None] | None = None
        #: Is told of every attempt that ended with its process, where the program wants to hear of it.
        self.miss: Callable[[Flight, RunnerProcess], None] | None = None

    def learn(self, tasks: dict[str, dict[str, Any]], handlers: dict[str, dict[str, Any]]) -> None:
        """What the program declares, as its first runner says."""
        self.tasks, self.handlers = tasks, handlers
        self._kinds = {
            name.encode(): "process" if facts["run_in"] == "process" else "loop"
            for name, facts in (tasks | handlers).items()
        }

    # --- jobs come in ------------------------------------------------------------------------------------------

    def take(self, job: Claimed) -> None:
        """A claimed job gets a runner, when there is a slot; or, where nobody could run it, becomes a dead letter."""
        try:
            task, options = peek(job.run, job.record)
        except UndecodableRecord as error:
            self._refuse(Flight(job), record_error(error, kind="permanent"))
            return
        kind = self._kinds.get(task)
        if kind is None:
            known = ", ".join(sorted(self.tasks)) or "none"
            message = f"no task is called {task.decode(errors='replace')!r} in {self._app}, which declares: {known}"
            self._refuse(Flight(job, options), ErrorRecord(kind="permanent", type="UnknownTask", message=message))
            return
        flight = Flight(job, options, kind)
        older = self._flights.add(flight)
        if older is not None:
            self.stop(older, "lost")
        if self._flights.busy < self._slots():
            self._start(flight)
        else:
            flight.claimed_at = monotonic()
            self._flights.waiting.append(flight)

    def start_waiting(self) -> None:
        """Gives free slots to the flights that have waited longest."""
        waiting = self._flights.waiting
        while waiting and self._flights.busy < self._slots():
            self._start(waiting.popleft())

    def give_back(self) -> None:
        """What still waits for a slot is for other workers."""
        waiting = self._flights.waiting
        while waiting:
            self._return_unstarted(waiting.popleft())

    def give_back_late(self) -> None:
        """The same, when they have waited long; but not while a runner starts, as that is what they wait for."""
        if self._pool.is_starting:
            self._let_wait_anew()
        else:
            self.give_back()

    def _let_wait_anew(self) -> None:
        for flight in self._flights.waiting:
            flight.claimed_at = monotonic()

    def _return_unstarted(self, flight: Flight) -> None:
        self._flights.land(flight)
        self._report_to_desk(flight.job.queue, Returned(flight.job.run, flight.job.claim, "unstarted"))

    def _refuse(self, flight: Flight, error: ErrorRecord) -> None:
        self._flights.add(flight)
        logger.error("%s: %s", flight.job_id, error.message, extra=fields_of(flight))
        rule = flight.options.keep.rule(JobState.FAILED)
        self._report(flight, Failed(flight.job.run, flight.job.claim, "final", rule, encode_error(error)))

    def _start(self, flight: Flight) -> None:
        self._flights.start(flight)
        runner = flight.runner = self._pool.runner_for(flight.kind)
        number = flight.number = next(self._numbers)
        runner.flights[number] = flight
        queue, run, claim, counts, record = flight.job
        so_far = () if counts is FIRST_ATTEMPT else msgspec.structs.astuple(counts)
        runner.say(wire.Run(number, queue, run, claim, so_far, record))
        if runner.is_ready:
            self._started(flight)

    def _started(self, flight: Flight) -> None:
        flight.started_at = monotonic()
        options = flight.options
        if options.timeout_ms is not None:
            self._remind("timeout", options.timeout_ms / 1000, flight)
        if options.progress_timeout_ms is not None:
            self._remind("progress", options.progress_timeout_ms / 1000, flight)

    # --- what runners say --------------------------------------------------------------------------------------

    def hear(self, runner: RunnerProcess, messages: list[wire.FromRunner]) -> None:
        """A runner is ready, or some of its handlers have come further, or have ended."""
        for message in messages:
            if isinstance(message, wire.Outcome):
                flight = runner.flights.pop(message.flight, None)
                if flight is not None:
                    runner.done += 1
                    self._land(flight, message)
                    if runner.is_retired or self._pool.wears_out:
                        self._after_landing(runner)
            elif isinstance(message, wire.Progress | wire.Log):
                flight = runner.flights.get(message.flight)
                if flight is not None:
                    self._hear_saying(flight, message)
            elif isinstance(message, wire.Hello):
                for flight in runner.flights.values():
                    self._started(flight)
                self._let_wait_anew()
        if self._flights.waiting:
            self.start_waiting()
            self._pool.flush()

    def _hear_saying(self, flight: Flight, message: wire.Progress | wire.Log) -> None:
        allowed_ms = flight.options.progress_timeout_ms
        if allowed_ms is not None and isinstance(message, wire.Progress):
            self._remind("progress", allowed_ms / 1000, flight)
        self._pass_on(flight, message)

    def bury(self, runner: RunnerProcess) -> None:
        """A runner is gone, and with it, for sure, every handler it had."""
        for flight in runner.flights.values():
            if flight.stop_reason is None and not runner.is_ready:
                self._return_unstarted(flight)
            else:
                if self.miss is not None:
                    self.miss(flight, runner)
                self._land(flight, None)
        runner.flights.clear()
        self._something_landed.set()
        self.start_waiting()

    def _after_landing(self, runner: RunnerProcess) -> None:
        if runner.is_retired and runner.flights and all(f.stop_reason for f in runner.flights.values()):
            # Only handlers that do not stop are left on it.
            runner.kill()
        self._pool.dismiss_if_done(runner)

    # --- stopping ----------------------------------------------------------------------------------------------

    def stop(self, flight: Flight, reason: str) -> None:
        """Stops a handler: its process is killed, or it is told, and its runner retired if it does not listen."""
        if flight.is_landed or flight.stop_reason is not None:
            return
        flight.stop_reason = reason
        runner = flight.runner
        if runner is None:
            self._flights.waiting.remove(flight)
            self._land(flight, None)
        elif runner.kind == "process":
            runner.kill()
        else:
            runner.say(wire.Stop(flight.number))
            self._remind("ignored", STOP_PATIENCE_S, flight)

    def stop_claim(self, queue: str, run: str, claim: str, reason: str) -> None:
        """The same, for the flight that this claim owns."""
        flight = self._flights.by_run.get((queue, run))
        if flight is not None and flight.job.claim == claim:
            self.stop(flight, reason)

    def _give_up_on(self, flight: Flight) -> None:
        """The handler did not stop. Its runner gets no more jobs, and is killed when the others have finished."""
        runner = flight.runner
        assert runner is not None
        if not runner.is_retired:
            logger.warning("%s does not stop: its runner is retired", flight.job_id, extra=fields_of(flight))
            self._pool.retire(runner)
        self._remind("kill", RETIRE_BOUND_S, flight)
        self._after_landing(runner)

    async def keep_calendar(self) -> None:
        """For ever: does what the calendar says, when it says."""
        while True:
            self._calendar_changed.clear()
            for flight, what in self._flights.calendar.due(monotonic()):
                self._act(flight, what)
            self._alarm_at = self._flights.calendar.next() or math.inf
            try:
                async with asyncio.timeout(None if self._alarm_at == math.inf else self._alarm_at - monotonic()):
                    await self._calendar_changed.wait()
            except TimeoutError:
                continue  # something is due

    def _act(self, flight: Flight, what: str) -> None:
        assert flight.runner is not None
        match what:
            case "timeout" | "progress":
                self.stop(flight, what)
            case "ignored":
                self._give_up_on(flight)
            case _:
                for other in flight.runner.flights.values():
                    other.stop_reason = other.stop_reason or "retired"
                flight.runner.kill()

    def _remind(self, what: str, seconds: float, flight: Flight) -> None:
        at = self._flights.calendar.put((what, seconds), flight, monotonic())
        if at < self._alarm_at:
            self._calendar_changed.set()

    # --- landing -----------------------------------------------------------------------------------------------

    def _land(self, flight: Flight, outcome: wire.Outcome | None) -> None:
        """A handler has ended, or vanished with its process: decides what is reported of it."""
        run, claim = flight.job.run, flight.job.claim
        match outcome:
            case wire.Completed():
                self._report(flight, Completed(run, claim, outcome.rule, outcome.result))
                if logger.isEnabledFor(logging.DEBUG):
                    logger.debug("%s completed", flight.job_id, extra=fields_of(flight))
            case wire.Failed() if flight.stop_reason not in ("shutdown", "retired"):
                self._report(flight, Failed(run, claim, outcome.next_attempt, outcome.rule, outcome.error))
                then = "for good" if outcome.next_attempt == "final" else "and will be tried again"
                logger.warning("%s failed %s", flight.job_id, then, extra=fields_of(flight))
            case wire.Snoozed():
                self._report(flight, Snoozed(run, claim, outcome.next_attempt))
            case wire.Cancelled():
                self._report(flight, Cancelled(run, claim, outcome.reason))
            case _:
                # Stopped, or vanished; or it was cut off by us, and made an error of its own of it.
                self._land_stopped(flight, has_vanished=outcome is None)

    def _land_stopped(self, flight: Flight, *, has_vanished: bool) -> None:
        """It did not end by itself: it was stopped for a reason of ours, or its process died."""
        run, claim = flight.job.run, flight.job.claim
        match flight.stop_reason:
            case "timeout" | "progress":
                self._report(flight, self._timed_out(flight))
                logger.warning("%s timed out", flight.job_id, extra=fields_of(flight))
            case "shutdown" | "retired":
                self._report(flight, Returned(run, claim, "started"))
            case "cancelled":
                # The store knows; this says that the handler has stopped.
                self._report(flight, Returned(run, claim, "started"))
                logger.info("%s was cancelled", flight.job_id, extra=fields_of(flight))
            case "lost":
                self._flights.land(flight)
                self._flights.settle(flight.job.queue, run, claim)
                self._something_landed.set()
                logger.warning("%s was stopped: its lease was lost", flight.job_id, extra=fields_of(flight))
            case _ if has_vanished:
                self._report(flight, Lost(run, claim))
                logger.warning("%s: its runner died", flight.job_id, extra=fields_of(flight))
            case _:
                error = ErrorRecord(type="CancelledError", message="the handler cancelled itself")
                self._report(flight, self._failure(flight, error, ["CancelledError"]))

    def _timed_out(self, flight: Flight) -> Report:
        error = ErrorRecord(kind="timeout", type="Timeout", message=lateness_of(flight))
        return self._failure(flight, error, ["Timeout", "TimeoutError", "Exception"])

    def _failure(self, flight: Flight, error: ErrorRecord, kinds: list[str]) -> Report:
        options = flight.options
        when = next_attempt(options, flight.job.counts, kinds, random.random())
        return Failed(flight.job.run, flight.job.claim, when, options.keep.rule(JobState.FAILED), encode_error(error))

    def _report(self, flight: Flight, report: Report) -> None:
        self._flights.land(flight)
        self.finished += 1
        if self.watch is not None:
            self.watch(flight, report)
        self._report_to_desk(flight.job.queue, report)
        self._something_landed.set()

    async def until_landed(self) -> None:
        """Until no handler is at work any more."""
        while self._flights.busy:
            self._something_landed.clear()
            await self._something_landed.wait()


def lateness_of(flight: Flight) -> str:
    """Which of its times an attempt that was stopped has overrun."""
    options = flight.options
    if flight.stop_reason == "progress":
        return f"made no progress for {(options.progress_timeout_ms or 0) / 1000:g} s and was stopped"
    return f"ran for more than {(options.timeout_ms or 0) / 1000:g} s and was stopped"


def fields_of(flight: Flight) -> dict[str, Any]:
    """What a log record says of a flight, under the names used everywhere."""
    took = monotonic() - flight.started_at if flight.started_at else 0
    return {
        "job_id": flight.job_id,
        "queue": flight.job.queue,
        "task": flight.task,
        "attempt": flight.job.counts.attempt,
        "took_ms": round(took * 1000),
        "trace_id": flight.options.trace_id or None,
    }
