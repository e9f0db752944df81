"""Dead letters: what failed for good, grouped by why, and given another life."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query, Response

from rota.core.shapes import exact_moment
from rota.server import operating
from rota.server.answers import KeyedRoute
from rota.server.filters import Found, check_scope
from rota.server.schemas.base import QueueName
from rota.server.schemas.dead import DeadGroupsAnswer, RedriveDead
from rota.server.schemas.jobs import JobsAnswer
from rota.server.schemas.operations import OperationAnswer
from rota.server.visits import Operator, Viewer, Visit, reply
from rota.store.search import Group

router = APIRouter(route_class=KeyedRoute, tags=["dead letters"])


@router.get("/api/dead", response_model=JobsAnswer)
async def list_dead(
    visit: Viewer,
    queue: QueueName | None = None,
    type: Annotated[str | None, Query(max_length=200, description="Only jobs of this task.")] = None,
    error: Annotated[str | None, Query(max_length=200, description="Only jobs with an error of this class.")] = None,
    group: Annotated[str | None, Query(max_length=200, description="Only jobs of this group.")] = None,
    text: Annotated[str | None, Query(max_length=200, description="Only jobs that mention it.")] = None,
    cursor: Annotated[str | None, Query(max_length=1000)] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
) -> Response:
    """A page of dead letters, the latest first."""
    wanted = Found(state="failed", queue=queue, task=type, error=error, group=group, text=text)
    check_scope(visit, wanted)
    page = await visit.rota.jobs(**wanted, cursor=cursor, limit=limit)
    jobs = msgspec.Raw(msgspec.json.encode([visit.server.shapes.job(record) for record in page.jobs]))
    return reply({"success": True, "job": jobs, "jobs": jobs, "cursor": page.cursor, "examined": page.examined})


@router.get("/api/dead/groups", response_model=DeadGroupsAnswer)
async def group_dead(
    visit: Viewer,
    queue: QueueName | None = None,
    samples: Annotated[int, Query(ge=0, le=10, description="Of each group, its latest.")] = 3,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Response:
    """Dead letters that failed in the same way, the largest group first."""
    check_scope(visit, Found(queue=queue))
    groups = await visit.rota.dead.groups(queue=queue, samples=samples, limit=limit)
    infos = [await visit.rota.queue(queue).info()] if queue is not None else await visit.rota.queues()
    total = sum(info.counts["failed"] for info in infos)
    return reply({"success": True, "groups": [_group(visit, group) for group in groups], "total": total})


@router.post("/api/dead/redrive", status_code=202, response_model=OperationAnswer)
async def redrive_dead(visit: Operator, body: RedriveDead) -> Response:
    """Give every dead letter that matches another life: all of them, or those of a queue, a task, an error, a group.

    It is an operation: it goes on in the background, no faster than `per_second`.
    """
    wanted = Found(state="failed", queue=body.queue, task=body.type, error=body.error, group=body.group)
    info = await operating.start(visit, "redrive", wanted, dry_run=body.dry_run, per_second=body.per_second)
    return reply({"success": True, "operation": operating.shape(info)}, 202)


def _group(visit: Visit, group: Group) -> dict[str, Any]:
    return {
        "id": group.id,
        "queue": group.queue,
        "error": group.type,
        "message": group.message,
        "count": group.count,
        "since": exact_moment(group.since),
        "samples": [visit.server.shapes.job(record) for record in group.samples],
    }
