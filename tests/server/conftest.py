"""Fixtures of the HTTP API: requests through the ASGI application, on a real store."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from fastapi import FastAPI

from rota import Rota
from rota.server import create_app
from tests.client.manual_worker import Hand
from tests.server.api import Api, open_api
from tests.servers import Server


@pytest.fixture
async def rota(valkey: Server, namespace: str) -> AsyncIterator[Rota]:
    """A client with an empty namespace and no tasks, as in a server without an application."""
    rota = Rota(valkey.url, namespace=namespace)
    yield rota
    await rota.close()


@pytest.fixture
def app(rota: Rota) -> FastAPI:
    """The API without authentication."""
    return create_app(rota, auth="none")


@pytest.fixture
async def api(app: FastAPI) -> AsyncIterator[Api]:
    """A client of the API."""
    async with open_api(app) as api:
        yield api


@pytest.fixture
def guarded(rota: Rota) -> FastAPI:
    """The API with token authentication."""
    return create_app(rota)


@pytest.fixture
async def hand(rota: Rota) -> AsyncIterator[Hand]:
    """A worker driven by the test."""
    hand = Hand(rota)
    yield hand
    await hand.close()
