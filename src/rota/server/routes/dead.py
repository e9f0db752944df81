"""Dead letters: what failed for good, grouped by why, and given another life."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from fastapi import APIRouter, Query, Response

from rota.core.job import JobRecord
from rota.errors import InvalidOption
from rota.server import schemas, shapes
from rota.server.answers import KeyedRoute
from rota.server.visits import Operator, Viewer, Visit, reply

router = APIRouter(route_class=KeyedRoute, tags=["dead letters"])

#: Dead letters that a grouping looks at, the latest first.
EXAMINED: Final = 5_000


@router.get("/api/dead", response_model=schemas.JobsAnswer)
async def list_dead(
    visit: Viewer,
    queue: schemas.QueueName | None = None,
    type: Annotated[str | None, Query(max_length=200, description="Only jobs of this task.")] = None,
    error: Annotated[str | None, Query(max_length=200, description="Only jobs with an error of this class.")] = None,
    text: Annotated[str | None, Query(max_length=200, description="Only jobs that mention it.")] = None,
    cursor: Annotated[str | None, Query(max_length=1000)] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
) -> Response:
    """A page of dead letters, the latest first."""
    page = await visit.rota.dead.list(
        queue=_scope(visit, queue), task=type, error=error, text=text, cursor=cursor, limit=limit
    )
    jobs = msgspec.Raw(msgspec.json.encode([visit.server.shapes.job(record) for record in page.jobs]))
    return reply({"success": True, "job": jobs, "jobs": jobs, "cursor": page.cursor, "examined": page.examined})


@router.get("/api/dead/groups", response_model=schemas.DeadGroupsAnswer)
async def group_dead(visit: Viewer, queue: schemas.QueueName | None = None) -> Response:
    """Dead letters by queue, task and class of error, the largest group first."""
    scope = _scope(visit, queue)
    groups: dict[tuple[str, str, str], list[JobRecord]] = {}
    cursor: str | None = None
    examined = 0
    while examined < EXAMINED:
        page = await visit.rota.dead.list(queue=scope, cursor=cursor, limit=500)
        examined += len(page.jobs)
        for record in page.jobs:
            name = record.error.type if record.error else ""
            groups.setdefault((record.ref.queue, record.task, name), []).append(record)
        cursor = page.cursor
        if cursor is None:
            break
    views = await visit.rota.checked_views()
    infos = await views.queue_infos([scope] if scope else await views.queues())
    found = [_group(key, records) for key, records in groups.items()]
    found.sort(key=lambda group: (-group["count"], group["queue"], group["type"], group["error"]))
    total = sum(info.counts["failed"] for info in infos)
    return reply({"success": True, "groups": found, "total": total, "examined": examined})


@router.post("/api/dead/redrive", response_model=schemas.RedriveAnswer)
async def redrive_dead(visit: Operator, body: schemas.RedriveDead) -> Response:
    """Give every dead letter that matches another life: all of them, or those of a queue, a task, an error."""
    redriven = await visit.rota.dead.redrive(
        queue=_scope(visit, body.queue), task=body.type, error=body.error, limit=body.limit
    )
    await visit.audit(
        "redrive", "dead letters", before=body.model_dump(exclude_none=True), after={"redriven": redriven}
    )
    return reply({"success": True, "message": f"{redriven} dead letters redriven", "redriven": redriven})


def _scope(visit: Visit, queue: str | None) -> str | None:
    """The queue asked for. A caller that is limited to some queues has to name one."""
    if queue is not None:
        visit.check_queue(queue)
    elif visit.identity.queues:
        raise InvalidOption("queue", f"this token is limited to {', '.join(visit.identity.queues)}: say which")
    return queue


def _group(key: tuple[str, str, str], records: list[JobRecord]) -> dict[str, Any]:
    queue, task, error = key
    latest = max(records, key=lambda record: record.ended_at or 0)
    return {
        "queue": queue,
        "type": task,
        "error": error,
        "count": len(records),
        "message": (latest.error.message if latest.error else latest.reason)[:500],
        "latest": str(latest.ref),
        "latest_at": shapes.moment(latest.ended_at),
    }
