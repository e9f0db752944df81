"""The Sentinel client when roles change: which server its connections lead to, in whatever order answers arrive."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from rota.store.redis.address import parse_address
from rota.store.redis.connection import Disconnected
from rota.store.redis.retrying_client import RedisClient
from rota.store.redis.sentinel import SentinelServer
from tests.eventually import eventually
from tests.servers import OwnServers, Server
from tests.store.scripted_sentinel import ScriptedSentinel


@pytest.fixture
def two(own_server: OwnServers) -> tuple[Server, Server]:
    """Two servers that both are primaries, as during a failover that cut one off."""
    return own_server(tcp=True), own_server(tcp=True)


@asynccontextmanager
async def client_of(sentinel: ScriptedSentinel) -> AsyncGenerator[RedisClient]:
    client = RedisClient(parse_address(sentinel.url), patience=30)
    try:
        yield client
    finally:
        await client.close()


@asynccontextmanager
async def server_of(url: str) -> AsyncGenerator[SentinelServer]:
    server = SentinelServer(parse_address(url))
    try:
        yield server
    finally:
        await server.close()


def urls(one: ScriptedSentinel, other: ScriptedSentinel) -> str:
    """The URL of a service with two sentinels."""
    return one.url.replace("/shop", f",{other.url.removeprefix('redis+sentinel://')}")


async def port_of(client: RedisClient) -> int:
    """The server that a call reaches now."""
    (reply,) = await client.commands([["INFO", "server"]])
    return int(reply.decode().partition("tcp_port:")[2].split()[0])


async def test_a_server_that_became_a_replica_is_left_once_another_one_is_named(two: tuple[Server, Server]) -> None:
    old, new = two
    async with ScriptedSentinel(old) as sentinel, client_of(sentinel) as client:
        assert await port_of(client) == old.port
        with old.client() as raw:
            raw.execute_command("REPLICAOF", "127.0.0.1", str(new.port))
        writing = asyncio.create_task(client.commands([["SET", "key", "value"]]))
        await eventually(lambda: sentinel.subscribers == 1)
        assert not writing.done(), "the old one refuses writes, and no other is named"

        sentinel.name(new)

        await writing
        with new.client() as raw:
            assert raw.get("key") == b"value"


async def test_an_announcement_moves_all_connections(two: tuple[Server, Server]) -> None:
    old, new = two
    async with ScriptedSentinel(old) as sentinel, client_of(sentinel) as client:
        assert await port_of(client) == old.port
        await eventually(lambda: sentinel.subscribers == 1)

        sentinel.announce(new)

        async def is_moved() -> bool:
            return await port_of(client) == new.port

        await eventually(is_moved)


async def test_an_answer_that_arrives_late_does_not_lead_back(two: tuple[Server, Server]) -> None:
    """Each of two sentinels makes the client look up the primary. The older answer arrives last."""
    old, new = two
    async with ScriptedSentinel(old) as one, ScriptedSentinel(old) as other, server_of(urls(one, other)) as server:
        node = await server.find("")
        await node.connect()
        await eventually(lambda: one.subscribers == other.subscribers == 1)
        one.is_holding = other.is_holding = True
        one.announce(old)
        await eventually(lambda: len(one.held) == len(other.held) == 1)
        one.is_holding = other.is_holding = False
        one.name(new)
        other.announce(new)
        await eventually(lambda: node.shared is None)
        connection = await node.connect()
        before = one.asked
        one.held[0].set()
        other.held[0].set()
        one.announce(new)  # handled after the late answer
        await eventually(lambda: one.asked > before)

        assert connection.is_open


async def test_a_connection_opened_before_an_announcement_is_not_used(two: tuple[Server, Server]) -> None:
    """A sentinel names the old primary for the first connection, then announces the next, to which others connect."""
    old, new = two
    async with ScriptedSentinel(old) as sentinel, server_of(sentinel.url) as server:
        sentinel.is_holding = True
        node = await server.find("")
        connecting = asyncio.create_task(node.connect())
        await eventually(lambda: sentinel.subscribers == 1 and len(sentinel.held) == 2)
        sentinel.is_holding = False
        sentinel.held[1].set()
        sentinel.announce(new)
        before = sentinel.asked
        await eventually(lambda: sentinel.asked > before)
        async with node.dedicated(0):
            sentinel.held[0].set()

            with pytest.raises(Disconnected):
                await connecting
