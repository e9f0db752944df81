"""Tasks."""

from __future__ import annotations

from typing import Any

from rota.server.schemas.common import ResponseBody


class TaskInfo(ResponseBody):
    """A task for which jobs can be enqueued."""

    name: str
    queue: str
    doc: str
    run_in: str
    #: JSON Schema of the named arguments.
    json_schema: dict[str, Any] | None
    positional: list[str]
    #: Indexed parameters: `GET /api/jobs?field=name=value`.
    index: list[str]
    priority: int
    attempts: int
    timeout_ms: int | None
    max_stalls: int
    at_most_once: bool


class TasksResponse(ResponseBody):
    """Tasks declared by the application or announced by workers."""

    tasks: list[TaskInfo]
