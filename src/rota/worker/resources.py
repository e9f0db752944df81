"""Fills in what handlers depend on: the context, and what `Depends` provides, for an attempt or for the process."""

from __future__ import annotations

import asyncio
import inspect
import typing
from collections.abc import Callable
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any

from rota.context import Context, Provided
from rota.signature import Dependency


class Resources:
    """The providers' values that live as long as the process."""

    def __init__(self) -> None:
        self._stack = AsyncExitStack()
        self._made: dict[Callable[..., Any], Any] = {}
        self._making: dict[Callable[..., Any], asyncio.Lock] = {}

    async def provide(self, dependencies: list[Dependency], context: Context, stack: AsyncExitStack) -> dict[str, Any]:
        """Values for a handler's own parameters. What belongs to the attempt is cleaned up with `stack`."""
        made: dict[Callable[..., Any], Any] = {}
        values: dict[str, Any] = {}
        for dependency in dependencies:
            if dependency.provides is None:
                values[dependency.name] = context
            else:
                values[dependency.name] = await self._value(dependency.provides, context, stack, made)
        return values

    async def close(self) -> None:
        """Cleans up what belongs to the process, latest first."""
        await self._stack.aclose()
        self._made.clear()

    async def _value(
        self, wanted: Provided, context: Context, stack: AsyncExitStack, made: dict[Callable[..., Any], Any]
    ) -> Any:
        if wanted.scope == "attempt":
            return await self._known(wanted, context, stack, made, known=made, owner=stack)
        # Two attempts that ask at the same moment must not make two of them.
        async with self._making.setdefault(wanted.provider, asyncio.Lock()):
            return await self._known(wanted, context, stack, made, known=self._made, owner=self._stack)

    async def _known(
        self,
        wanted: Provided,
        context: Context,
        stack: AsyncExitStack,
        made: dict[Callable[..., Any], Any],
        *,
        known: dict[Callable[..., Any], Any],
        owner: AsyncExitStack,
    ) -> Any:
        if wanted.provider not in known:
            arguments: dict[str, Any] = {}
            hints = typing.get_type_hints(wanted.provider) if inspect.isfunction(wanted.provider) else {}
            for name, parameter in inspect.signature(wanted.provider).parameters.items():
                if hints.get(name) is Context:
                    arguments[name] = context
                elif isinstance(parameter.default, Provided):
                    arguments[name] = await self._value(parameter.default, context, stack, made)
            known[wanted.provider] = await _make(wanted.provider, arguments, owner)
        return known[wanted.provider]


async def _make(provider: Callable[..., Any], arguments: dict[str, Any], owner: AsyncExitStack) -> Any:
    if inspect.isasyncgenfunction(provider):
        return await owner.enter_async_context(asynccontextmanager(provider)(**arguments))
    if inspect.isgeneratorfunction(provider):
        return owner.enter_context(contextmanager(provider)(**arguments))
    value = provider(**arguments)
    return await value if inspect.isawaitable(value) else value
