"""The API as a program reaches it: requests through the ASGI application, on a real store."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from fastapi import FastAPI

from rota import Rota
from rota.server import create_app
from tests.client.hands import Hand
from tests.server.api import Api, open_api
from tests.servers import Server


@pytest.fixture
async def rota(valkey: Server, namespace: str) -> AsyncIterator[Rota]:
    """A client with an empty namespace, which declares no task: as of a server without a program."""
    rota = Rota(valkey.url, namespace=namespace)
    yield rota
    await rota.close()


@pytest.fixture
def app(rota: Rota) -> FastAPI:
    """The API for everybody on this machine."""
    return create_app(rota, auth="none")


@pytest.fixture
async def api(app: FastAPI) -> AsyncIterator[Api]:
    """Speaks to it."""
    async with open_api(app) as api:
        yield api


@pytest.fixture
def guarded(rota: Rota) -> FastAPI:
    """The API for those who have a token."""
    return create_app(rota)


@pytest.fixture
async def hand(rota: Rota) -> AsyncIterator[Hand]:
    """A worker driven by the test."""
    hand = Hand(rota)
    yield hand
    await hand.close()
