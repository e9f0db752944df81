"""API token endpoints: list, create and revoke."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Response

from rota.core.format_iso_time import iso_time, iso_time_or_none
from rota.server.auth.api_tokens import Token, TokenInfo, TokenNotFound, Tokens
from rota.server.auth.authentication import caller_of
from rota.server.http.idempotency_key import AuthenticatedRoute
from rota.server.http.problem_responses import Problem
from rota.server.request_context_and_permissions import Admin, RequestContext, json_response
from rota.server.schemas.api_tokens import ApiTokenResponse, ApiTokensResponse, NewApiToken
from rota.server.schemas.common import MessageResponse

# Not repeatable by an Idempotency-Key: the response with the secret would be stored.
router = APIRouter(route_class=AuthenticatedRoute, tags=["access"])


@router.get("/api/tokens", response_model=ApiTokensResponse)
async def list_tokens(context: Admin) -> Response:
    """Lists the tokens with their scopes, expiry and last use, oldest first. Secrets are not stored."""
    context.check_unlimited("the list of tokens")
    return json_response({"tokens": [_info_json(one) for one in await Tokens(context.rota).list()]})


@router.post("/api/tokens", status_code=201, response_model=ApiTokenResponse)
async def create_token(context: Admin, body: NewApiToken) -> Response:
    """Creates a token. The response has its secret, which cannot be shown again.

    It expires no later than the token of the caller, and has the same rate limits.
    """
    _check_no_scope(context, "creating tokens")
    latest_expiry = await _expiry_of_caller(context)
    secret, token = await Tokens(context.rota).create(
        body.role,
        name=body.name,
        queues=body.queues,
        tasks=body.tasks,
        lifetime_s=body.expires_s,
        limits=context.identity.limits,
        latest_expiry=latest_expiry,
        created_by=caller_of(context.identity, context.request).name,
    )
    after = {"name": token.name, "role": token.role, "queues": token.queues, "tasks": token.tasks}
    await context.audit("create", f"token {token.id}", after=after)
    return json_response({"secret": secret, "token": _token_json(token, last_used=None, is_expired=False)}, 201)


@router.delete("/api/tokens/{token_id}", response_model=MessageResponse)
async def revoke_token(
    context: Admin, token_id: Annotated[str, Path(max_length=64, description="The id in the list of tokens.")]
) -> Response:
    """Revokes a token and ends its sessions. Every server refuses it within seconds."""
    _check_no_scope(context, "revoking tokens")
    try:
        token = await Tokens(context.rota).revoke(token_id)
    except TokenNotFound as error:
        raise Problem(404, "token_not_found", f"there is no token {token_id!r}: GET /api/tokens lists them") from error
    await context.audit("revoke", f"token {token.id}", before={"name": token.name, "role": token.role})
    return json_response({"message": f"token {token.id} of {token.name} is revoked"})


def _check_no_scope(context: RequestContext, action: str) -> None:
    """Refuses a caller limited to some queues or tasks: a new token could do more than its creator."""
    if context.identity.is_limited:
        message = f"{action} requires access to all queues and tasks; this token is limited to some"
        raise Problem(403, "forbidden", message)


async def _expiry_of_caller(context: RequestContext) -> int | None:
    """Returns when the token of the caller expires; None if it does not, or without a token."""
    token_id = context.identity.id
    if not token_id or context.server.settings.auth != "tokens":
        return None
    token = await Tokens(context.rota).get(token_id)
    if token is None:  # a verified token is cached for some seconds
        raise Problem(401, "unauthenticated", "the token is unknown, expired or revoked")
    return token.expires_at


def _info_json(one: TokenInfo) -> dict[str, Any]:
    return _token_json(one, last_used=one.last_used, is_expired=one.is_expired)


def _token_json(one: Token | TokenInfo, *, last_used: int | None, is_expired: bool) -> dict[str, Any]:
    return {
        "id": one.id,
        "name": one.name,
        "role": one.role,
        "queues": one.queues,
        "tasks": one.tasks,
        "created_at": iso_time(one.created_at),
        "created_by": one.created_by or None,
        "expires_at": iso_time_or_none(one.expires_at),
        "last_used": iso_time_or_none(last_used),
        "is_expired": is_expired,
    }
