"""Login and the session of a caller."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from rota.server.schemas.common import RequestBody, ResponseBody, RoleName


class LogIn(RequestBody):
    """A token to open a session with."""

    token: Annotated[str, Field(max_length=200)]


class SessionResponse(ResponseBody):
    """The authenticated caller."""

    #: "host": a function of the host application authenticates callers.
    auth: Literal["tokens", "none", "host"]
    name: str
    role: RoleName
    #: Empty: all queues.
    queues: list[str]
    #: Value for the header X-CSRF-Token of every change; null without a session.
    csrf: str | None
    version: str
    #: Address of a trace, with {trace_id} as placeholder; null if not configured.
    trace_url: str | None
