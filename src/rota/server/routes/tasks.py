"""Task endpoints: list, show one in detail, pause and resume."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Response

from rota.server import serializers
from rota.server.auth.authentication import caller_of
from rota.server.http.idempotency_key import IdempotentRoute
from rota.server.http.problem_responses import Problem
from rota.server.queue_and_task_details import detail_json, workers_of
from rota.server.request_context_and_permissions import Operator, RequestContext, Viewer, json_response
from rota.server.schemas.common import QueueName, TaskName
from rota.server.schemas.queue_and_task_details import TaskDetailResponse
from rota.server.schemas.tasks import PausedTasksResponse, PauseTask, ResumeTask, TasksResponse
from rota.server.task_catalog import KnownTask

router = APIRouter(route_class=IdempotentRoute, tags=["tasks"])

TaskPath = Annotated[TaskName, Path(description="The name of the task.")]


@router.get("/api/tasks", response_model=TasksResponse)
async def list_tasks(context: Viewer) -> Response:
    """Lists the tasks for which jobs can be enqueued, with the JSON Schema of their arguments."""
    known = [one for one in await context.server.catalog.all() if context.identity.may_see(one.task.queue)]
    paused = [one for one in await context.rota.paused_tasks() if context.identity.may_see(one.queue)]
    return json_response(
        {
            "tasks": [serializers.task_json(one) for one in known],
            "paused_tasks": [serializers.paused_task_json(one) for one in paused],
        }
    )


@router.get("/api/tasks/{task}/detail", response_model=TaskDetailResponse)
async def show_task_detail(context: Viewer, task: TaskPath, queue: QueueName | None = None) -> Response:
    """Returns what the task does now, in one queue or in all: rates, durations, errors, slowest jobs, findings."""
    _check_queue(context, queue)
    server = context.server
    now, states = await server.finding_states.get()
    found = [
        serializers.finding_json(one, states, now)
        for one in await server.health.get()
        if one.task == task and queue in (None, one.queue)
    ]
    detail = await server.details.get(queue, task)
    queues = [one for one in detail.queues if queue in (None, one)]
    known = await _visible_task(context, task)
    if known is None and not queues:
        raise _unknown(task)
    known = known or server.catalog.undeclared(task)
    overview = await server.overview.get()
    workers = workers_of(overview.workers, queues or [queue or known.task.queue])
    return json_response(
        {
            **detail_json(detail, None, workers, found, context.identity.may_see),
            "task": serializers.task_json(known),
            "queues": context.visible(queues),
            "paused_tasks": await _pauses(context, task, queue),
        }
    )


@router.post("/api/tasks/{task}/pause", response_model=PausedTasksResponse)
async def pause_task(context: Operator, task: TaskPath, body: PauseTask | None = None) -> Response:
    """Pauses the task on all workers: none of its jobs starts, and the other jobs of its queues go on. Idempotent."""
    queue, note = (body.queue, body.note) if body is not None else (None, "")
    _check_scope(context, task, queue)
    by = caller_of(context.identity, context.request).name
    queues = await context.rota.pause_task(task, queue=queue, note=note, by=by)
    await context.audit("pause", f"task {task}", after={"queues": queues, "note": note})
    return json_response({"task": task, "pauses": await _pauses(context, task, queue)})


@router.post("/api/tasks/{task}/resume", response_model=PausedTasksResponse)
async def resume_task(context: Operator, task: TaskPath, body: ResumeTask | None = None) -> Response:
    """Resumes the task: its jobs start in their order. Idempotent."""
    queue = body.queue if body is not None else None
    _check_scope(context, task, queue)
    queues = await context.rota.resume_task(task, queue=queue)
    await context.audit("resume", f"task {task}", after={"queues": queues})
    return json_response({"task": task, "pauses": await _pauses(context, task, queue)})


def _check_queue(context: RequestContext, queue: str | None) -> None:
    if queue is not None:
        context.check_queue(queue)
    else:
        context.check_unlimited("a task in all queues")


def _check_scope(context: RequestContext, task: str, queue: str | None) -> None:
    """Refuses queues outside the caller's scope; a task outside of it as one that does not exist."""
    _check_queue(context, queue)
    if not context.identity.may_run(task, queue):
        raise _unknown(task)


async def _visible_task(context: RequestContext, task: str) -> KnownTask | None:
    """Returns a declared or announced task; None if there is none, or its queue is outside the caller's scope."""
    if not await context.server.catalog.has(task):
        return None
    known = await context.server.catalog.find(task)
    return known if context.identity.may_see(known.task.queue) else None


async def _pauses(context: RequestContext, task: str, queue: str | None) -> list[dict[str, Any]]:
    paused = await context.rota.paused_tasks(queue=queue)
    return [serializers.paused_task_json(one) for one in paused if one.task == task]


def _unknown(task: str) -> Problem:
    return Problem(404, "task_not_found", f"there is no task {task!r}: GET /api/tasks lists them")
