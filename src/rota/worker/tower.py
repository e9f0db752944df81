"""Decides what becomes of each flight: who runs it, when it must stop, and what is reported of its end.

What the store, the runners and the clock say meets here. No I/O of its own: it hands jobs to the pool and reports to
the desk.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from typing import Any, Final

import msgspec

from rota.core.codec import UndecodableRecord, decode_body, encode_error
from rota.core.job import DEFAULT_OPTIONS, ErrorRecord
from rota.core.outcome import next_attempt, record_error
from rota.core.states import JobState
from rota.store.store import Cancelled, Claimed, Completed, Failed, Lost, Report, Returned, Snoozed
from rota.worker.flights import Flight, Flights
from rota.worker.pool import Pool, RunnerProcess

logger = logging.getLogger("rota.worker")

#: A handler that has been told to stop gets this long; then its runner is retired.
STOP_PATIENCE_S: Final = 5.0
#: Other handlers on a runner that must go get this long to finish.
RETIRE_BOUND_S: Final = 30.0


class Tower:
    """Control of one worker's flights."""

    def __init__(self, flights: Flights, pool: Pool, *, app: str, report: Callable[[str, Report], None]) -> None:
        self._flights = flights
        self._pool = pool
        self._app = app
        self._report_to_desk = report
        self._calendar_changed = asyncio.Event()
        self._something_landed = asyncio.Event()
        self.tasks: dict[str, dict[str, Any]] = {}
        self.handlers: dict[str, dict[str, Any]] = {}
        self.finished = 0
        #: Is told of every attempt that has ended, where somebody counts them.
        self.watch: Callable[[Flight, Report], None] | None = None

    # --- jobs come in ------------------------------------------------------------------------------------------

    def take(self, job: Claimed) -> None:
        """A claimed job gets a runner, or, where nobody could run it, becomes a dead letter."""
        try:
            body = decode_body(job.run, job.record)
        except UndecodableRecord as error:
            self._refuse(Flight(job, None), record_error(error, kind="permanent"))
            return
        flight = Flight(job, body)
        task = self.tasks.get(body.task) or self.handlers.get(body.task)
        if task is None:
            known = ", ".join(sorted(self.tasks)) or "none"
            message = f"no task is called {body.task!r} in {self._app}, which declares: {known}"
            self._refuse(flight, ErrorRecord(kind="permanent", type="UnknownTask", message=message))
            return
        older = self._flights.add(flight)
        if older is not None:
            self.stop(older, "lost")
        runner = flight.runner = self._pool.runner_for("process" if task["run_in"] == "process" else "loop")
        runner.flights[flight.key] = flight
        counts = msgspec.structs.astuple(job.counts)
        runner.say(["run", job.queue, job.run, job.claim, counts, job.record, body.options.timeout_ms])
        if runner.is_ready:
            self._started(flight)

    def _refuse(self, flight: Flight, error: ErrorRecord) -> None:
        self._flights.add(flight)
        logger.error("%s: %s", flight.job_id, error.message, extra=fields_of(flight))
        rule = (flight.body.options if flight.body else DEFAULT_OPTIONS).keep.rule(JobState.FAILED)
        self._report(flight, Failed(flight.job.run, flight.job.claim, "final", rule, encode_error(error)))

    def _started(self, flight: Flight) -> None:
        assert flight.body is not None
        now = flight.started_at = flight.progressed_at = asyncio.get_running_loop().time()
        options = flight.body.options
        if options.timeout_ms is not None:
            self._remind(now + options.timeout_ms / 1000, flight, "timeout")
        if options.progress_timeout_ms is not None:
            self._remind(now + options.progress_timeout_ms / 1000, flight, "progress")

    # --- what runners say --------------------------------------------------------------------------------------

    def hear(self, runner: RunnerProcess, message: list[Any]) -> None:
        """A runner is ready, or one of its handlers has come further, or has ended."""
        word = message[0]
        if word == "done":
            flight = runner.flights.pop((message[1], message[2], message[3]), None)
            if flight is not None:
                runner.done += 1
                self._land(flight, message[4], message[5:])
                self._after_landing(runner)
        elif word == "progress":
            flight = runner.flights.get((message[1], message[2], message[3]))
            if flight is not None:
                flight.progressed_at = asyncio.get_running_loop().time()
        elif word == "hello":
            for flight in runner.flights.values():
                self._started(flight)

    def bury(self, runner: RunnerProcess) -> None:
        """A runner is gone, and with it, for sure, every handler it had."""
        for flight in runner.flights.values():
            if flight.stop_reason is None and not runner.is_ready:
                self._report(flight, Returned(flight.job.run, flight.job.claim, "unstarted"))
            else:
                self._land(flight, "vanished", [])
        runner.flights.clear()

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
        assert runner is not None
        if runner.kind == "process":
            runner.kill()
        else:
            runner.say(["stop", *flight.key])
            self._remind(asyncio.get_running_loop().time() + STOP_PATIENCE_S, flight, "ignored")

    def stop_claim(self, queue: str, run: str, claim: str, reason: str) -> None:
        """The same, for the flight that this claim owns."""
        flight = self._flights.by_key.get((queue, run, claim))
        if flight is not None:
            self.stop(flight, reason)

    def _give_up_on(self, flight: Flight) -> None:
        """The handler did not stop. Its runner gets no more jobs, and is killed when the others have finished."""
        runner = flight.runner
        assert runner is not None
        if not runner.is_retired:
            logger.warning("%s does not stop: its runner is retired", flight.job_id, extra=fields_of(flight))
            self._pool.retire(runner)
        self._remind(asyncio.get_running_loop().time() + RETIRE_BOUND_S, flight, "kill")
        self._after_landing(runner)

    async def keep_calendar(self) -> None:
        """For ever: does what the calendar says, when it says."""
        loop = asyncio.get_running_loop()
        while True:
            self._calendar_changed.clear()
            for flight, what in self._flights.due(loop.time()):
                self._act(flight, what)
            until = self._flights.next_reminder()
            try:
                async with asyncio.timeout_at(until):
                    await self._calendar_changed.wait()
            except TimeoutError:
                continue  # something is due

    def _act(self, flight: Flight, what: str) -> None:
        assert flight.body is not None
        assert flight.runner is not None
        match what:
            case "timeout":
                self.stop(flight, "timeout")
            case "progress":
                allowed = (flight.body.options.progress_timeout_ms or 0) / 1000
                if asyncio.get_running_loop().time() - flight.progressed_at >= allowed:
                    self.stop(flight, "progress")
                else:
                    self._remind(flight.progressed_at + allowed, flight, "progress")
            case "ignored":
                self._give_up_on(flight)
            case _:
                for other in flight.runner.flights.values():
                    other.stop_reason = other.stop_reason or "retired"
                flight.runner.kill()

    def _remind(self, at: float, flight: Flight, what: str) -> None:
        first = self._flights.next_reminder()
        self._flights.remind(at, flight, what)
        if first is None or at < first:
            self._calendar_changed.set()

    # --- landing -----------------------------------------------------------------------------------------------

    def _land(self, flight: Flight, kind: str, fields: list[Any]) -> None:
        """A handler has ended: decides what is reported of it."""
        run, claim = flight.job.run, flight.job.claim
        match kind:
            case "failed" if flight.stop_reason in ("shutdown", "retired"):
                # It was cut off by us, and made an error of its own of it.
                self._land_stopped(flight, kind)
            case "completed":
                self._report(flight, Completed(run, claim, *fields))
                logger.debug("%s completed", flight.job_id, extra=fields_of(flight))
            case "failed":
                self._report(flight, Failed(run, claim, *fields))
                then = "for good" if fields[0] == "final" else "and will be tried again"
                logger.warning("%s failed %s", flight.job_id, then, extra=fields_of(flight))
            case "snoozed":
                self._report(flight, Snoozed(run, claim, *fields))
            case "cancelled":
                self._report(flight, Cancelled(run, claim, *fields))
            case _:
                self._land_stopped(flight, kind)

    def _land_stopped(self, flight: Flight, kind: str) -> None:
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
                self._flights.settle(flight.key)
                self._something_landed.set()
                logger.warning("%s was stopped: its lease was lost", flight.job_id, extra=fields_of(flight))
            case _ if kind == "vanished":
                self._report(flight, Lost(run, claim))
                logger.warning("%s: its runner died", flight.job_id, extra=fields_of(flight))
            case _:
                error = ErrorRecord(type="CancelledError", message="the handler cancelled itself")
                self._report(flight, self._failure(flight, error, ["CancelledError"]))

    def _timed_out(self, flight: Flight) -> Report:
        assert flight.body is not None
        options = flight.body.options
        if flight.stop_reason == "progress":
            message = f"made no progress for {(options.progress_timeout_ms or 0) / 1000:g} s and was stopped"
        else:
            message = f"ran for more than {(options.timeout_ms or 0) / 1000:g} s and was stopped"
        error = ErrorRecord(kind="timeout", type="Timeout", message=message)
        return self._failure(flight, error, ["Timeout", "TimeoutError", "Exception"])

    def _failure(self, flight: Flight, error: ErrorRecord, kinds: list[str]) -> Report:
        assert flight.body is not None
        options = flight.body.options
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


def fields_of(flight: Flight) -> dict[str, Any]:
    """What a log record says of a flight, under the names used everywhere."""
    took = asyncio.get_running_loop().time() - flight.started_at if flight.started_at else 0
    return {
        "job_id": flight.job_id,
        "queue": flight.job.queue,
        "task": flight.body.task if flight.body else "",
        "attempt": flight.job.counts.attempt,
        "took_ms": round(took * 1000),
        "trace_id": (flight.body.options.trace_id or None) if flight.body else None,
    }
