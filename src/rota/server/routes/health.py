"""Health endpoints for load balancers and orchestrators. They need no authentication."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from importlib.metadata import version
from typing import Final

from fastapi import APIRouter, Request, Response

from rota.client.session import session_of
from rota.errors import StoreUnavailable
from rota.server.request_context_and_permissions import Server, json_response
from rota.server.schemas.health import HealthResponse

router = APIRouter(tags=["health"])

#: A store that takes longer counts as unavailable.
STORE_TIMEOUT_S: Final = 2.0
VERSION: Final = version("rota")


@router.get("/healthz", response_model=HealthResponse)
async def healthz(request: Request) -> Response:
    """Checks that the server runs and the store answers."""
    server: Server = request.app.state.rota_server
    await _within_timeout(session_of(server.rota).views.now())
    return json_response({"status": "ok", "version": VERSION})


@router.get("/readyz", response_model=HealthResponse)
async def readyz(request: Request) -> Response:
    """Checks that the store answers and that this version supports its storage format."""
    server: Server = request.app.state.rota_server
    await _within_timeout(server.rota.check())
    await _within_timeout(session_of(server.rota).views.now())
    return json_response({"status": "ok", "version": VERSION})


async def _within_timeout(check: Awaitable[object]) -> None:
    try:
        async with asyncio.timeout(STORE_TIMEOUT_S):
            await check
    except TimeoutError as error:
        raise StoreUnavailable(f"the store has not answered within {STORE_TIMEOUT_S:g} s") from error
