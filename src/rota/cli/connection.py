"""Connects a command to the store, and runs its coroutine."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from rota.cli.common_options import Settings
    from rota.client.rota import Rota


T = TypeVar("T")


#: Seconds that a command waits for an unavailable server: long enough for a restart, short for a wrong address.
PATIENCE_S: Final = 3.0


@asynccontextmanager
async def connected(settings: Settings) -> AsyncGenerator[Rota]:
    """Yields a client for one command, after checking the storage format."""
    from rota.client.rota import Rota

    async with Rota(settings.url, namespace=settings.namespace or "rota", patience=PATIENCE_S) as rota:
        await rota.check()
        yield rota


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs the coroutine of a command. Ctrl-C cancels it."""
    import asyncio

    return asyncio.run(coroutine)
