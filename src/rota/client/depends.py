"""`Depends`: marks a parameter of a handler whose value the worker injects."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, overload

T = TypeVar("T")


Scope = Literal["attempt", "worker"]


@dataclass(frozen=True, slots=True)
class Provided:
    """The default of a parameter that the worker injects: the value that `provider` gives."""

    provider: Callable[..., Any]
    scope: Scope


@overload
def Depends(provider: Callable[..., AsyncIterator[T]], *, scope: Scope = ...) -> T: ...


@overload
def Depends(provider: Callable[..., Iterator[T]], *, scope: Scope = ...) -> T: ...


@overload
def Depends(provider: Callable[..., Awaitable[T]], *, scope: Scope = ...) -> T: ...


@overload
def Depends(provider: Callable[..., T], *, scope: Scope = ...) -> T: ...


def Depends(provider: Callable[..., Any], *, scope: Scope = "attempt") -> Any:  # noqa: N802, it reads as a type does
    """Marks a parameter that the worker injects: the value that `provider` returns, or yields before it cleans up.

    `async def handler(order: int, db: Database = Depends(open_database, scope="worker"))`. Scope "attempt" creates one
    value for each attempt, "worker" one for each process. A provider may itself have `Depends` and `Context`
    parameters. Callers must not pass such a parameter: enqueue rejects it.

    A provider that is a plain function may block: it runs in a thread of the attempt, together with its clean-up and a
    handler that is a plain function. One that needs the running event loop must be `async def`.
    """
    if not callable(provider):
        raise TypeError(f"Depends takes a function, not {provider!r}")
    if scope not in ("attempt", "worker"):
        raise TypeError(f"scope is attempt or worker, not {scope!r}")
    return Provided(provider, scope)
