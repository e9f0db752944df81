"""What users put around every enqueue and every attempt."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rota.context import Context
    from rota.tasks import Call


class Middleware:
    """Base class: override what you need. Middleware of a `Rota` is applied in the order given, outermost first."""

    async def enqueue(self, call: Call[Any]) -> Call[Any]:
        """Sees a call before it is stored. May return another one, or raise to refuse it."""
        return call

    async def attempt(self, context: Context, run: Callable[[], Awaitable[Any]]) -> Any:
        """Goes around an attempt: `return await run()` in the middle. What it raises counts as the handler's."""
        return await run()


async def wrap_enqueue(middleware: Middleware, call: Call[Any]) -> Call[Any]:
    """The call as this middleware lets it through."""
    return await middleware.enqueue(call)
