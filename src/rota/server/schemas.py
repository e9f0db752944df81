"""What the API takes and gives, field by field: the OpenAPI document, and the dashboard's types, follow from this.

Seed 2's fields are as it shows them: `data`, `retries`, `progress` and `created_at` are texts. What Rota adds stands
beside them. Times are ISO 8601 in UTC.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from rota.core.job import MAX_LOCK, MAX_TAGS
from rota.core.retry import MAX_ATTEMPTS, MAX_SECONDS

State = Literal["SCHEDULED", "BLOCKED", "PENDING", "PROCESSING", "COMPLETED", "FAILED", "CANCELLED"]
WorkflowStateName = Literal["WAITING", "RUNNING", "COMPLETED", "FAILED", "UNDOING", "PARKED", "UNDONE", "CANCELLED"]
PriorityName = Literal["critical", "high", "medium", "normal", "low"]
RoleName = Literal["viewer", "operator", "admin"]
Yes = Literal[True]

#: What an id, a queue's name and so on may look like: the library checks it, the document says it.
ID: Final = r"^[A-Za-z0-9._-]{1,128}$"
QUEUE: Final = r"^[A-Za-z0-9._-]{1,64}(~[0-9]{1,4})?(-fail)?$"
FULL_ID: Final = r"^([A-Za-z0-9._-]{1,64}(~[0-9]{1,4})?(-fail)?:)?[A-Za-z0-9._-]{1,128}(@[0-9a-z]{9})?$"
TASK: Final = r"^[^\s\x00-\x1f\x7f]{1,200}$"


def documented(pattern: str) -> Any:
    """A text that looks like this. The document says so; the library checks it, and says what is wrong in words."""
    return Field(max_length=300, json_schema_extra={"pattern": pattern})


FullId = Annotated[str, documented(FULL_ID)]
JobIdText = Annotated[str, documented(ID)]
QueueName = Annotated[str, documented(QUEUE)]
TaskName = Annotated[str, documented(TASK)]
Seconds = Annotated[float, Field(ge=0, le=MAX_SECONDS, allow_inf_nan=False)]
Text = Annotated[str, Field(max_length=1000)]


class Asked(BaseModel):
    """A body: what it does not know is refused, and nothing is taken for something else."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Answer(BaseModel):
    """An answer. Its fields are always there."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)


# --- problems ----------------------------------------------------------------------------------------------------


class ProblemError(Answer):
    """One thing that is wrong with a request."""

    source: str
    field: str
    message: str


class ProblemAnswer(BaseModel):
    """Why not, and what to do (RFC 9457)."""

    success: Literal[False]
    message: str
    type: str
    title: str
    status: int
    detail: str
    instance: str
    code: str
    errors: list[ProblemError] = []
    #: Of a job or workflow that is in the wrong one.
    state: str = ""


class Done(Answer):
    """It is done."""

    success: Yes
    message: str


# --- jobs --------------------------------------------------------------------------------------------------------


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


Action = Literal["cancel", "delete", "redrive", "update"]


class JobDetail(Job):
    """A run of a job, with all that is known of it."""

    error: JobErrorDetail | None  # pyright: ignore[reportIncompatibleVariableOverride]
    meta: dict[str, Any]
    limits: JobLimits
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


# --- queues and workers ------------------------------------------------------------------------------------------


class QueueTotals(Answer):
    """Counted since the queue was first used."""

    enqueued: int
    completed: int
    failed: int
    cancelled: int
    redriven: int
    deleted: int


class Queue(Answer):
    """How a queue stands."""

    name: str
    is_paused: bool
    stats: Stats
    totals: QueueTotals
    #: How long the first of those that may start has waited.
    oldest_pending_ms: int | None


class QueueAnswer(Answer):
    """One queue."""

    success: Yes
    queue: Queue


class QueuesAnswer(Answer):
    """All queues."""

    success: Yes
    queues: list[Queue]


class PurgeQueue(Asked):
    """Purging is not undone: without `confirm` it says what it would do."""

    #: The queue's name, once more.
    confirm: str | None = None


class PurgeAnswer(Done):
    """What was deleted, or would be."""

    queue: str
    is_dry_run: bool
    waiting: int
    purged: int


class RunningJob(Answer):
    """What a worker is doing."""

    jobId: str  # noqa: N815
    type: str
    attempt: int


class Worker(Answer):
    """A worker, and when it was last heard of."""

    id: str
    status: Literal["ALIVE", "DEAD"]
    #: As seed 2 has it; `queues` says the same.
    queue: str
    queues: list[str]
    last_seen: str
    silent_ms: int
    #: starting, active, waiting, stopping, stopped …
    state: str
    host: str
    pid: int | None
    slots: int
    busy: int
    finished: int
    running: list[RunningJob]
    cpu_seconds: float
    rss_bytes: int
    started_at: str | None


class WorkersAnswer(Answer):
    """The workers of the last day."""

    success: Yes
    workers: list[Worker]


class Lock(Answer):
    """A lock, whose it is, and who waits for it."""

    name: str
    queue: str
    #: The job that runs under it, or is next to.
    holder: str
    #: Since when it runs; null while it is about to.
    since: str | None
    waiting: int
    #: The first of those who wait.
    waiters: list[str]


class LocksAnswer(Answer):
    """Locks that are held or wanted."""

    success: Yes
    locks: list[Lock]
    cursor: str | None


class TaskInfo(Answer):
    """A task that jobs can be enqueued for."""

    name: str
    queue: str
    doc: str
    run_in: str
    #: Of its named arguments.
    json_schema: dict[str, Any] | None
    positional: list[str]
    priority: int
    attempts: int
    timeout_ms: int | None
    max_stalls: int
    at_most_once: bool


class TasksAnswer(Answer):
    """The tasks that the program declares, or workers announced."""

    success: Yes
    tasks: list[TaskInfo]


# --- workflows ---------------------------------------------------------------------------------------------------


class NewUndo(JobOptions):
    """What compensates a step."""

    type: TaskName
    data: dict[str, Any] | list[Any] | None = None
    #: Also where the step was started and did not succeed.
    even_if_unsure: bool = False


class NewStep(JobOptions):
    """A step. `{"$result": "name"}` in its data stands for the result of another step, and comes after it."""

    name: JobIdText | None = None
    type: TaskName
    data: dict[str, Any] | list[Any] | None = None
    #: Names of steps that come first.
    after: Annotated[list[str], Field(max_length=1000)] = []
    undo: NewUndo | None = None


class NewWorkflow(Asked):
    """A workflow, built and committed as a whole. A step names only steps before it."""

    name: JobIdText
    id: Annotated[str, documented(r"^[A-Za-z0-9._-]{1,100}$")] | None = None
    on_failure: Literal["undo", "hold"] | None = None
    resume: Literal["on_start"] | None = None
    #: How many of that name advance at once.
    limit: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    steps: Annotated[list[NewStep], Field(min_length=1, max_length=1000)]


class CancelWorkflow(Asked):
    """How to cancel."""

    #: Undo what was done.
    undo: bool = True


class WorkflowInfo(Answer):
    """How a workflow stands, in a line."""

    id: str
    name: str
    state: WorkflowStateName
    done: int
    total: int
    created_at: str
    ended_at: str | None
    cause: str | None


class WorkflowUndo(Answer):
    """How the compensation of a step stands."""

    jobId: str  # noqa: N815
    #: "none" until it is wanted.
    state: str


class WorkflowStep(Answer):
    """A step, and how it stands."""

    index: int
    name: str
    type: str
    queue: str
    #: Null where it runs once for each item of a list.
    jobId: str | None  # noqa: N815
    #: Indexes of the steps it comes after.
    after: list[int]
    #: What the workflow knows of it: waiting, completed, failed, cancelled, deleted.
    outcome: str
    #: The state of its job, while that is kept.
    status: State | None
    attempts: int
    items: int | None
    items_done: int | None
    enqueued_at: str | None
    started_at: str | None
    ended_at: str | None
    undo: WorkflowUndo | None


class Workflow(WorkflowInfo):
    """A workflow with its graph."""

    on_failure: Literal["undo", "hold"]
    resume: Literal["on_start"] | None
    limit: int | None
    explanation: str
    steps: list[WorkflowStep]
    actions: list[Literal["cancel", "resume"]]


class WorkflowsAnswer(Answer):
    """The latest workflows."""

    success: Yes
    workflows: list[WorkflowInfo]


class WorkflowAnswer(Answer):
    """One workflow."""

    success: Yes
    workflow: Workflow


# --- schedules ---------------------------------------------------------------------------------------------------


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


# --- dead letters ------------------------------------------------------------------------------------------------


class DeadGroup(Answer):
    """Dead letters of one task and queue that failed with one kind of error."""

    queue: str
    type: str
    error: str
    count: int
    #: Of the latest of them.
    message: str
    latest: str
    latest_at: str | None


class DeadGroupsAnswer(Answer):
    """Dead letters by error; if there are more than were looked at, the latest."""

    success: Yes
    groups: list[DeadGroup]
    total: int
    examined: int


class RedriveDead(Asked):
    """Which dead letters; what is left out does not matter."""

    queue: QueueName | None = None
    type: TaskName | None = None
    #: The class of the error.
    error: Annotated[str, Field(max_length=200)] | None = None
    limit: Annotated[int, Field(ge=1, le=100_000)] | None = None


class RedriveAnswer(Done):
    """How many were redriven."""

    redriven: int


# --- access ------------------------------------------------------------------------------------------------------


class LogIn(Asked):
    """A token, for a session of the dashboard."""

    token: Annotated[str, Field(max_length=200)]


class SessionAnswer(Answer):
    """Who asks, and what they may do."""

    success: Yes
    #: "tokens", "none", or "host" where another application says who it is.
    auth: Literal["tokens", "none", "host"]
    name: str
    role: RoleName
    #: Empty: all of them.
    queues: list[str]
    #: Goes into the header X-CSRF-Token of every change; null where there is no session.
    csrf: str | None
    version: str


class AuditEntry(Answer):
    """A change, and who made it."""

    id: str
    at: str
    who: str
    role: RoleName
    action: str
    target: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class AuditAnswer(Answer):
    """Changes, the latest first."""

    success: Yes
    entries: list[AuditEntry]
    cursor: str | None


# --- watching ----------------------------------------------------------------------------------------------------


class Health(Answer):
    """Whether the store answers."""

    success: Yes
    status: Literal["ok"]
    version: str


class QueueScaling(Answer):
    """What one queue asks of its workers."""

    queue: str
    is_paused: bool
    backlog: int
    processing: int
    oldest_wait_ms: int | None
    #: Over the last five minutes.
    arrivals_per_second: float
    services_per_second: float
    mean_run_ms: float | None
    due_in_1m: int
    due_in_5m: int
    due_in_15m: int
    workers: int
    slots: int
    busy: int


class Scaling(Answer):
    """The same of all queues together, which share workers."""

    backlog: int
    processing: int
    oldest_wait_ms: int | None
    arrivals_per_second: float
    services_per_second: float
    due_in_1m: int
    due_in_5m: int
    due_in_15m: int
    workers: int
    slots: int
    busy: int
    idle_workers: int
    busy_workers: int


class ScalingAnswer(Answer):
    """What an autoscaler needs to know."""

    success: Yes
    total: Scaling
    queues: list[QueueScaling]


class Times(Answer):
    """How long something took, ms; null when nothing was timed. Percentiles are right within a factor of two."""

    mean_ms: float | None
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None


class Counted(Answer):
    """What happened in some span of time. `failed` counts attempts, `dead` jobs that failed for good."""

    enqueued: int
    started: int
    completed: int
    failed: int
    retried: int
    dead: int
    cancelled: int
    stalled: int
    #: The share of attempts that failed, of those that ended; null when none did.
    failure_rate: float | None
    wait: Times
    run: Times


class HistoryPoint(Counted):
    """One step."""

    at: str
    completed_per_second: float


class MetricsAnswer(Answer):
    """What happened from step to step. The last step may not be over yet."""

    success: Yes
    queue: str | None
    type: str | None
    step_ms: int
    since: str
    until: str
    points: list[HistoryPoint]
    total: Counted
