"""Logging in and out, and the log of who changed what."""

from __future__ import annotations

from collections.abc import AsyncIterator
from importlib.metadata import version
from typing import Annotated, Any, Final

import msgspec
from fastapi import APIRouter, Query, Request, Response

from rota.core.job import checked_time_ms
from rota.core.shapes import exact_moment
from rota.server.access import Identity, Session, forget_cookie, set_cookie
from rota.server.enqueueing import read_time
from rota.server.problems import Problem
from rota.server.schemas.access import AuditAnswer, LogIn, SessionAnswer
from rota.server.schemas.base import Done
from rota.server.tokens import access_store
from rota.server.visits import Admin, Server, Viewer, reply
from rota.store.access import AccessStore

router = APIRouter(tags=["access"])

VERSION: Final = version("rota")
#: Entries of the log that one read brings, and reads that one page takes at most.
AUDIT_PAGE: Final = 250
AUDIT_LOOKS: Final = 10


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
    who: Annotated[str | None, Query(max_length=200)] = None,
    action: Annotated[str | None, Query(max_length=50, description="As cancel, pause, purge.")] = None,
    target: Annotated[str | None, Query(max_length=300, description="Only what mentions it: a job, a queue …")] = None,
    since: Annotated[str | None, Query(max_length=64, description="At this time or later.")] = None,
    until: Annotated[str | None, Query(max_length=64, description="Before this time.")] = None,
) -> Response:
    """Changes that were made over HTTP, the latest first: who, what, before, after."""
    visit.check_unlimited("the audit log")
    first = checked_time_ms(read_time(since, "since"), "since") if since is not None else 0
    last = checked_time_ms(read_time(until, "until"), "until") if until is not None else None
    # An id begins with its time, so that the latest wanted is found by it.
    before = cursor or (f"{last}-0" if last is not None else None)
    asked = {name: value for name, value in (("who", who), ("action", action)) if value is not None}
    entries: list[dict[str, Any]] = []
    async for entry in _changes(await access_store(visit.rota), before):
        if entry is None or entry["ms"] < first:
            return reply({"success": True, "entries": entries, "cursor": None})
        before, ms = entry["id"], entry.pop("ms")
        if all(entry[name] == value for name, value in asked.items()) and (target or "") in entry["target"]:
            entries.append({**entry, "at": exact_moment(ms)})
            if len(entries) == limit:
                break
    return reply({"success": True, "entries": entries, "cursor": before})


async def _changes(store: AccessStore, before: str | None) -> AsyncIterator[dict[str, Any] | None]:
    """Entries of the log, the latest first, up to a bound; None at the end of the log."""
    seen: set[str] = set()
    for _ in range(AUDIT_LOOKS):
        found = await store.changes(before=before, limit=AUDIT_PAGE)
        for before, encoded in found:  # the next page goes on behind the last of this one
            entry: dict[str, Any] = msgspec.json.decode(encoded)
            token = entry.pop("token", before)
            if token not in seen:  # else its writer sent it twice
                yield {"id": before, "ms": int(before.partition("-")[0]), **entry}
            seen.add(token)
        if len(found) < AUDIT_PAGE:
            yield None
            return


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
        "trace_url": server.settings.trace_url,
    }
