"""Runs one attempt and says how it ended. Knows nothing of leases, queues or the store."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import random
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import lru_cache, partial
from typing import Any, Final

from rota.client import Rota
from rota.context import Context, Reporter, current
from rota.core.attempts import Vanished
from rota.core.codec import FIRST_ATTEMPT, Body, UndecodableRecord, decode_body, encode_error, encode_result
from rota.core.job import DEFAULT_OPTIONS, Counts, JobRecord, JobRef, Keep
from rota.core.outcome import kinds_of, moment_after, next_attempt, record_error
from rota.core.states import JobState
from rota.errors import Cancel, InvalidArguments, PayloadTooLarge, PermanentError, Snooze, UnknownTask
from rota.failures import FailureHandler
from rota.tasks import Task
from rota.worker.resources import Resources
from rota.worker.threads import HandlerStopped, StoppableCall, Threads
from rota.worker.wire import Cancelled, Completed, Ended, Failed, Run, Snoozed, Stopped

logger = logging.getLogger("rota.worker")

Runnable = Task[Any, Any, Any] | FailureHandler
_POSITIONAL: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_END: Final = object()
_is_coroutine: Final = lru_cache(maxsize=1_000)(inspect.iscoroutinefunction)


class Attempt:
    """One attempt in flight: its context, and the way to stop it."""

    __slots__ = ("context", "has_begun", "is_stopping", "order", "task", "thread")

    def __init__(self, order: Run) -> None:
        self.order = order
        self.context: Context | None = None
        self.thread: StoppableCall | None = None
        self.is_stopping = False
        self.has_begun = False
        #: The task of the loop that carries it.
        self.task: asyncio.Task[None] | None = None

    def stop(self) -> None:
        """Asks the handler to stop: a coroutine is cancelled, a thread gets an exception at its next line."""
        self.is_stopping = True
        if self.context is not None:
            self.context.cancel()
        if self.thread is not None:
            self.thread.interrupt()
        elif self.has_begun and self.task is not None:
            # A task that is cancelled before its first step never runs at all, and could not say that it has ended.
            self.task.cancel()


class Executor:
    """Calls handlers, on the loop, in threads, or inline where the whole process is for one job."""

    def __init__(self, rota: Rota, *, inline: bool, reporter_for: Callable[[Run], Reporter], state: Any = None) -> None:
        self._rota = rota
        self._inline = inline
        self._reporter_for = reporter_for
        self._state = state
        self._resources = Resources()
        self._threads = Threads()

    async def attempt(self, attempt: Attempt) -> Ended:
        """Runs the handler and classifies what came of it."""
        attempt.has_begun = True
        order = attempt.order
        if attempt.is_stopping:
            return Stopped(order.flight)
        try:
            body = decode_body(order.run, order.record)
        except UndecodableRecord as error:
            return _hopeless(order, error)
        try:
            result = await self._call(attempt, body)
            if len(result) > self._rota.max_payload:
                raise PayloadTooLarge(f"the result of task {body.task!r}", len(result), self._rota.max_payload)
        except asyncio.CancelledError as error:
            return Stopped(order.flight) if attempt.is_stopping else self._failed(body, order, error)
        except HandlerStopped:
            return Stopped(order.flight)
        except Snooze as snooze:
            return Snoozed(order.flight, moment_after(snooze.seconds))
        except Cancel as cancel:
            return Cancelled(order.flight, cancel.reason)
        except BaseException as error:
            # Whatever a handler raises, SystemExit and KeyboardInterrupt included, is how its attempt ended: the
            # runner itself goes on for the other jobs.
            return self._failed(body, order, error)
        return Completed(order.flight, f"{_rule(body.options.keep)} {body.task}", result)

    async def tell(self, attempt: Vanished) -> None:
        """Tells the program's middleware of an attempt that could not end itself."""
        for one in self._rota.middleware:
            try:
                await one.vanished(attempt)
            except Exception:  # what one of them makes of it is no reason not to tell the others
                logger.exception("%s could not be told of an attempt that vanished", type(one).__name__)

    async def close(self) -> None:
        """Cleans up what providers made for the process."""
        await self._resources.close()

    async def _call(self, attempt: Attempt, body: Body) -> bytes:
        """Calls the handler as the record says; what it returned, as it is stored."""
        task = self._rota.tasks.find(body.task)
        args, kwargs = task.signature.decode(body.arguments)
        dependencies, middleware = task.signature.dependencies, self._rota.middleware
        context_of = partial(self._context, attempt.order, body)
        current.set(context_of)  # for this attempt's task alone
        if not dependencies and not middleware:
            return _encoded(task, await self._run(task.function, attempt, args, kwargs))
        context = attempt.context = context_of()
        async with AsyncExitStack() as stack:
            filled = await self._resources.provide(dependencies, context, stack)
            placed, named = _place(task.function, filled, args, kwargs)
            run: Callable[[], Any] = partial(self._run, task.function, attempt, placed, named)
            for one in reversed(middleware):
                run = partial(one.attempt, context, run)
            return _encoded(task, await run())

    async def _run(
        self, function: Callable[..., Any], attempt: Attempt, args: list[Any], kwargs: dict[str, Any]
    ) -> Any:
        if _is_coroutine(function):
            return await function(*args, **kwargs)
        if self._inline:
            return function(*args, **kwargs)
        # The thread sees the context variables that middleware and providers set.
        attempt.thread = StoppableCall(contextvars.copy_context(), partial(function, *args, **kwargs))
        if attempt.is_stopping:
            raise HandlerStopped
        try:
            return await self._threads.run(attempt.thread)
        finally:
            attempt.thread = None  # what comes after the handler is stopped as any coroutine is

    def _context(self, order: Run, body: Body) -> Context:
        record = JobRecord(
            ref=JobRef(order.queue, body.id, order.run), task=body.task, state=JobState.PROCESSING,
            arguments=body.arguments, options=body.options, counts=_counts(order), enqueued_at=body.enqueued_at,
            claim=order.claim,
        )  # fmt: skip
        timeout_ms = body.options.timeout_ms
        return Context(
            record,
            reporter=self._reporter_for(order),
            fence=int(order.claim.partition(".")[0]),
            stops_at=None if timeout_ms is None else time.time() + timeout_ms / 1000,
            state=self._state,
        )

    def _failed(self, body: Body, order: Run, error: BaseException) -> Failed:
        # Arguments that do not fit, and a task that is not there, will be no better next time.
        if isinstance(error, InvalidArguments | UnknownTask | PayloadTooLarge | _Unstorable):
            return _hopeless(order, error, body.options.keep)
        when = next_attempt(body.options, _counts(order), kinds_of(error), random.random(), error)
        kind = "permanent" if isinstance(error, PermanentError) else "exception"
        return Failed(
            order.flight, when, body.options.keep.rule(JobState.FAILED), encode_error(record_error(error, kind=kind))
        )


def _hopeless(order: Run, error: BaseException, keep: Keep = DEFAULT_OPTIONS.keep) -> Failed:
    return Failed(
        order.flight, "final", keep.rule(JobState.FAILED), encode_error(record_error(error, kind="permanent"))
    )


def _counts(order: Run) -> Counts:
    return Counts(*order.counts) if order.counts else FIRST_ATTEMPT


@lru_cache(maxsize=100)
def _rule(keep: Keep) -> str:
    return keep.rule(JobState.COMPLETED)


class _Unstorable(Exception):
    """A result that cannot be written down."""


def _encoded(task: Runnable, value: Any) -> bytes:
    try:
        return encode_result(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise _Unstorable(f"task {task.name!r} succeeded, but its result cannot be stored: {error}") from error


def _place(
    function: Callable[..., Any], filled: dict[str, Any], args: list[Any], kwargs: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    # What is filled in before or between parameters that are passed by position has to be passed by position, too.
    given, ordered = iter(args), list[Any]()
    for name in _places(function):
        if name in filled:
            ordered.append(filled.pop(name))
        elif (value := next(given, _END)) is not _END:
            ordered.append(value)
        else:
            break
    return [*ordered, *given], {**filled, **kwargs}


@lru_cache(maxsize=1_000)
def _places(function: Callable[..., Any]) -> list[str]:
    """The parameters that can be passed by position."""
    parameters = inspect.signature(function).parameters
    return [name for name, parameter in parameters.items() if parameter.kind in _POSITIONAL]
