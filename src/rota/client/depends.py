"""`Depends`: marks a parameter of a handler whose value the worker injects."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar, overload

T = TypeVar("T")

_ONE: Final = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.KEYWORD_ONLY,
)

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
    _check_provider(provider)
    return Provided(provider, scope)


def is_context(annotation: Any) -> bool:
    """True for the context's type, by its name: `from __future__ import annotations` makes it a text."""
    name = annotation if isinstance(annotation, str) else getattr(annotation, "__qualname__", "")
    return name.rpartition(".")[2] == "Context"


def _check_provider(provider: Callable[..., Any]) -> None:
    """Raises TypeError for a provider that the worker could not call."""
    name = getattr(provider, "__qualname__", repr(provider))
    code = getattr(provider, "__code__", None)
    if code is not None and code.co_filename == contextmanager.__code__.co_filename:
        raise TypeError(
            f"Depends({name}) would inject a context manager: remove the decorator, a provider may yield its value"
        )
    try:
        parameters = inspect.signature(provider).parameters.values()
    except ValueError:
        return  # a builtin that does not tell its parameters
    for parameter in parameters:
        is_injected = inspect.isfunction(provider) and is_context(parameter.annotation)
        if parameter.kind in _ONE and parameter.default is inspect.Parameter.empty and not is_injected:
            raise TypeError(
                f"Depends({name}): nothing provides its parameter {parameter.name!r}: give it a default, such as "
                "Depends(…), or wrap the provider in a function without it"
            )
