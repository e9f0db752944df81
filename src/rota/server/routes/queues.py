"""Queues, workers, locks and tasks: what there is, and what an operator does to a queue."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Path, Query, Response

from rota.core.history import Counted
from rota.core.shapes import exact_moment
from rota.errors import InvalidOption
from rota.history import Load
from rota.server import shapes
from rota.server.answers import KeyedRoute
from rota.server.schemas.base import QueueName
from rota.server.schemas.queues import (
    LocksAnswer,
    PurgeAnswer,
    PurgeQueue,
    QueueAnswer,
    QueuesAnswer,
    TasksAnswer,
)
from rota.server.schemas.watching import MetricsAnswer, ScalingAnswer, TaskMetricsAnswer
from rota.server.visits import Admin, Operator, Viewer, Visit, reply
from rota.store.views import LockInfo

router = APIRouter(route_class=KeyedRoute, tags=["queues"])

QueuePath = Annotated[QueueName, Path(description="The queue's name.")]
#: By what tasks are put in order.
_RANKS: Final[Mapping[str, Callable[[Counted], float]]] = {
    "slowest": lambda counts: counts.run.p95_ms or 0,
    "failing": lambda counts: counts.failed,
    "busiest": lambda counts: counts.started,
}
#: What adds up over queues.
_SUMS: Final = (
    "backlog", "processing", "arrivals_per_second", "services_per_second", "due_in_1m", "due_in_5m", "due_in_15m",
)  # fmt: skip


@router.get("/api/queues", response_model=QueuesAnswer)
async def list_queues(visit: Viewer) -> Response:
    """How every queue stands."""
    infos = [info for info in await visit.rota.queues() if visit.identity.may_see(info.name)]
    return reply({"success": True, "queues": [shapes.queue(info) for info in infos]})


@router.get("/api/queues/{queue}", response_model=QueueAnswer)
async def show_queue(visit: Viewer, queue: QueuePath) -> Response:
    """How one queue stands."""
    return await _answer(visit, await visit.known_queue(queue))


@router.post("/api/queues/{queue}/pause", response_model=QueueAnswer)
async def pause_queue(visit: Operator, queue: QueuePath) -> Response:
    """Stop claims of the queue, for every worker. Running handlers go on."""
    return await _set_paused(visit, queue, is_paused=True)


@router.post("/api/queues/{queue}/resume", response_model=QueueAnswer)
async def resume_queue(visit: Operator, queue: QueuePath) -> Response:
    """Let claims of the queue go on, at once."""
    return await _set_paused(visit, queue, is_paused=False)


@router.post("/api/queues/{queue}/purge", response_model=PurgeAnswer)
async def purge_queue(visit: Admin, queue: QueuePath, body: PurgeQueue) -> Response:
    """Delete the jobs of the queue that wait. Without the queue's name in `confirm`, say how many that would be."""
    handle = visit.rota.queue(await visit.known_queue(queue))
    counts = await handle.counts()
    waiting = sum(counts[state] for state in ("pending", "scheduled", "blocked"))
    answer: dict[str, Any] = {"success": True, "queue": queue, "waiting": waiting}
    if body.confirm is None:
        said = f"This would delete {waiting} waiting jobs: confirm it with the queue's name"
        return reply({**answer, "message": said, "is_dry_run": True, "purged": 0})
    if body.confirm != queue:
        raise InvalidOption("confirm", f"{body.confirm!r} is not the name of the queue, {queue}: nothing was deleted")
    purged = await handle.purge()
    await visit.audit("purge", f"queue {queue}", before={"waiting": waiting}, after={"purged": purged})
    return reply({**answer, "message": f"{purged} waiting jobs deleted", "is_dry_run": False, "purged": purged})


@router.get("/api/locks", response_model=LocksAnswer)
async def list_locks(
    visit: Viewer,
    queue: QueueName | None = None,
    lock: Annotated[str | None, Query(min_length=1, max_length=128, description="Only the lock of this name.")] = None,
    cursor: Annotated[str | None, Query(max_length=200)] = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="About how many.")] = 100,
) -> Response:
    """Locks that are held or wanted: whose each is, and who waits."""
    if queue is not None:
        await visit.known_queue(queue)
    page = await visit.rota.locks(queue=queue, lock=lock or "", cursor=cursor, limit=limit)
    locks: list[LockInfo] = [one for one in page.locks if visit.identity.may_see(one.queue)]
    return reply({"success": True, "locks": [shapes.lock(one) for one in locks], "cursor": page.cursor})


@router.get("/api/tasks", response_model=TasksAnswer)
async def list_tasks(visit: Viewer) -> Response:
    """The tasks that jobs can be enqueued for, with the JSON Schema of their arguments."""
    known = [one for one in await visit.server.catalog.all() if visit.identity.may_see(one.task.queue)]
    return reply({"success": True, "tasks": [shapes.task(one) for one in known]})


@router.get("/api/scaling", response_model=ScalingAnswer)
async def scaling(visit: Viewer) -> Response:
    """What an autoscaler needs to know: backlog, waits, rates, work falling due, workers and what they do."""
    views = await visit.rota.checked_views()
    names = visit.visible(await views.queues())
    loads = await visit.rota.loads(names) if names else []
    alive = [w for w in await views.workers() if w.status == "ALIVE" and visit.concerns(w)]
    queues = [_load(load) for load in loads]
    waits = [load.oldest_wait_ms for load in loads if load.oldest_wait_ms is not None]
    total = {
        **{name: sum(one[name] for one in queues) for name in _SUMS},
        "oldest_wait_ms": max(waits, default=None),
        # A worker that serves several queues is one worker.
        "workers": len(alive),
        "slots": sum(w.info.get("slots", 0) for w in alive),
        "busy": sum(w.info.get("busy", 0) for w in alive),
        "idle_workers": sum(not w.info.get("busy") for w in alive),
        "busy_workers": sum(bool(w.info.get("busy")) for w in alive),
    }
    return reply({"success": True, "total": total, "queues": queues})


def _load(load: Load) -> dict[str, Any]:
    return {
        "queue": load.queue,
        "is_paused": load.is_paused,
        "backlog": load.counts["pending"],
        "processing": load.counts["processing"],
        "oldest_wait_ms": load.oldest_wait_ms,
        "arrivals_per_second": load.arrivals_per_second,
        "services_per_second": load.services_per_second,
        "mean_run_ms": load.mean_run_ms,
        "due_in_1m": load.due[60],
        "due_in_5m": load.due[300],
        "due_in_15m": load.due[900],
        "workers": load.workers,
        "slots": load.slots,
        "busy": load.busy,
    }


@router.get("/api/metrics/history", response_model=MetricsAnswer)
async def metrics_history(
    visit: Viewer,
    queue: QueueName | None = None,
    type: Annotated[str | None, Query(max_length=200, description="Only of this task.")] = None,
    since: Annotated[float, Query(ge=60, le=30 * 86400, description="So many seconds back.")] = 3600,
    step: Annotated[int | None, Query(ge=60, le=30 * 86400, description="Seconds; whole minutes, or hours.")] = None,
) -> Response:
    """Throughput, failures, wait and run times from step to step. Minutes are kept for a day, hours for 30 days."""
    if queue is not None:
        visit.check_queue(queue)
    elif visit.identity.queues:
        visit.check_unlimited("the history of all queues")
    series = await visit.rota.history(queue=queue, task=type, since=since, step=step)
    points = [
        {
            "at": exact_moment(point.at),
            "completed_per_second": series.per_second(point),
            **shapes.counted(point.counted),
        }
        for point in series.points
    ]
    answer = {
        "success": True,
        "queue": queue,
        "type": type,
        "step_ms": series.step_ms,
        "since": exact_moment(series.since),
        "until": exact_moment(series.until),
        "points": points,
        "total": shapes.counted(series.total),
    }
    return reply(answer)


@router.get("/api/metrics/tasks", response_model=TaskMetricsAnswer)
async def metrics_by_task(
    visit: Viewer,
    queue: QueueName | None = None,
    since: Annotated[float, Query(ge=60, le=30 * 86400, description="So many seconds back.")] = 3600,
    order: Annotated[Literal["slowest", "failing", "busiest"], Query()] = "slowest",
    limit: Annotated[int, Query(ge=1, le=1000)] = 20,
) -> Response:
    """Tasks by how long they run (p95), how many of their attempts fail, or how many there are."""
    if queue is not None:
        visit.check_queue(queue)
    found = await visit.rota.history_by_task(queue=queue, since=since)
    rows = [
        (of_queue, task, counts)
        for of_queue, tasks in found.items()
        if visit.identity.may_see(of_queue)
        for task, counts in tasks.items()
    ]
    rows.sort(key=lambda row: _RANKS[order](row[2]), reverse=True)
    tasks = [{"queue": name, "type": task, **shapes.counted(counts)} for name, task, counts in rows[:limit]]
    return reply({"success": True, "tasks": tasks})


async def _answer(visit: Visit, queue: str) -> Response:
    return reply({"success": True, "queue": shapes.queue(await visit.rota.queue(queue).info())})


async def _set_paused(visit: Visit, queue: str, *, is_paused: bool) -> Response:
    handle = visit.rota.queue(await visit.known_queue(queue))
    before = (await handle.info()).is_paused
    await (handle.pause() if is_paused else handle.resume())
    await visit.audit(
        "pause" if is_paused else "resume",
        f"queue {queue}",
        before={"is_paused": before},
        after={"is_paused": is_paused},
    )
    return await _answer(visit, queue)
