"""API tokens."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from rota.server.schemas.common import QueueName, RequestBody, ResponseBody, RoleName


class ApiToken(ResponseBody):
    """An API token, without its secret."""

    id: str
    name: str
    role: RoleName
    #: Empty: all queues.
    queues: list[str]
    #: Tasks that it may run; empty: all, or those of its queues.
    tasks: list[str]
    created_at: str
    #: Null for a token of the command line.
    created_by: str | None
    expires_at: str | None
    last_used: str | None
    is_expired: bool


class NewApiToken(RequestBody):
    """A token to create."""

    role: RoleName
    name: Annotated[str, Field(max_length=100)] = ""
    queues: Annotated[list[QueueName], Field(default_factory=list, max_length=100)]
    tasks: Annotated[list[str], Field(default_factory=list, max_length=100)]
    #: Lifetime in seconds; by default it does not expire.
    expires_s: Annotated[float, Field(ge=1, le=100 * 366 * 86400, allow_inf_nan=False)] | None = None


class ApiTokenResponse(ResponseBody):
    """A new token. Its secret cannot be shown again."""

    secret: str
    token: ApiToken


class ApiTokensResponse(ResponseBody):
    """All tokens, oldest first."""

    tokens: list[ApiToken]
