"""Queues, workers, locks and tasks: what there is, and what an operator does to a queue."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Response

from rota.errors import InvalidOption
from rota.server import schemas, shapes
from rota.server.answers import KeyedRoute
from rota.server.visits import Admin, Operator, Viewer, Visit, reply
from rota.store.views import LockInfo, WorkerInfo

router = APIRouter(route_class=KeyedRoute, tags=["queues"])

QueuePath = Annotated[schemas.QueueName, Path(description="The queue's name.")]
#: Scheduled work that falls due within these times, ms.
HORIZONS_MS: Final = (60_000, 300_000, 900_000)


@router.get("/api/queues", response_model=schemas.QueuesAnswer)
async def list_queues(visit: Viewer) -> Response:
    """How every queue stands."""
    infos = [info for info in await visit.rota.queues() if visit.identity.may_see(info.name)]
    return reply({"success": True, "queues": [shapes.queue(info) for info in infos]})


@router.get("/api/queues/{queue}", response_model=schemas.QueueAnswer)
async def show_queue(visit: Viewer, queue: QueuePath) -> Response:
    """How one queue stands."""
    return await _answer(visit, await visit.known_queue(queue))


@router.post("/api/queues/{queue}/pause", response_model=schemas.QueueAnswer)
async def pause_queue(visit: Operator, queue: QueuePath) -> Response:
    """Stop claims of the queue, for every worker. Running handlers go on."""
    return await _set_paused(visit, queue, is_paused=True)


@router.post("/api/queues/{queue}/resume", response_model=schemas.QueueAnswer)
async def resume_queue(visit: Operator, queue: QueuePath) -> Response:
    """Let claims of the queue go on, at once."""
    return await _set_paused(visit, queue, is_paused=False)


@router.post("/api/queues/{queue}/purge", response_model=schemas.PurgeAnswer)
async def purge_queue(visit: Admin, queue: QueuePath, body: schemas.PurgeQueue) -> Response:
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


@router.get("/api/workers", response_model=schemas.WorkersAnswer)
async def list_workers(visit: Viewer) -> Response:
    """The workers heard of in the last day, and what each is running."""
    found = [worker for worker in await visit.rota.workers() if _concerns(visit, worker)]
    return reply({"success": True, "workers": [shapes.worker(worker, visit.identity) for worker in found]})


@router.get("/api/locks", response_model=schemas.LocksAnswer)
async def list_locks(
    visit: Viewer,
    queue: schemas.QueueName | None = None,
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


@router.get("/api/tasks", response_model=schemas.TasksAnswer)
async def list_tasks(visit: Viewer) -> Response:
    """The tasks that jobs can be enqueued for, with the JSON Schema of their arguments."""
    known = [one for one in await visit.server.catalog.all() if visit.identity.may_see(one.task.queue)]
    return reply({"success": True, "tasks": [shapes.task(one) for one in known]})


@router.get("/api/scaling", response_model=schemas.ScalingAnswer)
async def scaling(visit: Viewer) -> Response:
    """What an autoscaler needs to know: backlog, waits, work falling due, workers and what they do."""
    views = await visit.rota.checked_views()
    infos = await views.queue_infos(visit.visible(await views.queues()))
    due = await views.falling_due([info.name for info in infos], HORIZONS_MS)
    alive = [w for w in await views.workers() if w.status == "ALIVE" and _concerns(visit, w)]
    queues: list[dict[str, Any]] = []
    for info in infos:
        serving = [w for w in alive if w.serves(info.name)]
        queues.append(
            {
                "queue": info.name,
                "is_paused": info.is_paused,
                "backlog": info.counts["pending"],
                "processing": info.counts["processing"],
                "oldest_wait_ms": info.oldest_pending_ms,
                **dict(zip(("due_in_1m", "due_in_5m", "due_in_15m"), due[info.name], strict=True)),
                **_crew(serving),
            }
        )
    waits = [one["oldest_wait_ms"] for one in queues if one["oldest_wait_ms"] is not None]
    sums = ("backlog", "processing", "due_in_1m", "due_in_5m", "due_in_15m")
    total = {
        "queue": "*",
        "is_paused": bool(queues) and all(one["is_paused"] for one in queues),
        **{name: sum(one[name] for one in queues) for name in sums},
        "oldest_wait_ms": max(waits, default=None),
        **_crew(alive),
        "idle_workers": sum(not w.info.get("busy") for w in alive),
        "busy_workers": sum(bool(w.info.get("busy")) for w in alive),
    }
    return reply({"success": True, "total": total, "queues": queues})


def _crew(workers: list[WorkerInfo]) -> dict[str, int]:
    return {
        "workers": len(workers),
        "slots": sum(w.info.get("slots", 0) for w in workers),
        "busy": sum(w.info.get("busy", 0) for w in workers),
    }


def _concerns(visit: Visit, worker: WorkerInfo) -> bool:
    """True when the worker serves a queue that the caller may see."""
    served = worker.info.get("queues", [])
    return not visit.identity.queues or any(visit.identity.may_see(queue) for queue in served)


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
