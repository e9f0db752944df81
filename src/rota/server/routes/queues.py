"""Queue endpoints: list, show, pause, resume and purge."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Response

from rota.core.shards import base_of
from rota.errors import InvalidOption
from rota.server import serializers
from rota.server.auth.authentication import caller_of
from rota.server.http.idempotency_key import IdempotentRoute
from rota.server.queue_and_task_details import detail_json, workers_of
from rota.server.request_context_and_permissions import Admin, Operator, RequestContext, Viewer, json_response
from rota.server.schemas.common import QueueName
from rota.server.schemas.queue_and_task_details import QueueDetailResponse
from rota.server.schemas.queues import PauseQueue, PurgeQueue, PurgeResponse, QueueResponse, QueuesResponse

router = APIRouter(route_class=IdempotentRoute, tags=["queues"])

QueuePath = Annotated[QueueName, Path(description="The queue's name.")]


@router.get("/api/queues", response_model=QueuesResponse)
async def list_queues(context: Viewer) -> Response:
    """Lists the queues with their counts."""
    infos = [info for info in await context.rota.queues() if context.identity.may_see(info.name)]
    return json_response({"queues": [serializers.queue_json(info) for info in infos]})


@router.get("/api/queues/{queue}", response_model=QueueResponse)
async def show_queue(context: Viewer, queue: QueuePath) -> Response:
    """Returns one queue with its counts."""
    return await _queue_response(context, await context.known_queue(queue))


@router.get("/api/queues/{queue}/detail", response_model=QueueDetailResponse)
async def show_queue_detail(context: Viewer, queue: QueuePath) -> Response:
    """Returns what the queue does now: rates, durations, errors, slowest jobs, workers, schedules, findings."""
    queue = base_of(await context.known_queue(queue))
    server = context.server
    now, states = await server.finding_states.get()
    found = [serializers.finding_json(one, states, now) for one in await server.health.get() if one.queue == queue]
    detail = await server.details.get(queue, None)
    overview = await server.overview.get()
    pending = sum(load.counts["pending"] for load in overview.loads if load.queue == queue)
    workers = workers_of(overview.workers, [queue])
    tasks = sorted(detail.tasks.items(), key=lambda one: -one[1].started)
    return json_response(
        {
            **detail_json(detail, pending, workers, found, context.identity.may_see),
            "queue": serializers.queue_json(await context.rota.queue(queue).info()),
            "paused_tasks": [serializers.paused_task_json(one) for one in await context.rota.paused_tasks(queue=queue)],
            "tasks": [{"queue": queue, "type": task, **serializers.counts_json(counts)} for task, counts in tasks],
        }
    )


@router.post("/api/queues/{queue}/pause", response_model=QueueResponse)
async def pause_queue(context: Operator, queue: QueuePath, body: PauseQueue | None = None) -> Response:
    """Pauses the queue: no worker claims its jobs. Running jobs continue. `note` says why."""
    return await _set_paused(context, queue, is_paused=True, note=body.note if body is not None else "")


@router.post("/api/queues/{queue}/resume", response_model=QueueResponse)
async def resume_queue(context: Operator, queue: QueuePath) -> Response:
    """Resumes the queue. Workers claim its jobs immediately."""
    return await _set_paused(context, queue, is_paused=False)


@router.post("/api/queues/{queue}/purge", response_model=PurgeResponse)
async def purge_queue(context: Admin, queue: QueuePath, body: PurgeQueue) -> Response:
    """Deletes the waiting jobs of the queue. Without the queue's name in `confirm` it only counts them."""
    handle = context.rota.queue(await context.known_queue(queue))
    counts = await handle.counts()
    waiting = sum(counts[state] for state in ("pending", "scheduled", "blocked"))
    result: dict[str, Any] = {"queue": queue, "waiting": waiting}
    if body.confirm is None:
        message = f"{waiting} waiting jobs would be deleted: send the queue's name as confirm"
        return json_response({**result, "message": message, "is_dry_run": True, "purged": 0})
    if body.confirm != queue:
        raise InvalidOption("confirm", f"{body.confirm!r} is not the queue's name, {queue}: nothing was deleted")
    purged = await handle.purge()
    await context.audit("purge", f"queue {queue}", before={"waiting": waiting}, after={"purged": purged})
    return json_response({**result, "message": f"{purged} waiting jobs deleted", "is_dry_run": False, "purged": purged})


async def _queue_response(context: RequestContext, queue: str) -> Response:
    return json_response({"queue": serializers.queue_json(await context.rota.queue(queue).info())})


async def _set_paused(context: RequestContext, queue: str, *, is_paused: bool, note: str = "") -> Response:
    handle = context.rota.queue(await context.known_queue(queue))
    before = (await handle.info()).is_paused
    by = caller_of(context.identity, context.request).name
    await (handle.pause(note=note, by=by) if is_paused else handle.resume())
    await context.audit(
        "pause" if is_paused else "resume",
        f"queue {queue}",
        before={"is_paused": before},
        after={"is_paused": is_paused, **({"note": note} if note else {})},
    )
    return await _queue_response(context, queue)
