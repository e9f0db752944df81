"""Logging in and out, and the log of who changed what."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated, Any, Final

import msgspec
from fastapi import APIRouter, Query, Request, Response

from rota.server import shapes
from rota.server.access import Identity, Session, forget_cookie, set_cookie
from rota.server.problems import Problem
from rota.server.schemas.access import AuditAnswer, LogIn, SessionAnswer
from rota.server.schemas.base import Done
from rota.server.tokens import access_store
from rota.server.visits import Admin, Server, Viewer, reply

router = APIRouter(tags=["access"])

VERSION: Final = version("rota")


@router.post("/api/session", status_code=201, response_model=SessionAnswer)
async def log_in(request: Request, body: LogIn) -> Response:
    """Open a session with a token: it is kept in a cookie that scripts cannot read."""
    server: Server = request.app.state.rota_server
    if server.settings.auth != "tokens":
        raise Problem(409, "no_sessions", "there is nothing to log in to: GET /api/session says how callers are known")
    identity, session, cookie = await server.gate.log_in(request, body.token)
    response = reply(_session(server, identity, session), 201)
    set_cookie(request, response, cookie)
    return response


@router.get("/api/session", response_model=SessionAnswer)
async def show_session(visit: Viewer) -> Response:
    """Who asks, what they may do, and what belongs into X-CSRF-Token."""
    server = visit.server
    session = await server.gate.session(visit.request) if server.settings.auth == "tokens" else None
    return reply(_session(server, visit.identity, session))


@router.delete("/api/session", response_model=Done)
async def log_out(visit: Viewer) -> Response:
    """End the session."""
    await visit.server.gate.log_out(visit.request)
    response = reply({"success": True, "message": "Logged out"})
    forget_cookie(visit.request, response)
    return response


@router.get("/api/audit", response_model=AuditAnswer)
async def list_changes(
    visit: Admin,
    cursor: Annotated[str | None, Query(max_length=50)] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Response:
    """Changes that were made over HTTP, the latest first: who, what, before, after."""
    visit.check_unlimited("the audit log")
    found = await (await access_store(visit.rota)).changes(before=cursor, limit=limit)
    entries: list[dict[str, Any]] = []
    seen: set[str] = set()
    for entry_id, encoded in found:
        entry: dict[str, Any] = msgspec.json.decode(encoded)
        token = entry.pop("token", entry_id)
        if token not in seen:  # else its writer sent it twice
            entries.append({"id": entry_id, "at": shapes.exact_moment(int(entry_id.partition("-")[0])), **entry})
        seen.add(token)
    following = found[-1][0] if len(found) == limit else None
    return reply({"success": True, "entries": entries, "cursor": following})


def _session(server: Server, identity: Identity, session: Session | None) -> dict[str, Any]:
    auth = server.settings.auth
    return {
        "success": True,
        "auth": "host" if callable(auth) else auth,
        "name": identity.name,
        "role": identity.role,
        "queues": identity.queues,
        "csrf": session.csrf if session is not None else None,
        "version": VERSION,
    }
