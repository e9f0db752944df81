"""Tasks."""

from __future__ import annotations

from typing import Any

from rota.server.schemas.common import PauseNote, QueueName, RequestBody, ResponseBody
from rota.server.schemas.queues import Pause


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


class PausedTask(ResponseBody):
    """A task whose jobs do not start in one queue."""

    task: str
    queue: str
    paused: Pause
    #: Due jobs that were set aside; those behind other jobs are not counted yet.
    waiting: int
    #: It was resumed, and its jobs are being put back.
    is_resuming: bool


class PauseTask(RequestBody):
    """A pause of a task."""

    #: Only in this queue; by default in all that have had its jobs.
    queue: QueueName | None = None
    #: Why it is paused.
    note: PauseNote = ""


class ResumeTask(RequestBody):
    """The end of a pause."""

    #: Only in this queue; by default in all.
    queue: QueueName | None = None


class PausedTasksResponse(ResponseBody):
    """The pauses of a task."""

    task: str
    pauses: list[PausedTask]


class TasksResponse(ResponseBody):
    """Tasks declared by the application or announced by workers, and the paused ones."""

    tasks: list[TaskInfo]
    paused_tasks: list[PausedTask]
