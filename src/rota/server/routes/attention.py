"""Attention endpoints: acknowledge and snooze findings."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Response

from rota.client.session import checked_session
from rota.core.health.acknowledgement import Acknowledgement
from rota.core.health.finding import Finding
from rota.server import serializers
from rota.server.auth.authentication import caller_of
from rota.server.http.idempotency_key import IdempotentRoute
from rota.server.http.problem_responses import Problem
from rota.server.request_context_and_permissions import Operator, RequestContext, json_response
from rota.server.routes.overview import may_acknowledge
from rota.server.schemas.health import Acknowledge, AcknowledgeResponse

router = APIRouter(route_class=IdempotentRoute, tags=["overview"])

Key = Annotated[str, Path(max_length=300, description="The key of a finding in the overview.")]


@router.post("/api/attention/{key}/acknowledge", response_model=AcknowledgeResponse)
async def acknowledge_finding(context: Operator, key: Key, body: Acknowledge | None = None) -> Response:
    """Acknowledges a finding: it no longer counts for the verdict until it ends or gets worse.

    With `snooze_s` only for that time. `note` says what is being done.
    """
    finding = await _find(context, key)
    body = body or Acknowledge()
    now = await _now(context)
    acknowledged = Acknowledgement(
        by=caller_of(context.identity, context.request).name,
        at=now,
        note=body.note,
        until=None if body.snooze_s is None else now + round(body.snooze_s * 1000),
        level=finding.level,
    )
    return await _store(context, key, acknowledged)


@router.delete("/api/attention/{key}/acknowledge", response_model=AcknowledgeResponse)
async def take_acknowledgement_back(context: Operator, key: Key) -> Response:
    """Takes an acknowledgement back: the finding counts for the verdict again."""
    await _find(context, key)
    return await _store(context, key, None)


async def _store(context: RequestContext, key: str, acknowledged: Acknowledgement | None) -> Response:
    server = context.server
    await server.finding_states.get()  # the finding is recorded now, if it was not
    if not await (await checked_session(context.rota)).attention.acknowledge(key, acknowledged):
        raise _missing(key)
    server.finding_states.forget()
    note = {} if acknowledged is None else {"note": acknowledged.note}
    await context.audit("acknowledge" if acknowledged is not None else "unacknowledge", f"finding {key}", after=note)
    body = None if acknowledged is None else serializers.acknowledgement_json(acknowledged)
    return json_response({"key": key, "acknowledged": body})


async def _find(context: RequestContext, key: str) -> Finding:
    for one in await context.server.health.get():
        if one.key == key and may_acknowledge(context, one):
            return one
    raise _missing(key)


async def _now(context: RequestContext) -> int:
    return await (await checked_session(context.rota)).views.now()


def _missing(key: str) -> Problem:
    return Problem(404, "finding_not_found", f"there is no finding {key!r} now: it may have ended")
