"""Clients for these tests, each with keys of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import redis

from rota import Rota
from tests.client.manual_worker import Hand
from tests.servers import Server


@pytest.fixture
def on_each(server: Server) -> Server:
    """Asked for by tests that run on Valkey and on Redis."""
    return server


@pytest.fixture
def home_server(request: pytest.FixtureRequest) -> Server:
    """The server of this test's client: each in turn if the test asks for `on_each`, else Valkey."""
    chosen: Server = request.getfixturevalue("server" if "on_each" in request.fixturenames else "valkey")
    return chosen


@pytest.fixture
def raw(home_server: Server) -> Iterator[redis.Redis]:
    """A plain client, to look at what is stored."""
    with home_server.client() as client:
        yield client


@pytest.fixture
async def rota(home_server: Server, namespace: str) -> AsyncIterator[Rota]:
    """A client with an empty namespace."""
    rota = Rota(home_server.url, namespace=namespace)
    yield rota
    await rota.close()


@pytest.fixture
async def hand(rota: Rota) -> AsyncIterator[Hand]:
    """A worker driven by the test."""
    hand = Hand(rota)
    yield hand
    await hand.close()
