"""Runs one attempt and classifies how it ended. Independent of leases, queues and the connection to the store."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import lru_cache, partial
from typing import Any, Final

import msgspec

from rota.client.blob import find_blobs
from rota.client.blob_transfer import StoredBlobReader
from rota.client.context import Context, Reporter, current
from rota.client.failed_attempt import FailedAttempt
from rota.client.failure_handlers import FailureHandler
from rota.client.rota import Rota
from rota.client.session import sessions_of
from rota.client.task_arguments import place_injected
from rota.client.tasks import Task
from rota.core.attempts_from_history import LostAttempt
from rota.core.encrypted_values import decrypt_arguments, encrypt_result, is_encrypted
from rota.core.error_record import class_names, record_error, text_of
from rota.core.ids import JobRef
from rota.core.job_options import DEFAULT_OPTIONS, Keep
from rota.core.job_record import AttemptCounts, ErrorRecord, JobRecord
from rota.core.job_record_codec import FIRST_ATTEMPT, Body, UndecodableRecord, decode_body, encode_error, encode_result
from rota.core.next_attempt_time import TIMEOUT_CLASSES, due_after, next_attempt
from rota.core.state_transitions import JobState
from rota.errors import Cancel, InvalidArguments, PayloadTooLarge, PermanentError, Snooze, Timeout, UnknownTask
from rota.store.report_encoding import Cancelled, Completed, Failed, Snoozed
from rota.worker.runners.error_hooks import ErrorHooks
from rota.worker.runners.injection import Injector
from rota.worker.runners.interruptible_threads import HandlerStopped, StoppableCall, Threads
from rota.worker.runners.main_thread_loop import MainLoop
from rota.worker.runners.plain_functions_of_attempt_in_same_thread import SyncCalls
from rota.worker.runners.protocol import StartAttempt

logger = logging.getLogger("rota.worker")

AttemptReport = Completed | Failed | Snoozed | Cancelled
Runnable = Task[Any, Any, Any] | FailureHandler
_is_coroutine: Final = lru_cache(maxsize=1_000)(inspect.iscoroutinefunction)


class Attempt:
    """One attempt under way: its context, and the way to stop it."""

    __slots__ = (
        "context",
        "failed",
        "has_begun",
        "has_ended",
        "is_stopping",
        "start",
        "stop_note",
        "stop_reason",
        "task",
        "thread",
    )

    def __init__(self, start: StartAttempt) -> None:
        self.start = start
        self.context: Context | None = None
        self.thread: StoppableCall | None = None
        self.is_stopping = False
        #: Why it must stop, as `StopAttempt` has it, and a sentence about it.
        self.stop_reason = ""
        self.stop_note = ""
        self.has_begun = False
        #: The handler and all code around it has ended; error hooks may still run.
        self.has_ended = False
        #: Set when it failed: for error hooks.
        self.failed: FailedAttempt | None = None
        #: The asyncio task that runs it.
        self.task: asyncio.Task[None] | None = None

    @property
    def has_timed_out(self) -> bool:
        """True when it must stop because it exceeded a timeout."""
        return self.stop_reason in ("timeout", "progress")

    def stop(self, reason: str = "", note: str = "") -> None:
        """Asks the handler to stop: a coroutine is cancelled, a thread gets an exception at its next line."""
        if self.has_ended:
            return
        if not self.is_stopping:
            self.is_stopping, self.stop_reason, self.stop_note = True, reason, note
        if self.context is not None:
            self.context.cancel()
        if self.thread is not None:
            self.thread.interrupt()
        elif self.has_begun and self.task is not None:
            # A task that is cancelled before its first step never runs, and would not report its end.
            self.task.cancel()

    async def raising_timeout(self, run: Callable[[], Awaitable[Any]]) -> Any:
        """Awaits `run()`; if that ends because the attempt exceeded a timeout, raises `Timeout`."""
        try:
            return await run()
        except (asyncio.CancelledError, HandlerStopped) as error:
            if not self.has_timed_out:
                raise
            task = asyncio.current_task()
            if task is not None and isinstance(error, asyncio.CancelledError):
                task.uncancel()  # else an `asyncio.timeout` around it would take the cancellation for a pending one
            raise Timeout(self.stop_note) from error


class Executor:
    """Calls handlers: coroutines on the loop, functions in threads, or in the main thread of a process runner."""

    def __init__(
        self,
        rota: Rota,
        *,
        main_loop: MainLoop | None,
        reporter_for: Callable[[StartAttempt], Reporter],
        state: Any = None,
    ) -> None:
        self._rota = rota
        #: Where functions are called, if not in threads: the process runs one job at a time.
        self._main_loop = main_loop
        self._reporter_for = reporter_for
        self._state = state
        self._threads = Threads()
        self._resources = Injector(SyncCalls(self._threads, main_loop))
        self._error_hooks = ErrorHooks(rota, self._threads)

    async def attempt(self, attempt: Attempt) -> AttemptReport | None:
        """Runs the handler; returns the report of how it ended, or None if it was stopped."""
        attempt.has_begun = True
        if attempt.is_stopping:
            return None
        try:
            report = await self._attempt(attempt, attempt.start)
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            # An outcome that cannot be described must still be reported, or the job would have to wait for its lease.
            logger.exception("the outcome of run %s cannot be recorded", attempt.start.run)
            report = unrecordable(attempt.start, error)
        attempt.has_ended = True
        # An error of a handler that had to stop for another reason than a timeout is none of the job's.
        if attempt.failed is not None and (not attempt.stop_reason or attempt.has_timed_out):
            await self._error_hooks.call(attempt.failed)
        return report

    async def _attempt(self, attempt: Attempt, start: StartAttempt) -> AttemptReport | None:
        try:
            body = decode_body(start.run, start.record)
        except UndecodableRecord as error:
            return _failed_for_good(start, error)
        try:
            codec = self._rota.tasks.codec
            if codec is not None or is_encrypted(body.arguments):
                arguments = decrypt_arguments(codec, body.task, body.arguments)
                body = msgspec.structs.replace(body, arguments=arguments)
            result = await self._call(attempt, body)
            if len(result) > self._rota.tasks.max_payload:
                raise PayloadTooLarge(f"the result of task {body.task!r}", len(result), self._rota.tasks.max_payload)
            if codec is not None:
                result = encrypt_result(codec, str(JobRef(start.queue, body.id, start.run)), result)
        except (asyncio.CancelledError, HandlerStopped, Timeout) as error:
            if attempt.has_timed_out:
                attempt.failed = self._timed_out(attempt, body, error)
                return None
            if (attempt.is_stopping and not isinstance(error, Timeout)) or isinstance(error, HandlerStopped):
                return None
            return self._failed(attempt, body, error)
        except Snooze as snooze:
            return Snoozed(start.run, start.claim, due_after(snooze.seconds))
        except Cancel as cancel:
            return Cancelled(start.run, start.claim, text_of(cancel.reason))
        except BaseException as error:
            # Whatever a handler raises, SystemExit and KeyboardInterrupt included, is the outcome of its attempt: the
            # runner itself goes on for the other jobs.
            return self._failed(attempt, body, error)
        return Completed(start.run, start.claim, f"{_retention(body.options.keep)} {body.task}", result)

    async def notify_lost(self, attempt: LostAttempt) -> None:
        """Calls `attempt_lost` of the program's middleware, and the error hooks."""
        for middleware in self._rota.middleware:
            try:
                await middleware.attempt_lost(attempt)
            except Exception:  # the other middleware is called all the same
                logger.exception("%s.attempt_lost failed", type(middleware).__name__)
        error = attempt.error
        if error is not None:
            await self._error_hooks.call(FailedAttempt(error, attempt.job, attempt.will_retry))

    async def close(self) -> None:
        """Closes the middleware, and the values that providers made for the process."""
        await self._error_hooks.close()
        for middleware in self._rota.middleware:
            try:
                await middleware.close()
            except Exception:  # the other middleware is closed all the same
                logger.exception("%s.close failed", type(middleware).__name__)
        await self._resources.close()

    async def _call(self, attempt: Attempt, body: Body) -> bytes:
        """Calls the handler with the record's arguments; returns its encoded result."""
        task = self._rota.tasks.find(body.task)
        args, kwargs = task.signature.decode(body.arguments)
        if task.signature.has_blobs:
            self._bind_blobs(task, args, kwargs, JobRef(attempt.start.queue, body.id, attempt.start.run))
        dependencies, middleware = task.signature.dependencies, self._rota.middleware
        context_of = partial(self._context, attempt.start, body)
        current.set(context_of)  # for this attempt's task alone
        if not dependencies and not middleware:
            return _encoded(task, await self._run(task.function, attempt, args, kwargs))
        context = attempt.context = context_of()
        raised: BaseException | None = None
        result = b""
        async with AsyncExitStack() as stack:
            # The providers, their clean-up and a handler that is a plain function share a thread.
            calls = SyncCalls(self._threads, self._main_loop)
            stack.callback(calls.close)
            try:
                filled = await self._resources.provide(dependencies, context, stack, calls)
                placed, named = place_injected(task.function, filled, args, kwargs)
                run: Callable[[], Any] = partial(self._run, task.function, attempt, placed, named, calls)
                for layer in reversed(middleware):
                    run = partial(layer.attempt, context, partial(attempt.raising_timeout, run))
                result = _encoded(task, await attempt.raising_timeout(run))
            except BaseException as error:
                raised = error
                raise
        if raised is not None:  # a provider suppressed it: it is the outcome all the same
            raise raised
        return result

    def _bind_blobs(self, task: Runnable, args: list[Any], kwargs: dict[str, Any], job: JobRef) -> None:
        """Lets the blobs among the arguments be read: those of the job, or of the job that has failed."""
        if isinstance(task, FailureHandler):
            failed: JobRecord = args[1]
            job = failed.ref
        reader = StoredBlobReader(sessions_of(self._rota), job)
        for blob in find_blobs([args, kwargs]):
            blob.bind(reader)

    async def _run(
        self,
        function: Callable[..., Any],
        attempt: Attempt,
        args: list[Any],
        kwargs: dict[str, Any],
        calls: SyncCalls | None = None,
    ) -> Any:
        if attempt.is_stopping:  # a middleware that calls the handler again does not run it again
            raise HandlerStopped
        if _is_coroutine(function):
            return await function(*args, **kwargs)
        # The function sees the context variables that middleware and providers set.
        context, call = contextvars.copy_context(), partial(function, *args, **kwargs)
        if self._main_loop is not None:
            return await self._main_loop.call(partial(context.run, call))
        attempt.thread = StoppableCall(context, call)
        try:
            if calls is None:
                return await self._threads.run(attempt.thread)
            return await calls.run_stoppable(attempt.thread)
        finally:
            attempt.thread = None  # the code after the handler is stopped as a coroutine

    def _context(self, start: StartAttempt, body: Body) -> Context:
        timeout_ms = body.options.timeout_ms
        return Context(
            _record(start, body),
            reporter=self._reporter_for(start),
            fence=int(start.claim.partition(".")[0]),
            stops_at=None if timeout_ms is None else time.time() + timeout_ms / 1000,
            state=self._state,
        )

    def _timed_out(self, attempt: Attempt, body: Body, error: BaseException) -> FailedAttempt:
        """Describes it for error hooks. The supervisor, which stopped it, reports it."""
        if not isinstance(error, Timeout):
            cause, error = error, Timeout(attempt.stop_note)
            error.__cause__ = cause
        will_retry = next_attempt(body.options, _counts(attempt.start), TIMEOUT_CLASSES, 0.0) != "final"
        return FailedAttempt(error, _record(attempt.start, body), will_retry)

    def _failed(self, attempt: Attempt, body: Body, error: BaseException) -> Failed:
        report = self._failure_report(attempt.start, body, error)
        attempt.failed = FailedAttempt(error, _record(attempt.start, body), report.next_attempt != "final")
        return report

    def _failure_report(self, start: StartAttempt, body: Body, error: BaseException) -> Failed:
        if isinstance(error.__cause__, StopIteration) and str(error) == "coroutine raised StopIteration":
            error = error.__cause__  # which cannot leave a coroutine as it is
        # Wrong arguments and a task that does not exist will fail again.
        if isinstance(error, InvalidArguments | UnknownTask | PayloadTooLarge | _Unstorable):
            return _failed_for_good(start, error, body.options.keep)
        when = next_attempt(body.options, _counts(start), class_names(error), random.random(), error)
        kind = "permanent" if isinstance(error, PermanentError) else "exception"
        retention = body.options.keep.retention(JobState.FAILED)
        return Failed(start.run, start.claim, when, retention, _described(error, kind))


def _record(start: StartAttempt, body: Body) -> JobRecord:
    """The record of the job as it is in this attempt."""
    return JobRecord(
        ref=JobRef(start.queue, body.id, start.run),
        task=body.task,
        state=JobState.PROCESSING,
        arguments=body.arguments,
        options=body.options,
        counts=_counts(start),
        enqueued_at=body.enqueued_at,
        claim=start.claim,
    )


def _failed_for_good(start: StartAttempt, error: BaseException, keep: Keep = DEFAULT_OPTIONS.keep) -> Failed:
    return Failed(start.run, start.claim, "final", keep.retention(JobState.FAILED), _described(error, "permanent"))


def _described(error: BaseException, kind: str) -> bytes:
    """The error as the store keeps it; if it cannot be recorded, no more than its type."""
    try:
        return encode_error(record_error(error, kind=kind))
    except Exception as broken:
        logger.exception("an error cannot be recorded")
        message = f"the error could not be recorded: that raised {type(broken).__name__}"
        return encode_error(ErrorRecord(kind=kind, type=_name_of(error), message=message))


def _name_of(error: BaseException) -> str:
    return ascii(type(error).__name__).strip("'")


def unrecordable(attempt: StartAttempt | AttemptReport, error: BaseException) -> Failed:
    """The report of an outcome that cannot be encoded: it says no more than what certainly can be."""
    message = f"the outcome of the attempt could not be recorded, because of {_name_of(error)}; see the worker's log"
    described = encode_error(ErrorRecord(kind="permanent", type="UnrecordableOutcome", message=message))
    return Failed(attempt.run, attempt.claim, "final", DEFAULT_OPTIONS.keep.retention(JobState.FAILED), described)


def _counts(start: StartAttempt) -> AttemptCounts:
    return AttemptCounts(*start.counts) if start.counts else FIRST_ATTEMPT


@lru_cache(maxsize=100)
def _retention(keep: Keep) -> str:
    return keep.retention(JobState.COMPLETED)


class _Unstorable(Exception):
    """A result that cannot be stored."""


def _encoded(task: Runnable, value: Any) -> bytes:
    try:
        return encode_result(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise _Unstorable(f"task {task.name!r} succeeded, but its result cannot be stored: {error}") from error
