"""What users put around every enqueue and every attempt."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from rota.context import Context
    from rota.core.attempts import Vanished
    from rota.tasks import Call

T = TypeVar("T")

#: What every `Rota` made from now on has around its own. For what instruments a program from outside.
AMBIENT: Final[list[Middleware]] = []


class Middleware:
    """Base class: override what you need. Middleware of a `Rota` is applied in the order given, outermost first."""

    async def enqueue(self, call: Call[Any]) -> Call[Any]:
        """Sees a call before it is stored. May return another one, or raise to refuse it."""
        return call

    async def store(self, calls: Sequence[Call[Any]], run: Callable[[Sequence[Call[Any]]], Awaitable[T]]) -> T:
        """Goes around the storing of calls that are enqueued together: `return await run(calls)` in the middle.

        All of them have passed `enqueue` by then. What `run` returns, jobs or a workflow, is to be passed on.
        """
        return await run(calls)

    async def attempt(self, context: Context, run: Callable[[], Awaitable[Any]]) -> Any:
        """Goes around an attempt: `return await run()` in the middle. What it raises counts as the handler's."""
        return await run()

    async def vanished(self, attempt: Vanished) -> None:
        """Hears of an attempt that `attempt` could not see the end of: its process, or its whole worker, was killed.

        Called in another process of the program, once in nearly all cases: again where that one was killed as well.
        """

    def serve(self, app: Any) -> Any:
        """Goes around the HTTP API, where there is one: takes an ASGI application and returns one."""
        return app


def is_heedful(middleware: Sequence[Middleware]) -> bool:
    """True when one of them wants to hear of attempts that vanished."""
    return any(type(one).vanished is not Middleware.vanished for one in middleware)


async def wrap_enqueue(middleware: Middleware, call: Call[Any]) -> Call[Any]:
    """The call as this middleware lets it through."""
    return await middleware.enqueue(call)


def wrap_store(
    middleware: Sequence[Middleware], run: Callable[[Sequence[Call[Any]]], Awaitable[T]]
) -> Callable[[Sequence[Call[Any]]], Awaitable[T]]:
    """`run` with what every middleware puts around it, the first outermost."""
    for one in reversed(middleware):
        run = partial(one.store, run=run)
    return run
