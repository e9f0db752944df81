"""Bulk operation endpoints: start, list, show and cancel."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from rota.errors import OperationNotFound
from rota.server import serializers, start_bulk_operations_in_background
from rota.server.auth.api_tokens import Role
from rota.server.http.idempotency_key import IdempotentRoute
from rota.server.http.problem_responses import Problem
from rota.server.request_context_and_permissions import Operator, RequestContext, Viewer, json_response
from rota.server.schemas.bulk_operations import NewOperation, OperationResponse, OperationsResponse
from rota.store.bulk_operation_records import OperationInfo

router = APIRouter(route_class=IdempotentRoute, tags=["operations"])

OperationId = Annotated[str, Path(max_length=64, json_schema_extra={"pattern": "^[0-9a-f]{16}$"})]


@router.post("/api/operations", status_code=202, response_model=OperationResponse)
async def start_operation(context: Operator, body: NewOperation) -> Response:
    """Cancels, deletes, redrives or updates all matching jobs, or the named jobs. With `dry_run` it only counts them.

    The operation runs in the background, and continues if this server stops. Deleting all matching jobs requires the
    admin role. Named jobs that no longer exist, or whose state does not allow the action, are skipped.
    """
    if body.action == "delete" and body.jobs is None and not context.identity.role.covers(Role.ADMIN):
        role = context.identity.role
        raise Problem(403, "forbidden", f"deleting all matching jobs requires the admin role; your role is {role}")
    info = await start_bulk_operations_in_background.start(
        context,
        body.action,
        body.where,
        body.jobs,
        fields=body.where.fields if body.where is not None else None,
        dry_run=body.dry_run,
        per_second=body.per_second,
        reason=body.reason,
        priority=body.priority,
        delay=body.delay,
    )
    return json_response({"operation": serializers.operation_json(info)}, 202)


@router.get("/api/operations", response_model=OperationsResponse)
async def list_operations(context: Viewer, limit: Annotated[int, Query(ge=1, le=1000)] = 50) -> Response:
    """Lists the latest operations, newest first."""
    found = [info for info in await context.rota.operations.list(limit=limit) if _may_see(context, info)]
    return json_response({"operations": [serializers.operation_json(info) for info in found]})


@router.get("/api/operations/{operation_id}", response_model=OperationResponse)
async def show_operation(context: Viewer, operation_id: OperationId) -> Response:
    """Returns the progress of an operation and its failures."""
    info = await _read(context, operation_id)
    outcome = await context.rota.operations.outcome(operation_id) if info.verb == "redrive" else None
    return json_response({"operation": serializers.operation_json(info, outcome)})


@router.post("/api/operations/{operation_id}/cancel", response_model=OperationResponse)
async def cancel_operation(context: Operator, operation_id: OperationId) -> Response:
    """Stops an operation. Changes already made are kept."""
    before = await _read(context, operation_id)
    await context.rota.operations.stop(operation_id)
    after = await context.rota.operations.get(operation_id)
    await context.audit(
        "cancel", f"operation {operation_id}", before={"state": before.state}, after={"state": after.state}
    )
    return json_response({"operation": serializers.operation_json(after)})


async def _read(context: RequestContext, operation_id: str) -> OperationInfo:
    info = await context.rota.operations.get(operation_id)
    if not _may_see(context, info):
        raise OperationNotFound(operation_id)  # as if it did not exist
    return info


def _may_see(context: RequestContext, info: OperationInfo) -> bool:
    return not context.identity.queues or (bool(info.queues) and all(map(context.identity.may_see, info.queues)))
