"""Operations: one thing done to every job that matches, or was chosen; in the background, counted first, reported."""

from __future__ import annotations

from typing import Annotated, Any, cast

from fastapi import APIRouter, Path, Query, Response

from rota.errors import InvalidOption
from rota.server import operating
from rota.server.answers import KeyedRoute
from rota.server.enqueueing import read_time
from rota.server.filters import Found
from rota.server.problems import Problem
from rota.server.schemas.operations import NewOperation, OperationAnswer, OperationsAnswer, OperationWhere
from rota.server.tokens import Role
from rota.server.visits import Operator, Viewer, Visit, reply
from rota.store.operations import OperationInfo

router = APIRouter(route_class=KeyedRoute, tags=["operations"])

OperationId = Annotated[str, Path(max_length=64, json_schema_extra={"pattern": "^[0-9a-f]{16}$"})]


@router.post("/api/operations", status_code=202, response_model=OperationAnswer)
async def start_operation(visit: Operator, body: NewOperation) -> Response:
    """Cancel, delete, redrive or change every job that matches, or those named. With `dry_run` only count them.

    It goes on in the background, also when this server ends. To delete all that match takes an admin. Of the jobs
    that are named, those that are gone, or in a state that does not allow it, are passed over.
    """
    if body.action == "delete" and body.jobs is None and not visit.identity.role.covers(Role.ADMIN):
        why = f"to delete all jobs that match takes the role admin, and you are {visit.identity.role}"
        raise Problem(403, "forbidden", why)
    where = None if body.where is None else _where(body.where)
    info = await operating.start(
        visit, body.action, where, body.jobs, dry_run=body.dry_run, per_second=body.per_second, reason=body.reason,
        priority=body.priority, delay=body.delay,
    )  # fmt: skip
    return reply({"success": True, "operation": operating.shape(info)}, 202)


@router.get("/api/operations", response_model=OperationsAnswer)
async def list_operations(visit: Viewer, limit: Annotated[int, Query(ge=1, le=1000)] = 50) -> Response:
    """The latest operations, the newest first."""
    found = [info for info in await visit.rota.operations.list(limit=limit) if _may_see(visit, info)]
    return reply({"success": True, "operations": [operating.shape(info) for info in found]})


@router.get("/api/operations/{operation_id}", response_model=OperationAnswer)
async def show_operation(visit: Viewer, operation_id: OperationId) -> Response:
    """How far an operation has come; once it has ended, what it did, and what it could not do."""
    return reply({"success": True, "operation": operating.shape(await _read(visit, operation_id))})


@router.post("/api/operations/{operation_id}/cancel", response_model=OperationAnswer)
async def cancel_operation(visit: Operator, operation_id: OperationId) -> Response:
    """End an operation before its time. What is done stays done."""
    before = await _read(visit, operation_id)
    await visit.rota.operations.stop(operation_id)
    after = await visit.rota.operations.get(operation_id)
    await visit.audit(
        "cancel", f"operation {operation_id}", before={"state": before.state}, after={"state": after.state}
    )
    return reply({"success": True, "operation": operating.shape(after)})


def _where(asked: OperationWhere) -> Found:
    given: dict[str, Any] = asked.model_dump(exclude_none=True)
    if not given:
        raise InvalidOption("where", "asks for nothing: to mean all jobs, name a state or a queue")
    if "type" in given:
        given["task"] = given.pop("type")
    if "state" in given:
        given["state"] = given["state"].lower()
    for name in ("since", "until"):
        if name in given:
            given[name] = read_time(given[name], name)
    return cast("Found", given)


async def _read(visit: Visit, operation_id: str) -> OperationInfo:
    info = await visit.rota.operations.get(operation_id)
    if not _may_see(visit, info):
        raise Problem(403, "forbidden", "this operation is about queues that this token is not for")
    return info


def _may_see(visit: Visit, info: OperationInfo) -> bool:
    return not visit.identity.queues or (bool(info.queues) and all(map(visit.identity.may_see, info.queues)))
