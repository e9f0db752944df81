"""Long computations run in a thread, so that heartbeats, health checks and other requests go on meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

P = ParamSpec("P")
R = TypeVar("R")

#: Items that are computed on the event loop: a thread costs 0.1 ms, and an item at most 0.1 ms.
ITEMS_ON_LOOP: Final = 200
#: Each thread that computes takes the interpreter's lock for 5 ms at a time. Six of them would leave the event loop a
#: turn every 30 ms, so computations of one loop take turns.
_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


async def compute(items: int, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """Returns what the function returns: called directly for few items, and in a thread for many."""
    if items <= ITEMS_ON_LOOP:
        return function(*args, **kwargs)
    return await compute_in_thread(function, *args, **kwargs)


async def compute_in_thread(function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """Calls a function in a thread, after those that were called before. Returns what it returns."""
    async with _turns.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
        return await asyncio.to_thread(function, *args, **kwargs)
