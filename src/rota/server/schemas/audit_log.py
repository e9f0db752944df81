"""The audit log."""

from __future__ import annotations

from typing import Any

from rota.server.schemas.common import ResponseBody, RoleName


class AuditEntry(ResponseBody):
    """A login or a change, and its caller."""

    id: str
    at: str
    who: str
    #: Null for a login that failed.
    role: RoleName | None
    #: Address of the client, or of the proxy in front of the server; host name of a command. Null for a unix socket.
    source: str | None
    action: str
    target: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class AuditResponse(ResponseBody):
    """Changes, latest first."""

    entries: list[AuditEntry]
    cursor: str | None
