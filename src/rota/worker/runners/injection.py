"""Injects the parameters of handlers: the context, and the values of `Depends`, per attempt or per process."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import typing
from collections.abc import Callable
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, Final

from rota.client.context import Context
from rota.client.depends import Provided
from rota.client.task_arguments import InjectedParameter
from rota.worker.runners.plain_functions_of_attempt_in_same_thread import SyncCalls

#: Stands for the value of a context variable that has none.
_UNSET: Final = object()


@dataclass(frozen=True, slots=True)
class _Scope:
    """The values that live as long as an attempt, or as the process."""

    #: Calls the providers that are plain functions: they may block, so they do not run on the event loop.
    calls: SyncCalls
    #: Closes the values.
    stack: AsyncExitStack
    values: dict[Callable[..., Any], Any] = field(default_factory=dict[Callable[..., Any], Any])


class Injector:
    """Calls providers, and keeps the values that live as long as the process."""

    def __init__(self, calls: SyncCalls) -> None:
        self._process = _Scope(calls, AsyncExitStack())
        self._making: dict[Callable[..., Any], asyncio.Lock] = {}

    async def provide(
        self, dependencies: list[InjectedParameter], context: Context, stack: AsyncExitStack, calls: SyncCalls
    ) -> dict[str, Any]:
        """Returns the values for a handler's parameters. Those of the attempt are closed with `stack`."""
        attempt = _Scope(calls, stack)
        values: dict[str, Any] = {}
        for dependency in dependencies:
            if dependency.provides is None:
                values[dependency.name] = context
            else:
                values[dependency.name] = await self._value(dependency.provides, context, attempt)
        return values

    async def close(self) -> None:
        """Closes the values that belong to the process, latest first."""
        await self._process.stack.aclose()
        self._process.values.clear()

    async def _value(self, wanted: Provided, context: Context, scope: _Scope) -> Any:
        """A provider's value. What a value that lives as long as the process depends on is kept as long."""
        if wanted.scope == "attempt" and scope is not self._process:
            return await self._known(wanted.provider, context, scope)
        # Two attempts that need the value at the same moment must not make it twice.
        async with self._making.setdefault(wanted.provider, asyncio.Lock()):
            return await self._known(wanted.provider, context, self._process)

    async def _known(self, provider: Callable[..., Any], context: Context, scope: _Scope) -> Any:
        if provider not in scope.values:
            arguments = {
                name: context if wanted is None else await self._value(wanted, context, scope)
                for name, wanted in _parameters(provider)
            }
            scope.values[provider] = await _make(provider, arguments, scope)
        return scope.values[provider]


@lru_cache(maxsize=1_000)
def _parameters(provider: Callable[..., Any]) -> list[tuple[str, Provided | None]]:
    """The parameters of a provider that are injected, and what provides each; None for the context."""
    hints = typing.get_type_hints(provider) if inspect.isfunction(provider) else {}
    found: list[tuple[str, Provided | None]] = []
    for name, parameter in inspect.signature(provider).parameters.items():
        if hints.get(name) is Context:
            found.append((name, None))
        elif isinstance(parameter.default, Provided):
            found.append((name, parameter.default))
    return found


async def _make(provider: Callable[..., Any], arguments: dict[str, Any], scope: _Scope) -> Any:
    if inspect.isasyncgenfunction(provider):
        return await scope.stack.enter_async_context(asynccontextmanager(provider)(**arguments))
    if inspect.iscoroutinefunction(provider):
        return await provider(**arguments)
    variables = contextvars.copy_context()
    if inspect.isgeneratorfunction(provider):
        return await _enter(contextmanager(provider)(**arguments), scope, variables)
    value = await _call(scope.calls, partial(provider, **arguments), variables)
    return await value if inspect.isawaitable(value) else value


async def _enter(manager: Any, scope: _Scope, variables: contextvars.Context) -> Any:
    """Runs a generator to its `yield`, and the rest of it when the scope ends, in the same thread and context."""

    async def leave(*raised: Any) -> bool | None:
        return await _call(scope.calls, partial(manager.__exit__, *raised), variables)

    try:
        return await _call(scope.calls, manager.__enter__, variables)
    finally:
        # It may have come to its `yield` although the attempt was stopped meanwhile.
        if inspect.getgeneratorstate(manager.gen) == inspect.GEN_SUSPENDED:
            scope.stack.push_async_exit(leave)


async def _call(calls: SyncCalls, function: Callable[[], Any], variables: contextvars.Context) -> Any:
    """Calls a plain function. The context variables that it sets are set for the handler too."""
    try:
        return await calls.run(variables, function)
    finally:
        for variable, value in variables.items():
            if variable.get(_UNSET) is not value:
                variable.set(value)
