"""Waiting for what another process, thread or task brings about: with a deadline, and without long sleeps."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Final, NoReturn, TypeVar, cast

T = TypeVar("T")
STEP_SECONDS: Final = 0.01


async def eventually(predicate: Callable[[], Awaitable[T]] | Callable[[], T], timeout: float = 30) -> T:
    """Waits until `predicate()`, async or not, is true, and returns what it gave.

    A predicate may also assert: an AssertionError means "not yet". Any other error ends the wait at once.
    """
    deadline = time.monotonic() + timeout
    while True:
        last: object
        try:
            last = predicate()
            if inspect.isawaitable(last):
                async with asyncio.timeout_at(
                    asyncio.get_running_loop().time() + max(0.0, deadline - time.monotonic())
                ):
                    last = await last
            if last:
                return cast(T, last)
        except AssertionError as error:
            last = error
        except TimeoutError as error:
            if time.monotonic() < deadline:
                raise
            last = error
        if time.monotonic() >= deadline:
            _give_up(predicate, timeout, last)
        await asyncio.sleep(STEP_SECONDS)


def eventually_sync(predicate: Callable[[], T], timeout: float = 30) -> T:
    """The same for a test without an event loop."""
    deadline = time.monotonic() + timeout
    while True:
        last: object
        try:
            last = value = predicate()
            if value:
                return value
        except AssertionError as error:
            last = error
        if time.monotonic() >= deadline:
            _give_up(predicate, timeout, last)
        time.sleep(STEP_SECONDS)


def _give_up(predicate: Callable[[], object], timeout: float, last: object) -> NoReturn:
    try:
        what = inspect.getsource(predicate).strip()
    except (OSError, TypeError):  # a builtin or a partial has no source
        what = repr(predicate)
    cause = last if isinstance(last, BaseException) else None
    said = f"{type(cause).__name__}: {cause}" if cause else repr(last)
    raise AssertionError(f"not true within {timeout:g} s:\n    {what}\nlast: {said}") from cause
