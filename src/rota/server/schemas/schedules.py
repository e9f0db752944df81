"""Schedules."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from rota.core.retry import MAX_SECONDS
from rota.server.schemas.base import Answer, Asked, Done, State, TaskName, Yes
from rota.server.schemas.jobs import JobOptions


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


class CronRule(Asked):
    """At the times that a cron expression names, by the clock on the wall in a time zone."""

    cron: Annotated[str, Field(max_length=200)]
    tz: Annotated[str, Field(max_length=100)] = "UTC"


class EveryRule(Asked):
    """At equal distances, counted from an anchor, else from 1970."""

    #: Seconds; one at least.
    every: Annotated[float, Field(ge=1, le=MAX_SECONDS, allow_inf_nan=False)]
    anchor: Annotated[str, Field(max_length=64, json_schema_extra={"format": "date-time"})] | None = None


class NewSchedule(JobOptions):
    """A schedule: when, and which jobs. Its jobs have their ids and times from its ticks."""

    rule: CronRule | EveryRule
    type: TaskName
    data: dict[str, Any] | list[Any] | None = None
    misfire: Literal["once", "all", "skip"] = "once"
    overlap: Literal["queue", "skip"] = "queue"
    #: One that is stored with a higher version stays as it is.
    version: Annotated[int, Field(ge=1, le=2**31)] = 1


class ScheduleChange(Asked):
    """What is to be changed of a schedule; what is left out stays."""

    rule: CronRule | EveryRule | None = None
    data: dict[str, Any] | list[Any] | None = None
    misfire: Literal["once", "all", "skip"] | None = None
    overlap: Literal["queue", "skip"] | None = None


class PreviewSchedule(Asked):
    """A rule to be tried out."""

    rule: CronRule | EveryRule
    #: The zone that the times are told in; else that of the rule.
    tz: Annotated[str, Field(max_length=100)] | None = None
    count: Annotated[int, Field(ge=1, le=50)] = 5


class SchedulePreviewAnswer(Answer):
    """What a rule means."""

    success: Yes
    words: str
    next_runs: list[str]


class ScheduleRun(Answer):
    """One tick, and what became of its job."""

    at: str
    jobId: str  # noqa: N815
    #: Null where it made no job, or that is no longer kept.
    status: State | None
    started_at: str | None
    ended_at: str | None


class ScheduleRunsAnswer(Answer):
    """The latest ticks, the latest first."""

    success: Yes
    runs: list[ScheduleRun]


class HourAhead(Answer):
    """What one hour brings."""

    #: When it begins.
    at: str
    #: Runs of schedules, by their rules: each may make a job.
    runs: int
    #: Scheduled jobs that fall due, retries among them.
    due: int


class AheadAnswer(Answer):
    """What the next hours bring. The first has begun: only what is left of it counts, and what is overdue."""

    success: Yes
    at: str
    hours: list[HourAhead]
    #: Schedules whose runs are not in it: it takes the first thousand.
    uncounted: int


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
