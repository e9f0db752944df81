"""Login endpoints: log in, log out, and show the session."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any, Final

from fastapi import APIRouter, Request, Response

from rota.server.auth.authentication import Identity, LoginSession, forget_cookie, set_cookie
from rota.server.http.problem_responses import Problem
from rota.server.request_context_and_permissions import Server, Viewer, json_response
from rota.server.schemas.common import MessageResponse
from rota.server.schemas.login import LogIn, SessionResponse

router = APIRouter(tags=["access"])

VERSION: Final = version("rota")


@router.post("/api/session", status_code=201, response_model=SessionResponse)
async def log_in(request: Request, body: LogIn) -> Response:
    """Opens a session with a token. Its cookie is not readable by scripts."""
    server: Server = request.app.state.rota_server
    if server.settings.auth != "tokens":
        raise Problem(
            409, "no_sessions", "this server has no sessions: GET /api/session shows how callers are authenticated"
        )
    identity, session, cookie = await server.authenticator.log_in(request, body.token)
    response = json_response(_session_json(server, identity, session), 201)
    set_cookie(request, response, cookie)
    return response


@router.get("/api/session", response_model=SessionResponse)
async def show_session(context: Viewer) -> Response:
    """Returns the caller, its role, and the value for the header X-CSRF-Token."""
    server = context.server
    session = await server.authenticator.session(context.request) if server.settings.auth == "tokens" else None
    return json_response(_session_json(server, context.identity, session))


@router.delete("/api/session", response_model=MessageResponse)
async def log_out(context: Viewer) -> Response:
    """Ends the session."""
    await context.server.authenticator.log_out(context.request)
    await context.audit("logout", "session")
    response = json_response({"message": "Logged out"})
    forget_cookie(context.request, response)
    return response


def _session_json(server: Server, identity: Identity, session: LoginSession | None) -> dict[str, Any]:
    auth = server.settings.auth
    return {
        "auth": "host" if callable(auth) else auth,
        "name": identity.name,
        "role": identity.role,
        "queues": identity.queues,
        "csrf": session.csrf if session is not None else None,
        "version": VERSION,
        "trace_url": server.settings.trace_url,
    }
