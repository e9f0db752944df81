"""Runs one attempt and says how it ended. Knows nothing of leases, queues or the store."""

from __future__ import annotations

import asyncio
import contextvars
import ctypes
import inspect
import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from functools import lru_cache
from typing import Any, Final, NamedTuple

from rota.client import Rota
from rota.context import Context, Reporter, deadline_in
from rota.core.codec import Body, UndecodableRecord, decode_body, encode_error, encode_result
from rota.core.job import DEFAULT_OPTIONS, Counts, JobRecord, JobRef
from rota.core.outcome import kinds_of, moment_after, next_attempt, record_error
from rota.core.states import JobState
from rota.errors import Cancel, InvalidArguments, PayloadTooLarge, PermanentError, Snooze, UnknownTask
from rota.failures import FailureHandler
from rota.tasks import Task
from rota.worker.resources import Resources

Runnable = Task[Any, Any, Any] | FailureHandler
MAX_THREADS: Final = 10_000
_POSITIONAL: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_END: Final = object()


class Assignment(NamedTuple):
    """An attempt to be made, as the supervisor hands it over."""

    queue: str
    run: str
    claim: str
    counts: Counts
    record: bytes
    timeout_ms: int | None


class HandlerStopped(BaseException):
    """Raised inside a handler's thread that is to stop."""


class Outcome(NamedTuple):
    """How an attempt ended: a word, and what the report of it needs."""

    kind: str  # completed | failed | snoozed | cancelled | stopped
    fields: tuple[Any, ...] = ()


class Attempt:
    """One attempt in flight: its context, and the way to stop it."""

    def __init__(self, assignment: Assignment) -> None:
        self.assignment = assignment
        self.context: Context | None = None
        self.thread: StoppableCall | None = None
        self.is_stopping = False
        self.has_begun = False
        self._task: asyncio.Task[Any] | None = None

    def stop(self) -> None:
        """Asks the handler to stop: a coroutine is cancelled, a thread gets an exception at its next line."""
        self.is_stopping = True
        if self.context is not None:
            self.context.cancel()
        if self.thread is not None:
            self.thread.interrupt()
        elif self.has_begun and self._task is not None:
            # A task that is cancelled before its first step never runs at all, and could not say that it has ended.
            self._task.cancel()

    def run_on(self, task: asyncio.Task[Any] | None) -> None:
        """Says which task of the loop carries the attempt."""
        self._task = task


class Executor:
    """Calls handlers, on the loop, in threads, or inline where the whole process is for one job."""

    def __init__(
        self, rota: Rota, *, inline: bool, reporter_for: Callable[[Assignment], Reporter], state: Any = None
    ) -> None:
        self._rota = rota
        self._inline = inline
        self._reporter_for = reporter_for
        self._state = state
        self._resources = Resources()
        self._threads = ThreadPoolExecutor(max_workers=MAX_THREADS, thread_name_prefix="rota-handler")

    async def attempt(self, attempt: Attempt) -> Outcome:
        """Runs the handler and classifies what came of it."""
        attempt.has_begun = True
        if attempt.is_stopping:
            return Outcome("stopped")
        assignment = attempt.assignment
        try:
            body = decode_body(assignment.run, assignment.record)
        except UndecodableRecord as error:
            rule = DEFAULT_OPTIONS.keep.rule(JobState.FAILED)
            return Outcome("failed", ("final", rule, encode_error(record_error(error, kind="permanent"))))
        try:
            result = encode_result(await self._call(attempt, body))
            if len(result) > self._rota.max_payload:
                raise PayloadTooLarge(f"the result of task {body.task!r}", len(result), self._rota.max_payload)
        except asyncio.CancelledError as error:
            return Outcome("stopped") if attempt.is_stopping else self._failed(body, assignment, error)
        except HandlerStopped:
            return Outcome("stopped")
        except Snooze as snooze:
            return Outcome("snoozed", (moment_after(snooze.seconds),))
        except Cancel as cancel:
            return Outcome("cancelled", (cancel.reason,))
        except BaseException as error:
            # Whatever a handler raises, SystemExit and KeyboardInterrupt included, is how its attempt ended: the
            # runner itself goes on for the other jobs.
            return self._failed(body, assignment, error)
        terms = f"{body.options.keep.rule(JobState.COMPLETED)} {body.task}"
        return Outcome("completed", (terms, result))

    async def close(self) -> None:
        """Cleans up what providers made for the process."""
        await self._resources.close()

    async def _call(self, attempt: Attempt, body: Body) -> Any:
        task = self._rota.tasks.find(body.task)
        args, kwargs = task.signature.decode(body.arguments)
        context = attempt.context = self._context(attempt.assignment, body)
        async with AsyncExitStack() as stack:
            filled = await self._resources.provide(task.signature.dependencies, context, stack)
            bound = _bind(task, filled, args, kwargs)

            async def run() -> Any:
                return await self._run(task, attempt, bound)

            for middleware in reversed(self._rota.middleware):
                run = _around(middleware.attempt, context, run)
            return _storable(task, await run())

    async def _run(self, task: Runnable, attempt: Attempt, call: Callable[[], Any]) -> Any:
        if inspect.iscoroutinefunction(task.function):
            return await call()
        if self._inline:
            return call()
        # The thread sees the context variables that middleware and providers set.
        attempt.thread = StoppableCall(contextvars.copy_context(), call)
        if attempt.is_stopping:
            raise HandlerStopped
        try:
            return await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._threads, attempt.thread))
        finally:
            attempt.thread = None  # what comes after the handler is stopped as any coroutine is

    def _context(self, assignment: Assignment, body: Body) -> Context:
        record = JobRecord(
            ref=JobRef(assignment.queue, body.id, assignment.run), task=body.task, state=JobState.PROCESSING,
            arguments=body.arguments, options=body.options, counts=assignment.counts, enqueued_at=body.enqueued_at,
            claim=assignment.claim,
        )  # fmt: skip
        fence = int(assignment.claim.partition(".")[0])
        deadline = deadline_in(assignment.timeout_ms)
        return Context(
            record, reporter=self._reporter_for(assignment), fence=fence, deadline=deadline, state=self._state
        )

    def _failed(self, body: Body, assignment: Assignment, error: BaseException) -> Outcome:
        # Arguments that do not fit, and a task that is not there, will be no better next time.
        is_hopeless = isinstance(error, InvalidArguments | UnknownTask | PayloadTooLarge | _Unstorable)
        when = (
            "final"
            if is_hopeless
            else next_attempt(body.options, assignment.counts, kinds_of(error), random.random(), error)
        )
        kind = "permanent" if is_hopeless or isinstance(error, PermanentError) else "exception"
        return Outcome(
            "failed", (when, body.options.keep.rule(JobState.FAILED), encode_error(record_error(error, kind=kind)))
        )


class StoppableCall:
    """A call in a thread that can be interrupted from outside, at its next line of Python."""

    def __init__(self, context: contextvars.Context, call: Callable[[], Any]) -> None:
        self._context = context
        self._call = call
        self._lock = threading.Lock()
        self._thread: int | None = None
        self._is_interrupted = False

    def __call__(self) -> Any:
        """Runs the call; whoever stops it afterwards stops nothing else."""
        thread = threading.get_ident()
        with self._lock:
            if self._is_interrupted:
                raise HandlerStopped
            self._thread = thread
        try:
            return self._context.run(self._call)
        finally:
            with self._lock:
                # An interruption that came too late must not hit what this thread does next.
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), None)
                self._thread = None

    def interrupt(self) -> None:
        """Raises HandlerStopped in the thread, if it is still at it, or when it comes to it."""
        with self._lock:
            self._is_interrupted = True
            if self._thread is not None:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(self._thread), ctypes.py_object(HandlerStopped)
                )


class _Unstorable(Exception):
    """A result that cannot be written down."""


def _storable(task: Runnable, value: Any) -> Any:
    try:
        encode_result(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise _Unstorable(f"task {task.name!r} succeeded, but its result cannot be stored: {error}") from error
    return value


def _bind(task: Runnable, filled: dict[str, Any], args: list[Any], kwargs: dict[str, Any]) -> Callable[[], Any]:
    # What is filled in before or between parameters that are passed by position has to be passed by position, too.
    given, ordered = iter(args), list[Any]()
    for name in _places(task.function):
        if name in filled:
            ordered.append(filled.pop(name))
        elif (value := next(given, _END)) is not _END:
            ordered.append(value)
        else:
            break
    ordered += given
    return lambda: task.function(*ordered, **filled, **kwargs)


@lru_cache(maxsize=1_000)
def _places(function: Callable[..., Any]) -> list[str]:
    """The parameters that can be passed by position."""
    parameters = inspect.signature(function).parameters
    return [name for name, parameter in parameters.items() if parameter.kind in _POSITIONAL]


def _around(attempt: Callable[..., Any], context: Context, run: Callable[[], Any]) -> Callable[[], Any]:
    async def wrapped() -> Any:
        return await attempt(context, run)

    return wrapped
