"""Settings of the namespace."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from rota.server.schemas.common import RequestBody, ResponseBody

Milliseconds = Annotated[int, Field(ge=0, le=24 * 3_600_000)]


class SettingsResponse(ResponseBody):
    """The durations in force."""

    #: Grows with each change; 0 if none was made.
    version: int
    changed_at: str | None
    lease_ms: int
    heartbeat_ms: int
    poll_ms: int
    grace_ms: int
    #: Names of those that are not the defaults.
    set: list[str]


class ChangeSettings(RequestBody):
    """Durations to set. What is missing stays; null restores the default."""

    lease_ms: Milliseconds | None = None
    heartbeat_ms: Milliseconds | None = None
    poll_ms: Milliseconds | None = None
    grace_ms: Milliseconds | None = None
