"""Middleware: hooks around every enqueue, every attempt and the HTTP API."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from rota.client.context import Context
    from rota.client.failed_attempt import FailedAttempt
    from rota.client.tasks import Call
    from rota.core.attempts_from_history import LostAttempt

T = TypeVar("T")

#: Middleware of every `Rota` that is created from now on, outside its own. For instrumentation of a whole program.
AMBIENT: Final[list[Middleware]] = []


class Middleware:
    """Base class: override what you need. Middleware of a `Rota` is applied in the order given, outermost first."""

    async def enqueue(self, call: Call[Any]) -> Call[Any]:
        """Receives a call before it is stored. May return another one, or raise to refuse it."""
        return call

    async def store(self, calls: Sequence[Call[Any]], run: Callable[[Sequence[Call[Any]]], Awaitable[T]]) -> T:
        """Wraps the storing of calls that are enqueued together: `return await run(calls)` in the middle.

        All of them have passed `enqueue` by then. The result of `run`, jobs or a workflow, has to be returned.
        """
        return await run(calls)

    async def attempt(self, context: Context, run: Callable[[], Awaitable[Any]]) -> Any:
        """Wraps an attempt: `return await run()` in the middle. An error raised here counts as the handler's.

        A handler that exceeded its timeout raises `Timeout` here; one that must stop for another reason, such as the
        cancellation of its job, raises asyncio.CancelledError, or a BaseException if it runs in a thread.
        """
        return await run()

    async def attempt_lost(self, attempt: LostAttempt) -> None:
        """Called for an attempt whose process, or whole worker, was killed, so that `attempt` did not return.

        Runs in another process of the program, once in nearly all cases: again if that process is killed as well.
        """

    async def on_error(self, failed: FailedAttempt) -> None:
        """Called for every failed attempt, after `attempt` or `attempt_lost`. See `Rota.on_error`."""

    async def close(self) -> None:
        """Called when a process that runs handlers ends, after its last attempt. Not when it is killed."""

    def serve(self, app: Any) -> Any:
        """Wraps the HTTP API: takes an ASGI application and returns one."""
        return app


def wants_lost_attempts(middleware: Sequence[Middleware]) -> bool:
    """True when one of them overrides `attempt_lost` or `on_error`."""
    return any(type(one).attempt_lost is not Middleware.attempt_lost for one in middleware) or bool(
        with_on_error(middleware)
    )


def with_on_error(middleware: Sequence[Middleware]) -> list[Middleware]:
    """Returns those that override `on_error`."""
    return [one for one in middleware if type(one).on_error is not Middleware.on_error]


def wrap_store(
    middleware: Sequence[Middleware], run: Callable[[Sequence[Call[Any]]], Awaitable[T]]
) -> Callable[[Sequence[Call[Any]]], Awaitable[T]]:
    """Returns `run` wrapped in the `store` of every middleware, the first outermost."""
    for one in reversed(middleware):
        run = partial(one.store, run=run)
    return run
