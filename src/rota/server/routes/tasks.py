"""Task endpoints."""

from __future__ import annotations

from fastapi import APIRouter, Response

from rota.server import serializers
from rota.server.request_context_and_permissions import Viewer, json_response
from rota.server.schemas.tasks import TasksResponse

router = APIRouter(tags=["tasks"])


@router.get("/api/tasks", response_model=TasksResponse)
async def list_tasks(context: Viewer) -> Response:
    """Lists the tasks for which jobs can be enqueued, with the JSON Schema of their arguments."""
    known = [one for one in await context.server.catalog.all() if context.identity.may_see(one.task.queue)]
    return json_response({"tasks": [serializers.task_json(one) for one in known]})
