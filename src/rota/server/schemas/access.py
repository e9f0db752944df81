"""Sessions, and the log of who changed what."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from rota.server.schemas.base import Answer, Asked, RoleName, Yes


class LogIn(Asked):
    """A token, for a session of the dashboard."""

    token: Annotated[str, Field(max_length=200)]


class SessionAnswer(Answer):
    """Who asks, and what they may do."""

    success: Yes
    #: "tokens", "none", or "host" where another application says who it is.
    auth: Literal["tokens", "none", "host"]
    name: str
    role: RoleName
    #: Empty: all of them.
    queues: list[str]
    #: Goes into the header X-CSRF-Token of every change; null where there is no session.
    csrf: str | None
    version: str
    #: Where a trace is looked at, with {trace_id} in place of its id; null where nobody said so.
    trace_url: str | None


class AuditEntry(Answer):
    """A change, and who made it."""

    id: str
    at: str
    who: str
    role: RoleName
    action: str
    target: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class AuditAnswer(Answer):
    """Changes, the latest first."""

    success: Yes
    entries: list[AuditEntry]
    cursor: str | None
