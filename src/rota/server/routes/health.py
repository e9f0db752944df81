"""Whether this server, and the store behind it, can be used. For load balancers: nobody has to log in."""

from __future__ import annotations

import asyncio
from importlib.metadata import version
from typing import Final

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse

from rota.errors import StoreUnavailable
from rota.prometheus import CONTENT_TYPE, exposition
from rota.server.schemas.watching import Health
from rota.server.visits import Server, Viewer, reply

router = APIRouter(tags=["health"])

#: A store that takes longer is one that does not answer.
PATIENCE_S: Final = 2.0
VERSION: Final = version("rota")


@router.get("/healthz", response_model=Health)
async def healthz(request: Request) -> Response:
    """The server runs, and the store answers."""
    server: Server = request.app.state.rota_server
    await _in_time(server.rota.views.now())
    return reply({"success": True, "status": "ok", "version": VERSION})


@router.get("/readyz", response_model=Health)
async def readyz(request: Request) -> Response:
    """Requests can be served: the store answers, and holds a format that this version knows."""
    server: Server = request.app.state.rota_server
    await _in_time(server.rota.check())
    await _in_time(server.rota.views.now())
    return reply({"success": True, "status": "ok", "version": VERSION})


@router.get(
    "/metrics",
    response_class=PlainTextResponse,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Prometheus' text."}},
)
async def metrics(visit: Viewer) -> Response:
    """What Prometheus scrapes: the store's own figures, the same from every server."""
    visit.check_unlimited("a scrape")
    return Response(await exposition(visit.rota), media_type=CONTENT_TYPE)


async def _in_time(asked: object) -> None:
    try:
        async with asyncio.timeout(PATIENCE_S):
            await asked  # type: ignore[misc]
    except TimeoutError as error:
        raise StoreUnavailable(f"the store has not answered within {PATIENCE_S:g} s") from error
