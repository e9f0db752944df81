"""Schedules."""

from __future__ import annotations

from typing import Any, Literal

from rota.server.schemas.base import Answer, Done, Yes


class Schedule(Answer):
    """A schedule. Times have the offset of its zone."""

    id: str
    name: str
    queue: str
    rule: dict[str, Any]
    #: As a person says it.
    words: str
    type: str
    data: str
    misfire: Literal["once", "all", "skip"]
    overlap: Literal["queue", "skip"]
    version: int
    is_declared: bool
    is_orphaned: bool
    is_paused: bool
    next_runs: list[str]
    last_run: str | None
    last_job: str | None
    fired: int
    dropped: int
    skipped: int


class ScheduleAnswer(Answer):
    """One schedule."""

    success: Yes
    schedule: Schedule


class SchedulesAnswer(Answer):
    """All schedules."""

    success: Yes
    schedules: list[Schedule]


class RunScheduleAnswer(Done):
    """The job that was made."""

    jobId: str  # noqa: N815
