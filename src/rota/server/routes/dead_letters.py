"""Dead letter endpoints: list, group by error, redrive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Response

from rota.client.session import checked_session
from rota.core.format_iso_time import iso_time
from rota.server import serializers, start_bulk_operations_in_background
from rota.server.http.idempotency_key import IdempotentRoute
from rota.server.job_filters import check_scope
from rota.server.request_context_and_permissions import Operator, RequestContext, Viewer, json_response
from rota.server.routes.jobs import jobs_page
from rota.server.schemas.bulk_operations import OperationResponse
from rota.server.schemas.common import QueueName
from rota.server.schemas.dead_letters import DeadGroupsResponse, RedriveDead
from rota.server.schemas.jobs import JobFilter, JobsResponse
from rota.store.compute_in_thread import compute
from rota.store.job_search import DeadLetterGroup

router = APIRouter(route_class=IdempotentRoute, tags=["dead letters"])

#: Dead letters of a group whose times are read, groups with a histogram, and parts of it.
SAMPLED_TIMES: Final = 1_000
MAX_HISTOGRAMS: Final = 100
BUCKETS: Final = 24
#: Characters of the message that a group shows.
MAX_EXAMPLE: Final = 1_000


@router.get("/api/dead", response_model=JobsResponse)
async def list_dead_letters(
    context: Viewer,
    queue: QueueName | None = None,
    type: Annotated[str | None, Query(max_length=200, description="Only jobs of this task.")] = None,
    error: Annotated[str | None, Query(max_length=200, description="Only jobs whose error has this class.")] = None,
    group: Annotated[str | None, Query(max_length=200, description="Only jobs of this group.")] = None,
    text: Annotated[str | None, Query(max_length=200, description="Only jobs that contain this text.")] = None,
    cursor: Annotated[str | None, Query(max_length=8000)] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
) -> Response:
    """Lists dead letters, the latest first."""
    chosen = JobFilter(state="FAILED", queue=queue, type=type, error=error, group=group, text=text)
    page = await jobs_page(context, chosen, cursor=cursor, limit=limit)
    return json_response(await compute(len(page.jobs), context.server.serializer.page, page, context.identity))


@router.get("/api/dead/groups", response_model=DeadGroupsResponse)
async def group_dead_letters(
    context: Viewer,
    queue: QueueName | None = None,
    samples: Annotated[int, Query(ge=0, le=10, description="Number of its latest jobs per group.")] = 3,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Response:
    """Groups dead letters by error, the largest group first."""
    check_scope(context, queue)
    await context.server.catalog.load()
    groups = await context.rota.dead.groups(
        queue=queue, samples=samples, limit=limit, max_arguments=serializers.PREVIEW_BYTES + 1
    )
    infos = [await context.rota.queue(queue).info()] if queue is not None else await context.rota.queues()
    total = sum(info.counts["failed"] for info in infos)
    search = (await checked_session(context.rota)).search
    times = [await search.times_of_group(group.queue, group.id, SAMPLED_TIMES) for group in groups[:MAX_HISTOGRAMS]]
    times += [[]] * (len(groups) - len(times))
    rows = [_group_json(context, group, of_group) for group, of_group in zip(groups, times, strict=True)]
    return json_response({"groups": rows, "total": total})


@router.post("/api/dead/redrive", status_code=202, response_model=OperationResponse)
async def redrive_dead_letters(context: Operator, body: RedriveDead) -> Response:
    """Redrives all dead letters, or those of a queue, task, error or group.

    Starts a bulk operation that runs in the background, at most at the rate `per_second`.
    """
    chosen = JobFilter(state="FAILED", queue=body.queue, type=body.type, error=body.error, group=body.group)
    info = await start_bulk_operations_in_background.start(
        context, "redrive", chosen, dry_run=body.dry_run, per_second=body.per_second
    )
    return json_response({"operation": serializers.operation_json(info)}, 202)


def _group_json(context: RequestContext, group: DeadLetterGroup, times: Sequence[int]) -> dict[str, Any]:
    latest = group.samples[0].error if group.samples else None
    return {
        "id": group.id,
        "queue": group.queue,
        "error": group.type,
        "message": group.message,
        "count": group.count,
        "since": iso_time(group.since),
        "example": latest.message[:MAX_EXAMPLE] if latest is not None else None,
        "first_seen": iso_time(times[0]) if times else None,
        "last_seen": iso_time(times[-1]) if times else None,
        "histogram": [{"at": iso_time(at), "count": count} for at, count in histogram(times)],
        "samples": [context.server.serializer.preview(record) for record in group.samples],
    }


def histogram(times: Sequence[int]) -> list[tuple[int, int]]:
    """Returns the beginnings of equal parts of the time from the first to the last, and how many are in each."""
    if not times:
        return []
    width = max(1, -(-(times[-1] - times[0] + 1) // BUCKETS))
    counts = Counter((at - times[0]) // width for at in times)
    return [(times[0] + bucket * width, counts[bucket]) for bucket in range((times[-1] - times[0]) // width + 1)]
