"""Schedules."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from rota.core.retry import MAX_SECONDS
from rota.server.schemas.common import DateTimeText, MessageResponse, RequestBody, ResponseBody, State, TaskName
from rota.server.schemas.jobs import Data, JobOptions


class Schedule(ResponseBody):
    """A schedule. Times have the offset of its zone."""

    id: str
    name: str
    queue: str
    rule: dict[str, Any]
    #: The rule in plain words.
    words: str
    type: str
    data: str
    #: True if `data` is only the beginning, as in lists; `GET /api/schedules/{schedule_id}` returns all of it.
    is_data_cut: bool
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


class CronRule(RequestBody):
    """The times of a cron expression, in local time of a time zone."""

    cron: Annotated[str, Field(max_length=200)]
    tz: Annotated[str, Field(max_length=100)] = "UTC"


class EveryRule(RequestBody):
    """Fixed intervals, counted from an anchor, by default from 1970."""

    #: Seconds, at least 1.
    every: Annotated[float, Field(ge=1, le=MAX_SECONDS, allow_inf_nan=False)]
    anchor: DateTimeText | None = None


class NewSchedule(JobOptions):
    """A schedule: its rule, and the job that it enqueues. The ids and start times of its jobs follow from its ticks."""

    rule: CronRule | EveryRule
    type: TaskName
    data: Data | None = None
    misfire: Literal["once", "all", "skip"] = "once"
    overlap: Literal["queue", "skip"] = "queue"
    #: A stored schedule with a higher version is not replaced.
    version: Annotated[int, Field(ge=1, le=2**31)] = 1


class ScheduleChange(RequestBody):
    """Changes to a schedule. Omitted fields keep their values."""

    rule: CronRule | EveryRule | None = None
    data: Data | None = None
    misfire: Literal["once", "all", "skip"] | None = None
    overlap: Literal["queue", "skip"] | None = None


class PreviewSchedule(RequestBody):
    """A rule to preview."""

    rule: CronRule | EveryRule
    #: Time zone of the response; by default that of the rule.
    tz: Annotated[str, Field(max_length=100)] | None = None
    count: Annotated[int, Field(ge=1, le=50)] = 5


class SchedulePreviewResponse(ResponseBody):
    """A rule in plain words, and its next times."""

    words: str
    next_runs: list[str]


class ScheduleRun(ResponseBody):
    """One tick and its job."""

    at: str
    jobId: str  # noqa: N815
    #: Null if it enqueued no job, or the job has been removed.
    status: State | None
    started_at: str | None
    ended_at: str | None


class ScheduleRunsResponse(ResponseBody):
    """The latest ticks, latest first."""

    runs: list[ScheduleRun]


class ForecastHour(ResponseBody):
    """Number of jobs expected in one hour."""

    #: Start of the hour.
    at: str
    #: Ticks of schedules; each may enqueue a job.
    runs: int
    #: Scheduled jobs that become due, including retries.
    due: int


class ForecastResponse(ResponseBody):
    """Jobs expected in the coming hours. The first hour has begun: it counts the rest of it, and overdue jobs."""

    at: str
    hours: list[ForecastHour]
    #: Number of schedules that are not included: it covers the first thousand.
    uncounted: int


class ScheduleResponse(ResponseBody):
    """One schedule."""

    schedule: Schedule


class SchedulesResponse(ResponseBody):
    """All schedules."""

    schedules: list[Schedule]


class RunScheduleResponse(MessageResponse):
    """The enqueued job."""

    jobId: str  # noqa: N815
