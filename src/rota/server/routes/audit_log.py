"""Audit log endpoint: logins and changes, with their callers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any, Final

import msgspec
from fastapi import APIRouter, Query, Response

from rota.core.format_iso_time import iso_time
from rota.core.job_options import checked_time_ms
from rota.server.auth.api_tokens import http_server_store
from rota.server.enqueue_requests import read_time
from rota.server.request_context_and_permissions import Admin, json_response
from rota.server.schemas.audit_log import AuditResponse
from rota.store.http_server_state import HttpServerStore

router = APIRouter(tags=["access"])


#: Audit entries per read, and the maximum number of reads per page.
AUDIT_PAGE: Final = 250
AUDIT_READS: Final = 10


@router.get("/api/audit", response_model=AuditResponse)
async def list_changes(
    context: Admin,
    cursor: Annotated[str | None, Query(max_length=50)] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    who: Annotated[str | None, Query(max_length=200)] = None,
    action: Annotated[str | None, Query(max_length=50, description="An action such as cancel, pause or purge.")] = None,
    target: Annotated[
        str | None, Query(max_length=300, description="Only targets that contain this text: a job, a queue …")
    ] = None,
    since: Annotated[str | None, Query(max_length=64, description="At this time or later.")] = None,
    until: Annotated[str | None, Query(max_length=64, description="Before this time.")] = None,
) -> Response:
    """Lists logins and changes, latest first: caller, source, action, target, values before and after.

    A full log loses the oldest entry of the caller that has the most.
    """
    context.check_unlimited("the audit log")
    first = checked_time_ms(read_time(since, "since"), "since") if since is not None else 0
    last = checked_time_ms(read_time(until, "until"), "until") if until is not None else None
    # An id begins with its time, so `until` is a position in the log.
    before = cursor or (f"{last}-0" if last is not None else None)
    filters = {name: value for name, value in (("who", who), ("action", action)) if value is not None}
    entries: list[dict[str, Any]] = []
    async for entry in _changes(await http_server_store(context.rota), before):
        if entry is None or entry["ms"] < first:
            return json_response({"entries": entries, "cursor": None})
        before, ms = entry["id"], entry.pop("ms")
        if all(entry[name] == value for name, value in filters.items()) and (target or "") in entry["target"]:
            entries.append({**entry, "at": iso_time(ms)})
            if len(entries) == limit:
                break
    return json_response({"entries": entries, "cursor": before})


async def _changes(store: HttpServerStore, before: str | None) -> AsyncIterator[dict[str, Any] | None]:
    """Yields entries of the log, latest first, up to a bound; None at the end of the log."""
    seen: set[str] = set()
    for _ in range(AUDIT_READS):
        found = await store.audit_entries(before=before, limit=AUDIT_PAGE)
        for before, encoded in found:  # the next read continues after the last entry
            entry: dict[str, Any] = msgspec.json.decode(encoded)
            token = entry.pop("token", before)
            if token not in seen:  # an entry may have been written twice
                yield {"id": before, "ms": int(before.partition("-")[0]), **entry}
            seen.add(token)
        if len(found) < AUDIT_PAGE:
            yield None
            return
