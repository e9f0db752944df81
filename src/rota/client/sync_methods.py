"""`_sync` methods, derived from the async ones: `result_sync = sync_method(result)`."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from rota.client.session import HasSessions, sessions_of

S = TypeVar("S", bound=HasSessions)
P = ParamSpec("P")
R = TypeVar("R")


def sync_method(method: Callable[Concatenate[S, P], Coroutine[Any, Any, R]]) -> Callable[Concatenate[S, P], R]:
    """Returns a method that runs `method` on the background loop and returns its result, or raises its error.

    It has the same parameters, also for `inspect.signature` and type checkers.
    """
    name = method.__name__

    @wraps(method)
    def run_sync(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        coroutine: Coroutine[Any, Any, R] = getattr(self, name)(*args, **kwargs)  # a subclass may override it
        return sessions_of(self).run_sync(coroutine)

    run_sync.__name__ = f"{name}_sync"
    run_sync.__qualname__ = f"{method.__qualname__}_sync"
    run_sync.__doc__ = f"`{name}`, for code that is not async."
    return run_sync
