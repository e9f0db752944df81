"""Jobs: how they are asked for, and how they are shown."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from rota.core.job import MAX_LOCK, MAX_TAGS
from rota.core.retry import MAX_ATTEMPTS, MAX_SECONDS
from rota.server.schemas.base import (
    Answer,
    Asked,
    Done,
    FullId,
    JobIdText,
    PriorityName,
    QueueName,
    Seconds,
    State,
    TaskName,
    Text,
    Yes,
)


class Dependency(Asked):
    """A job that must end first."""

    job: FullId
    #: However it ended.
    may_fail: bool = False
    #: If it is no longer kept: refuse, or count it as one that succeeded.
    if_gone: Literal["refused", "satisfied"] = "refused"


class SameId(Asked):
    """What is changed when the id has a run that waits; see “The same id again”."""

    data: bool = True
    run_at: bool | Literal["if_later", "if_earlier"] = True
    retry: bool | list[Literal["attempts", "backoff"]] = True
    max_stalls: bool = True
    options: bool = True
    reset_counts: bool | None = None


class JobOptions(Asked):
    """The options of a job."""

    queue: QueueName | None = None
    priority: PriorityName | Annotated[int, Field(ge=-100, le=100)] | None = None
    #: Seconds from now.
    delay: Seconds | None = None
    #: Not before this time, in ISO 8601 with a zone.
    run_at: Annotated[str, Field(max_length=64, json_schema_extra={"format": "date-time"})] | None = None
    lock: Annotated[str, Field(min_length=1, max_length=MAX_LOCK)] | None = None
    dependencies: Annotated[list[FullId | Dependency], Field(max_length=1000)] | None = None
    #: Seconds per attempt.
    timeout: Annotated[float, Field(gt=0, le=MAX_SECONDS, allow_inf_nan=False)] | None = None
    #: Failures after which it is a dead letter.
    attempts: Annotated[int, Field(ge=1, le=MAX_ATTEMPTS)] | None = None
    max_stalls: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    at_most_once: bool | None = None
    #: Seconds within which it must have started.
    expires: Seconds | None = None
    tags: Annotated[list[Annotated[str, Field(min_length=1, max_length=64)]], Field(max_length=MAX_TAGS)] | None = None
    meta: dict[str, Any] | None = None


class NewJob(JobOptions):
    """A job to be enqueued: `type` is the task, `data` its named arguments, or an array of positional ones."""

    type: TaskName
    data: dict[str, Any] | list[Any] | None = None
    id: JobIdText | None = None
    on_same_id: Literal["update", "ignore", "reject"] | SameId | None = None


class NamedJob(JobOptions):
    """A job as seed 0 enqueues it: `name` is the task."""

    name: TaskName
    id: JobIdText | Annotated[int, Field(ge=0)] | None = None
    data: dict[str, Any] | list[Any] | None = None
    on_same_id: Literal["update", "ignore", "reject"] | SameId | None = None


class JobChange(Asked):
    """What is to be changed of a job that waits; what is left out stays."""

    data: dict[str, Any] | list[Any] | None = None
    priority: PriorityName | Annotated[int, Field(ge=-100, le=100)] | None = None
    delay: Seconds | None = None
    run_at: Annotated[str, Field(max_length=64, json_schema_extra={"format": "date-time"})] | None = None


class CancelJob(Asked):
    """How to cancel."""

    reason: Text = ""
    #: Leave it alone if it is being processed.
    only_waiting: bool = False


class JobError(Answer):
    """Why an attempt failed, in short."""

    kind: str
    type: str
    message: str


class JobErrorDetail(JobError):
    """Why an attempt failed."""

    traceback: str
    attributes: dict[str, Any]
    #: The same as JSON text.
    attributes_text: str


class JobProgress(Answer):
    """How far an attempt has come."""

    percent: int
    done: float
    total: float
    note: str
    per_second: float | None
    seconds_left: float | None
    at: str


class Job(Answer):
    """A run of a job."""

    jobId: str  # noqa: N815  # seed 2's name for it
    run: str
    status: State
    type: str
    queue: str
    #: The arguments as JSON text, so that no number loses a digit on its way.
    data: str
    #: Failures so far.
    retries: str
    #: 0 to 100.
    progress: str
    #: Milliseconds since 1970.
    created_at: str
    priority: int
    lock: str | None
    tags: list[str]
    dependencies: list[str]
    workflow: str | None
    attempt: int
    failures: int
    stalls: int
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
    progress_detail: JobProgress | None


class JobObstacle(Answer):
    """What keeps a blocked job from starting."""

    kind: Literal["same_id", "after", "lock"]
    jobs: list[str]
    count: int
    lock: str | None
    since: str | None


class JobLimits(Answer):
    """The options that bound a job."""

    attempts: int
    timeout_ms: int | None
    progress_timeout_ms: int | None
    max_stalls: int
    at_most_once: bool
    expires_at: str | None


class JobAttempt(Answer):
    """One execution."""

    attempt: int
    worker: str
    started_at: str
    #: Null while it goes on.
    ended_at: str | None
    outcome: Literal["running", "completed", "failed", "stalled", "returned", "snoozed", "cancelled"]
    #: The error in short, or the reason.
    note: str | None


class JobLock(Answer):
    """The lock of a job, as it stands."""

    name: str
    #: The job that runs under it, or is next to; null when nobody wants it any more.
    holder: str | None
    since: str | None
    waiting: int


class JobStep(Answer):
    """Which step of its workflow a job is."""

    workflow: str
    name: str
    #: Among the workflow's steps.
    index: int
    #: Of a list that the step runs over.
    item: int | None
    #: It undoes that step.
    is_undo: bool


Action = Literal["cancel", "delete", "redrive", "update"]


class JobDetail(Job):
    """A run of a job, with all that is known of it."""

    error: JobErrorDetail | None  # pyright: ignore[reportIncompatibleVariableOverride]
    meta: dict[str, Any]
    #: The same as JSON text, so that no number loses a digit.
    meta_text: str
    limits: JobLimits
    #: Counted from 1, over all jobs of the queue.
    run_number: int
    #: The first one first; of very many, the latest.
    attempts: list[JobAttempt]
    #: Null without a lock, or once it has ended.
    lock_detail: JobLock | None
    #: Null where it belongs to no workflow, or that is no longer kept.
    step: JobStep | None
    #: The job that handles its failure.
    handled_by: str | None
    #: The trace that it was enqueued in, 32 hex digits; null where there was none.
    trace_id: str | None
    #: JSON text; null until it has completed.
    result: str | None
    obstacle: JobObstacle | None
    #: Why it is where it is, in a sentence.
    explanation: str
    #: What its state allows.
    actions: list[Action]
    #: The store's time.
    now: str


class JobAnswer(Answer):
    """One job."""

    success: Yes
    job: JobDetail


class NewJobAnswer(Answer):
    """The job is stored."""

    success: Yes
    message: str
    jobId: str  # noqa: N815
    #: False where the id, or the idempotency key, had a run already.
    is_new: bool
    job: Job


class RedriveJob(Asked):
    """How to redrive."""

    #: Its new arguments; without them it keeps those it has.
    data: dict[str, Any] | list[Any] | None = None


class RelatedJob(Answer):
    """A job that another comes after, or that waits for another."""

    jobId: str  # noqa: N815
    run: str | None
    #: Null where it is no longer kept.
    status: State | None
    type: str | None
    #: It counts however it ends.
    may_fail: bool


class RelatedJobsAnswer(Answer):
    """Some of them."""

    success: Yes
    jobs: list[RelatedJob]
    cursor: str | None


class JobsAnswer(Answer):
    """A page of jobs, under both names that seed 2 has for them."""

    success: Yes
    job: list[Job]
    jobs: list[Job]
    #: Of the next page; null at the end.
    cursor: str | None
    #: Records that were looked at.
    examined: int


class Stats(Answer):
    """How many jobs are in each state."""

    SCHEDULED: int
    BLOCKED: int
    PENDING: int
    PROCESSING: int
    COMPLETED: int
    FAILED: int
    CANCELLED: int


class StatsAnswer(Answer):
    """How many jobs are in each state."""

    success: Yes
    stats: Stats


class ResultAnswer(Answer):
    """How a job ended, if it did."""

    success: Yes
    jobId: str  # noqa: N815
    status: State
    #: What the handler returned.
    result: Any
    error: JobErrorDetail | None
    reason: str | None


class LogLine(Answer):
    """A line that a handler logged."""

    at: str
    level: str
    text: str


class LogAnswer(Answer):
    """What a handler logged, from line `start` on."""

    success: Yes
    jobId: str  # noqa: N815
    start: int
    lines: list[LogLine]


class HistoryEntry(Answer):
    """A change of state."""

    at: str
    verb: str
    state: State | None
    worker: str | None
    attempt: int | None
    since: str | None
    note: str | None


class HistoryAnswer(Answer):
    """Every change of state, oldest first."""

    success: Yes
    jobId: str  # noqa: N815
    history: list[HistoryEntry]


class CancelAnswer(Done):
    """What became of it."""

    status: State
