"""Task endpoints: list, and show one in detail."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Response

from rota.server import serializers
from rota.server.http.problem_responses import Problem
from rota.server.queue_and_task_details import detail_json, workers_of
from rota.server.request_context_and_permissions import Viewer, json_response
from rota.server.schemas.common import QueueName, TaskName
from rota.server.schemas.queue_and_task_details import TaskDetailResponse
from rota.server.schemas.tasks import TasksResponse

router = APIRouter(tags=["tasks"])

TaskPath = Annotated[TaskName, Path(description="The name of the task.")]


@router.get("/api/tasks", response_model=TasksResponse)
async def list_tasks(context: Viewer) -> Response:
    """Lists the tasks for which jobs can be enqueued, with the JSON Schema of their arguments."""
    known = [one for one in await context.server.catalog.all() if context.identity.may_see(one.task.queue)]
    return json_response({"tasks": [serializers.task_json(one) for one in known]})


@router.get("/api/tasks/{task}/detail", response_model=TaskDetailResponse)
async def show_task_detail(context: Viewer, task: TaskPath, queue: QueueName | None = None) -> Response:
    """Returns what the task does now, in one queue or in all: rates, durations, errors, slowest jobs, findings."""
    if queue is not None:
        context.check_queue(queue)
    else:
        context.check_unlimited("a task in all queues")
    server = context.server
    found = [one for one in await server.health.get() if one.task == task and queue in (None, one.queue)]
    detail = await server.details.get(queue, task)
    queues = [one for one in detail.queues if queue in (None, one)]
    if not queues and not await server.catalog.has(task):
        raise _unknown(task)
    known = await server.catalog.find(task)
    overview = await server.overview.get()
    workers = workers_of(overview.workers, queues or [queue or known.task.queue])
    return json_response(
        {
            **detail_json(detail, None, workers, found, context.identity.may_see),
            "task": serializers.task_json(known),
            "queues": context.visible(queues),
        }
    )


def _unknown(task: str) -> Problem:
    return Problem(404, "task_not_found", f"there is no task {task!r}: GET /api/tasks lists them")
