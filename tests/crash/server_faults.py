"""Faults of the one server of an arena."""

from __future__ import annotations

import asyncio
import resource
import threading
from contextlib import suppress
from typing import Final

import redis

from tests.crash.chaos_arena import Arena, server_of
from tests.crash.fault_registry import FREEZES_S, fault, journalled
from tests.servers import Server

#: About how long a loading server takes, and how many bytes of its log a command takes.
LOADING_US: Final = 2_000_000
COMMAND_BYTES: Final = 150
CLOCK_KEY: Final = "tests:chaos-clock"
CLOCK_JUMPS_MS: Final = (20_000, -10_000)


@fault
async def kill_server(arena: Arena) -> None:
    """SIGKILL, and a restart on the same data."""
    async with journalled(arena, "kill_server"):
        await asyncio.to_thread(server_of(arena).restart)


@fault
async def freeze_server(arena: Arena) -> None:
    """SIGSTOP: connections stay open, and nothing answers."""
    server = server_of(arena)
    async with journalled(arena, "freeze_server"):
        server.pause()
        try:
            await asyncio.sleep(arena.chance.choice(FREEZES_S))
        finally:
            server.resume()


@fault
async def flush_scripts(arena: Arena) -> None:
    """SCRIPT FLUSH: NOSCRIPT for the next call of each script."""
    arena.journal.write("fault", name="flush_scripts", pids=[])
    await tell(server_of(arena), "SCRIPT", "FLUSH")


@fault
async def kill_clients(arena: Arena) -> None:
    """CLIENT KILL for all connections, those of subscriptions too."""
    arena.journal.write("fault", name="kill_clients", pids=[])
    await tell(server_of(arena), "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    await tell(server_of(arena), "CLIENT", "KILL", "TYPE", "pubsub")


@fault
async def busy_server(arena: Arena) -> None:
    """BUSY: a script of another client does not end until it is killed."""
    server = server_of(arena)
    await tell(server, "CONFIG", "SET", "busy-reply-threshold", "50")
    async with journalled(arena, "busy_server"):
        endless = threading.Thread(target=_run_endless_script, args=(server,))
        endless.start()
        await asyncio.sleep(arena.chance.choice((0.5, 3.0)))
        while endless.is_alive():
            with suppress(redis.RedisError):
                await tell(server, "SCRIPT", "KILL")
            await asyncio.sleep(0.02)


def _run_endless_script(server: Server) -> None:
    with server.client() as client, suppress(redis.RedisError):
        client.connection_pool.connection_kwargs["socket_timeout"] = 30
        client.eval("while true do end", 0)


@fault
async def read_only_server(arena: Arena) -> None:
    """READONLY: the server is demoted to a replica, and promoted again."""
    server = server_of(arena)
    async with journalled(arena, "read_only_server"):
        await tell(server, "REPLICAOF", "127.0.0.1", "1")
        try:
            await asyncio.sleep(arena.chance.choice((0.5, 3.0)))
        finally:
            await tell(server, "REPLICAOF", "NO", "ONE")


@fault
async def loading_server(arena: Arena) -> None:
    """LOADING: after a restart the server answers before it has read its data."""
    server = server_of(arena)
    log_bytes = sum(file.stat().st_size for file in server.dir.rglob("*.aof"))
    server.config["key-load-delay"] = str(max(1, min(200, LOADING_US * COMMAND_BYTES // (log_bytes + 1))))
    async with journalled(arena, "loading_server"):
        try:
            await asyncio.to_thread(server.restart)
        finally:
            del server.config["key-load-delay"]
            await tell(server, "CONFIG", "SET", "key-load-delay", "0")


@fault
async def fill_memory(arena: Arena) -> None:
    """OOM: `maxmemory` is reached, so no enqueue is accepted, and what ends jobs is."""
    server = server_of(arena)
    async with journalled(arena, "fill_memory"):
        await tell(server, "CONFIG", "SET", "maxmemory", "1mb")
        try:
            await asyncio.sleep(arena.chance.choice((0.5, 2.0)))
        finally:
            await tell(server, "CONFIG", "SET", "maxmemory", "0")


@fault
async def fill_disk(arena: Arena) -> None:
    """No byte more fits on the disk: the server refuses writes (MISCONF) until there is room again."""
    server = server_of(arena)
    size = max(file.stat().st_size for file in server.dir.rglob("*.aof"))
    _, most = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
    async with journalled(arena, "fill_disk"):
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (size, most))
        try:
            await asyncio.sleep(arena.chance.choice((1.0, 3.0)))
        finally:
            resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (most, most))


@fault
async def move_server_clock(arena: Arena) -> None:
    """The server's clock jumps: ahead by more than any lease, or back."""
    jump = arena.chance.choice(CLOCK_JUMPS_MS)
    arena.journal.write("fault", name="move_server_clock", pids=[], jump_ms=jump)
    await tell(server_of(arena), "INCRBY", CLOCK_KEY, str(jump))


async def tell(server: Server, *words: str) -> None:
    """Sends one command to the server, from a thread: the proxies live on this loop."""

    def tell() -> None:
        with server.client(retries=100) as client, suppress(redis.ResponseError):
            client.execute_command(*words)

    await asyncio.to_thread(tell)
