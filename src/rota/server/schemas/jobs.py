"""Jobs: request bodies, filters and responses."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field

from rota.core.job_options import MAX_LOCK, MAX_TAGS
from rota.core.json_schema_validator import is_array, is_object
from rota.core.retry import MAX_ATTEMPTS, MAX_SECONDS
from rota.server.schemas.common import (
    DateTimeText,
    FullId,
    JobIdText,
    MessageResponse,
    PriorityName,
    QueueName,
    RequestBody,
    ResponseBody,
    Seconds,
    State,
    TaskName,
    Text,
)


def _as_arguments(value: Any) -> Any:
    return value if value is None or is_object(value) or is_array(value) else [value]


#: Named arguments as an object, positional ones as an array; any other value is the only argument.
Data = Annotated[dict[str, Any] | list[Any], BeforeValidator(_as_arguments, json_schema_input_type=Any)]
Priority = PriorityName | Annotated[int, Field(ge=-100, le=100)]
Action = Literal["cancel", "delete", "redrive", "update"]


class Dependency(RequestBody):
    """A job that must end first."""

    job: FullId
    #: Accept any outcome, not only success.
    may_fail: bool = False
    #: If the job has been removed: refuse, or count it as succeeded.
    if_gone: Literal["refused", "satisfied"] = "refused"


class SameId(RequestBody):
    """What an enqueue changes if the id has a waiting run; see “The same id again”."""

    data: bool = True
    run_at: bool | Literal["if_later", "if_earlier"] = True
    retry: bool | list[Literal["attempts", "backoff"]] = True
    max_stalls: bool = True
    options: bool = True
    reset_counts: bool | None = None


class JobOptions(RequestBody):
    """The options of a job."""

    queue: QueueName | None = None
    priority: Priority | None = None
    #: Seconds from now.
    delay: Seconds | None = None
    #: Earliest start, in ISO 8601 with a zone.
    run_at: DateTimeText | None = None
    lock: Annotated[str, Field(min_length=1, max_length=MAX_LOCK)] | None = None
    dependencies: Annotated[list[FullId | Dependency], Field(max_length=1000, fail_fast=True)] | None = None
    #: Seconds per attempt.
    timeout: Annotated[float, Field(gt=0, le=MAX_SECONDS, allow_inf_nan=False)] | None = None
    #: Failures after which the job becomes a dead letter.
    attempts: Annotated[int, Field(ge=1, le=MAX_ATTEMPTS)] | None = None
    max_stalls: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    at_most_once: bool | None = None
    #: Seconds within which the job must start.
    expires: Seconds | None = None
    tags: Annotated[list[Annotated[str, Field(min_length=1, max_length=64)]], Field(max_length=MAX_TAGS)] | None = None
    meta: dict[str, Any] | None = None


class NewJob(JobOptions):
    """A new job: `type` is the task; `data` its named arguments, an array of positional ones, or the only one."""

    type: TaskName
    data: Data | None = None
    id: JobIdText | None = None
    on_same_id: Literal["update", "ignore", "reject"] | SameId | None = None


class JobChange(RequestBody):
    """Changes to a waiting job. Omitted fields keep their values."""

    data: Data | None = None
    priority: Priority | None = None
    delay: Seconds | None = None
    run_at: DateTimeText | None = None


class CancelJob(RequestBody):
    """Options of a cancel."""

    reason: Text = ""
    #: Do not cancel a job that is being processed.
    only_waiting: bool = False


class RedriveJob(RequestBody):
    """Options of a redrive."""

    #: New arguments; omitted, the job keeps its own.
    data: Data | None = None


class JobFilter(BaseModel):
    """Filters of a list or bulk operation. A job matches if all of them match."""

    state: Annotated[State | None, Field(description="Only jobs in this state.")] = None
    queue: QueueName | None = None
    type: Annotated[str | None, Field(max_length=200, description="Only jobs of this task.")] = None
    tag: Annotated[str | None, Field(max_length=64)] = None
    worker: Annotated[str | None, Field(max_length=200, description="Only jobs that this worker runs or ran.")] = None
    error: Annotated[str | None, Field(max_length=200, description="Only jobs with an error of this class.")] = None
    group: Annotated[str | None, Field(max_length=200, description="Only dead letters of this group.")] = None
    since: Annotated[DateTimeText | None, Field(description="Enqueued, or ended, at this time or later.")] = None
    until: Annotated[DateTimeText | None, Field(description="Enqueued, or ended, before this time.")] = None
    text: Annotated[str | None, Field(max_length=200, description="Only jobs that contain this text.")] = None


class JobQuery(JobFilter):
    """Query of a list of jobs."""

    field: Annotated[
        list[str] | None, Field(max_length=10, description="name=value of a parameter that the task indexes.")
    ] = None
    cursor: Annotated[str | None, Field(max_length=8000)] = None
    limit: Annotated[int, Field(ge=1, le=1000)] = 50
    order: Literal["oldest", "newest"] | None = None


class JobError(ResponseBody):
    """The error of an attempt."""

    kind: str
    type: str
    message: str


class JobErrorDetail(JobError):
    """The error of an attempt, with traceback and attributes."""

    traceback: str
    attributes: dict[str, Any]
    #: The attributes as JSON text.
    attributes_text: str


class JobProgress(ResponseBody):
    """The progress of an attempt."""

    percent: int
    done: float
    total: float
    note: str
    per_second: float | None
    seconds_left: float | None
    at: str


class Job(ResponseBody):
    """A run of a job."""

    jobId: str  # noqa: N815
    run: str
    status: State
    type: str
    queue: str
    #: The arguments as JSON text, so that no number loses a digit. Lists show the first 2,000 bytes.
    data: str
    #: True if `data` is only the beginning; `GET /api/jobs/{job_id}` returns all of it.
    is_data_cut: bool
    priority: int
    lock: str | None
    tags: list[str]
    dependencies: list[str]
    workflow: str | None
    attempt: int
    failures: int
    stalls: int
    #: Attempts whose process died while it also ran other jobs: none of them is known to be the reason.
    crashes: int
    snoozes: int
    handbacks: int
    enqueued_at: str
    due_at: str | None
    claimed_at: str | None
    ended_at: str | None
    lease_until: str | None
    worker: str | None
    reason: str | None
    error: JobError | None
    progress: JobProgress | None


class JobObstacle(ResponseBody):
    """The reason why a blocked job cannot start."""

    kind: Literal["same_id", "after", "lock", "task_paused"]
    jobs: list[str]
    count: int
    lock: str | None
    since: str | None


class JobLimits(ResponseBody):
    """Limits of a job's attempts and lifetime."""

    attempts: int
    timeout_ms: int | None
    progress_timeout_ms: int | None
    max_stalls: int
    at_most_once: bool
    expires_at: str | None


class JobAttempt(ResponseBody):
    """One attempt."""

    attempt: int
    worker: str
    started_at: str
    #: Null while it runs.
    ended_at: str | None
    outcome: Literal["running", "completed", "failed", "stalled", "returned", "snoozed", "cancelled"]
    #: The error in short, or the reason.
    note: str | None


class JobLock(ResponseBody):
    """The lock of a job."""

    name: str
    #: The job that holds the lock or gets it next; null if it is free.
    holder: str | None
    since: str | None
    waiting: int


class JobStep(ResponseBody):
    """The workflow step that a job belongs to."""

    workflow: str
    name: str
    #: Position among the workflow's steps.
    index: int
    #: Index of the list item, if the step runs over a list.
    item: int | None
    #: True for the compensation of that step.
    is_undo: bool


class JobDetail(Job):
    """A run of a job, with its attempts, lock, workflow step and explanation."""

    error: JobErrorDetail | None  # pyright: ignore[reportIncompatibleVariableOverride]
    meta: dict[str, Any]
    #: The meta values as JSON text, so that no number loses a digit.
    meta_text: str
    limits: JobLimits
    #: Counted from 1, over all jobs of the queue.
    run_number: int
    #: Oldest first; if there are very many, the latest.
    attempts: list[JobAttempt]
    #: Null without a lock, or once the job has ended.
    lock_detail: JobLock | None
    #: Null if the job is not part of a workflow, or the workflow has been removed.
    step: JobStep | None
    #: The job that handles its failure.
    handled_by: str | None
    #: Id of the trace in which it was enqueued, 32 hex digits; null without a trace.
    trace_id: str | None
    #: Caller of the HTTP API or user of the command line that enqueued it; null for other programs.
    enqueued_by: str | None
    #: JSON text; null until the job has completed.
    result: str | None
    obstacle: JobObstacle | None
    #: Why the job is in its state, as a sentence.
    explanation: str
    #: Actions that its state allows.
    actions: list[Action]
    #: The store's time.
    now: str


class JobResponse(ResponseBody):
    """One job."""

    job: JobDetail


class NewJobResponse(MessageResponse):
    """The stored job."""

    jobId: str  # noqa: N815
    #: False if the id, or the idempotency key, already had a run.
    is_new: bool
    job: Job


class RelatedJob(ResponseBody):
    """A dependency or a dependent of a job."""

    jobId: str  # noqa: N815
    run: str | None
    #: Null if the job has been removed.
    status: State | None
    type: str | None
    #: Any outcome satisfies the dependency.
    may_fail: bool


class RelatedJobsResponse(ResponseBody):
    """A page of dependencies or dependents."""

    jobs: list[RelatedJob]
    cursor: str | None


class JobsResponse(ResponseBody):
    """A page of jobs."""

    jobs: list[Job]
    #: Cursor of the next page; null at the end.
    cursor: str | None
    #: Number of records read.
    examined: int


class Stats(ResponseBody):
    """Number of jobs per state."""

    SCHEDULED: int
    BLOCKED: int
    PENDING: int
    PROCESSING: int
    COMPLETED: int
    FAILED: int
    CANCELLED: int


class StatsResponse(ResponseBody):
    """Number of jobs per state."""

    stats: Stats


class ResultResponse(ResponseBody):
    """The outcome of a job, or its state if it has not ended."""

    jobId: str  # noqa: N815
    status: State
    #: The handler's return value.
    result: Any
    error: JobErrorDetail | None
    reason: str | None


class LogLine(ResponseBody):
    """A line logged by a handler."""

    at: str
    level: str
    text: str


class LogResponse(ResponseBody):
    """Lines logged by a handler, from line `start` on."""

    jobId: str  # noqa: N815
    start: int
    lines: list[LogLine]


class HistoryEntry(ResponseBody):
    """A state change."""

    at: str
    verb: str
    state: State | None
    worker: str | None
    attempt: int | None
    since: str | None
    note: str | None


class HistoryResponse(ResponseBody):
    """All state changes, oldest first."""

    jobId: str  # noqa: N815
    history: list[HistoryEntry]


class CancelResponse(MessageResponse):
    """The job's state after the request."""

    status: State
