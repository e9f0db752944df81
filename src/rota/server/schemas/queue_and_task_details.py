"""A queue or a task in detail."""

from __future__ import annotations

from typing import Literal

from rota.server.schemas.common import ResponseBody, State
from rota.server.schemas.health import Finding
from rota.server.schemas.metrics import MetricCounts, MetricPoint, TaskMetrics
from rota.server.schemas.queues import Queue
from rota.server.schemas.tasks import PausedTask, TaskInfo


class Rates(ResponseBody):
    """Jobs per second in the last five minutes."""

    arrivals_per_second: float
    services_per_second: float
    #: Time to drain at these rates; null if the backlog does not become smaller.
    drain_ms: int | None


class UsualValues(ResponseBody):
    """What is usual at this hour."""

    #: Such as "at this hour of earlier days".
    source: str
    #: Days or hours that were compared.
    samples: int
    run_ms: float | None
    run_p99_ms: float | None
    wait_p95_ms: float | None
    failure_rate: float | None


class RunningTimes(ResponseBody):
    """Ages of the attempts in progress, which no histogram counts yet."""

    count: int
    oldest_ms: int | None
    p50_ms: int | None


class RecentTimes(ResponseBody):
    """Durations of the latest finished jobs: exact, not from a histogram."""

    #: Number of jobs.
    sample: int
    p50_ms: int | None
    p95_ms: int | None
    p99_ms: int | None
    max_ms: int | None


class ErrorOfJobs(ResponseBody):
    """Dead letters, and jobs that are retried, whose last attempt failed with the same error; from the latest ones."""

    #: The class of the error.
    error: str
    #: The message of the latest one.
    message: str
    #: Numbers are replaced by # and quoted text by ….
    pattern: str
    count: int
    #: Of these, the dead letters.
    dead: int
    first_seen: str
    last_seen: str
    #: The latest job.
    job: str


class JobLine(ResponseBody):
    """A job with its durations."""

    jobId: str  # noqa: N815
    run: str
    type: str
    queue: str
    status: State
    waited_ms: int | None
    ran_ms: int | None
    started_at: str | None
    ended_at: str | None
    worker: str | None
    #: Class and message of its last error.
    error: str | None


class ServingWorker(ResponseBody):
    """A worker that serves the queue."""

    id: str
    name: str
    host: str
    status: Literal["ALIVE", "DEAD"]
    state: str
    slots: int
    busy: int
    queues: list[str]


class ScheduleSummary(ResponseBody):
    """A schedule and its last job."""

    id: str
    words: str
    type: str
    is_paused: bool
    next_run: str | None
    last_run: str | None
    last_job: str | None
    #: Null if the job has been removed.
    last_status: State | None


class DetailResponse(ResponseBody):
    """What a queue or a task does now and did in the last hour. Cached for some seconds."""

    at: str
    rates: Rates
    #: The last five minutes, and the last hour.
    now: MetricCounts
    hour: MetricCounts
    #: Null without enough history.
    usual: UsualValues | None
    running: RunningTimes
    recent_runs: RecentTimes
    recent_waits: RecentTimes
    step_ms: int
    #: The last hour, minute by minute.
    points: list[MetricPoint]
    errors: list[ErrorOfJobs]
    #: Of the latest hundred completed jobs and hundred dead letters.
    slowest: list[JobLine]
    latest: list[JobLine]
    longest_running: list[JobLine]
    workers: list[ServingWorker]
    schedules: list[ScheduleSummary]
    findings: list[Finding]


class QueueDetailResponse(DetailResponse):
    """One queue in detail."""

    queue: Queue
    #: Its tasks in the last hour, the busiest first.
    tasks: list[TaskMetrics]
    paused_tasks: list[PausedTask]


class TaskDetailResponse(DetailResponse):
    """One task in detail, in one queue or in all."""

    task: TaskInfo
    #: Queues in which it had jobs in the last day.
    queues: list[str]
    paused_tasks: list[PausedTask]
