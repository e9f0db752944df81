"""Faults of the connections between one worker and the server."""

from __future__ import annotations

import asyncio

from tests.crash.chaos_arena import Arena
from tests.crash.fault_registry import FREEZES_S, fault, journalled


@fault
async def cut_connections(arena: Arena) -> None:
    """The connections of one worker are closed."""
    _on_link(arena, "cut_connections", "cut")


@fault
async def reset_connections(arena: Arena) -> None:
    """The connections of one worker are reset, with what was on its way."""
    _on_link(arena, "reset_connections", "reset")


@fault
async def lose_replies(arena: Arena) -> None:
    """The server carries out the next calls of one worker, and no reply arrives."""
    if found := arena.any_worker():
        arena.journal.write("fault", name="lose_replies", pids=[found[1].pid])
        arena.proxies[found[0]].lose_replies(arena.chance.choice((1, 3)))


def _on_link(arena: Arena, name: str, method: str) -> None:
    if found := arena.any_worker():
        arena.journal.write("fault", name=name, pids=[found[1].pid])
        getattr(arena.proxies[found[0]], method)()


@fault
async def half_open_connections(arena: Arena) -> None:
    """One worker's connections are gone for the server; the worker notices nothing and gets no reply."""
    if found := arena.any_worker():
        async with journalled(arena, "half_open_connections", [found[1].pid]):
            arena.proxies[found[0]].half_open()
            await asyncio.sleep(1)


@fault
async def black_hole(arena: Arena) -> None:
    """What one worker sends disappears, on old and new connections."""
    if found := arena.any_worker():
        proxy = arena.proxies[found[0]]
        async with journalled(arena, "black_hole", [found[1].pid]):
            proxy.swallow()
            await asyncio.sleep(arena.chance.choice(FREEZES_S))
            proxy.serve()


@fault
async def delay_replies(arena: Arena) -> None:
    """What the server sends to one worker arrives late."""
    if found := arena.any_worker():
        proxy = arena.proxies[found[0]]
        async with journalled(arena, "delay_replies", [found[1].pid]):
            proxy.delay = arena.chance.choice((0.2, 1.7))
            await asyncio.sleep(3)
            proxy.delay = 0.0
