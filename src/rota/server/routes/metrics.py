"""Metrics endpoints: counts over time, counts by task, and the Prometheus exposition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Query, Response
from fastapi.responses import PlainTextResponse

from rota.core.format_iso_time import iso_time
from rota.core.metric_series import Counts, Series
from rota.monitoring.prometheus import CONTENT_TYPE, metrics_text
from rota.server import serializers
from rota.server.enqueue_requests import read_time
from rota.server.queue_and_task_details import points_json
from rota.server.request_context_and_permissions import Viewer, json_response
from rota.server.schemas.common import QueueName
from rota.server.schemas.metrics import MetricsResponse, TaskMetricsResponse
from rota.store.compute_in_thread import compute

router = APIRouter(tags=["metrics"])

Since = Annotated[float, Query(ge=60, le=30 * 86400, description="Length of the time span in seconds, ending now.")]
#: Sort keys of `GET /api/metrics/tasks`.
_RANKS: Final[Mapping[str, Callable[[Counts], float]]] = {
    "slowest": lambda counts: counts.run.p95_ms or 0,
    "failing": lambda counts: counts.failed + counts.stalled,
    "busiest": lambda counts: counts.started,
}


@router.get("/api/metrics/history", response_model=MetricsResponse)
async def metrics_history(
    context: Viewer,
    queue: QueueName | None = None,
    type: Annotated[str | None, Query(max_length=200, description="Only jobs of this task.")] = None,
    since: Since = 3600,
    step: Annotated[
        int | None, Query(ge=60, le=30 * 86400, description="Step in seconds: whole minutes, or whole hours.")
    ] = None,
    until: Annotated[str | None, Query(max_length=64, description="End of the time span; by default now.")] = None,
    compare: Annotated[
        Literal["day", "week"] | None, Query(description="Also the same span of the day or the week before.")
    ] = None,
) -> Response:
    """Returns throughput, failures, wait and run times per step. Minutes are kept for 24 hours, hours for 30 days.

    What is compared is older, so its steps may be longer: `step_ms` of `previous`.
    """
    if queue is not None:
        context.check_queue(queue)
    elif context.identity.queues:
        context.check_unlimited("the history of all queues")
    last = read_time(until, "until") if until is not None else None
    first = since if last is None else last - timedelta(seconds=since)
    series = await context.rota.metrics(queue=queue, task=type, since=first, step=step, until=last)
    previous = None
    if compare is not None:
        back = timedelta(days=1 if compare == "day" else 7)
        earlier = datetime.fromtimestamp(series.until / 1000, UTC) - back
        previous = await context.rota.metrics(
            queue=queue, task=type, since=earlier - timedelta(seconds=since), until=earlier
        )
    return json_response(
        {
            "queue": queue,
            "type": type,
            "step_ms": series.step_ms,
            "since": iso_time(series.since),
            "until": iso_time(series.until),
            **await compute(len(series.points), _points_and_total, series),
            "previous": await _previous_json(previous) if previous is not None else None,
        }
    )


async def _previous_json(series: Series) -> dict[str, Any]:
    return {
        "step_ms": series.step_ms,
        "since": iso_time(series.since),
        "until": iso_time(series.until),
        **await compute(len(series.points), _points_and_total, series),
    }


def _points_and_total(series: Series) -> dict[str, Any]:
    return {"points": points_json(series), "total": serializers.counts_json(series.total)}


@router.get("/api/metrics/tasks", response_model=TaskMetricsResponse)
async def metrics_by_task(
    context: Viewer,
    queue: QueueName | None = None,
    since: Since = 3600,
    order: Annotated[Literal["slowest", "failing", "busiest"], Query()] = "slowest",
    limit: Annotated[int, Query(ge=1, le=1000)] = 20,
) -> Response:
    """Lists tasks by p95 run time, by failed and stalled attempts, or by started attempts."""
    if queue is not None:
        context.check_queue(queue)
    found = await context.rota.metrics_by_task(queue=queue, since=since)
    rows = [
        (of_queue, task, counts)
        for of_queue, tasks in found.items()
        if context.identity.may_see(of_queue)
        for task, counts in tasks.items()
    ]
    rows.sort(key=lambda row: _RANKS[order](row[2]), reverse=True)
    tasks = [{"queue": name, "type": task, **serializers.counts_json(counts)} for name, task, counts in rows[:limit]]
    return json_response({"tasks": tasks})


@router.get(
    "/metrics",
    response_class=PlainTextResponse,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Prometheus text."}},
)
async def prometheus_metrics(context: Viewer) -> Response:
    """Returns the store's metrics in the Prometheus text format. Every server returns the same values."""
    context.check_unlimited("the Prometheus endpoint")
    return Response(await metrics_text(context.rota, context.server.health.get), media_type=CONTENT_TYPE)
