"""The faults of the fault-injection suite by name, and how a fault is journalled."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from tests.crash.chaos_arena import Arena
from tests.crash.journal import now_ns

Fault = Callable[[Arena], Awaitable[None]]
FAULTS: Final[dict[str, Fault]] = {}
#: Longer than a lease, so that others run the jobs meanwhile; and shorter.
FREEZES_S: Final = (0.3, 6.0)


def fault(function: Fault) -> Fault:
    """Lists a fault under its name."""
    FAULTS[function.__name__] = function
    return function


@asynccontextmanager
async def journalled(arena: Arena, name: str, pids: Sequence[int] = (), **data: Any) -> AsyncGenerator[None]:
    """Journals a fault that lasts. Without `pids` it hits all processes."""
    start = now_ns()
    arena.journal.write("fault", name=name, pids=list(pids), **data)
    try:
        yield
    finally:
        arena.journal.write("fault_over", name=name, pids=list(pids), since=start)
