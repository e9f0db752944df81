"""Health checks, and findings about the health of queues, jobs and workers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from rota.server.schemas.common import RequestBody, ResponseBody


class HealthResponse(ResponseBody):
    """The server and its store are available."""

    status: Literal["ok"]
    version: str


class Acknowledgement(ResponseBody):
    """An operator knows about a finding."""

    by: str
    at: str
    #: Snoozed until then; null: until the finding ends.
    until: str | None
    note: str


class Acknowledge(RequestBody):
    """An acknowledgement."""

    #: What is being done.
    note: Annotated[str, Field(max_length=500)] = ""
    #: Only for this time, in seconds; by default until the finding ends.
    snooze_s: Annotated[float, Field(ge=60, le=30 * 86400, allow_inf_nan=False)] | None = None


class AcknowledgeResponse(ResponseBody):
    """The acknowledgement of a finding."""

    key: str
    acknowledged: Acknowledgement | None


class Finding(ResponseBody):
    """An unusual condition."""

    #: Stays the same for as long as the condition lasts.
    key: str
    kind: Literal[
        "slow_queue",
        "slow_task",
        "long_wait",
        "growing_backlog",
        "saturated",
        "error_rate",
        "long_running_job",
        "blocked_lock",
        "missed_schedule",
        "failed_schedule",
        "orphaned_schedule",
        "scaling",
        "server",
        "parked_workflows",
        "held_workflows",
        "dead_letters",
        "dead_worker",
        "unserved_queue",
        "paused_queue",
        "paused_task",
    ]
    #: "notice": to be looked at; "warn": degraded; "fail": jobs do not run, or may be lost.
    level: Literal["notice", "warn", "fail"]
    #: In a few words.
    text: str
    #: The figures, and what to do.
    detail: str
    count: int
    queue: str | None
    task: str | None
    job: str | None
    worker: str | None
    schedule: str | None
    #: The first twenty affected jobs, queues, workflows or tasks.
    names: list[str]
    #: The measured value and the usual one: ms, jobs, workers, or a share from 0 to 1.
    value: float | None
    usual: float | None
    #: When a server first noticed it; null during the first seconds.
    since: str | None
    acknowledged: Acknowledgement | None
