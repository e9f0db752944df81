"""Queues, workers, locks and tasks."""

from __future__ import annotations

from typing import Any, Literal

from rota.server.schemas.base import Answer, Asked, Done, Yes
from rota.server.schemas.jobs import JobProgress, Stats


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
    run: str
    type: str
    attempt: int
    claimed_at: str
    progress_detail: JobProgress | None


class Worker(Answer):
    """A worker: what it runs now, and what it last said of itself."""

    id: str
    status: Literal["ALIVE", "DEAD"]
    #: As seed 2 has it; `queues` says the same.
    queue: str
    queues: list[str]
    last_seen: str
    silent_ms: int
    #: What it was called, or its host.
    name: str
    #: starting, active, waiting, draining, stopped
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
    #: Of Rota.
    version: str
    #: What can be done to it now, and concerns no queue that the caller may not see.
    actions: list[Literal["drain"]]


class WorkerAnswer(Answer):
    """One worker."""

    success: Yes
    worker: Worker


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
    #: Parameters by which jobs are found: `GET /api/jobs?field=name=value`.
    index: list[str]
    priority: int
    attempts: int
    timeout_ms: int | None
    max_stalls: int
    at_most_once: bool


class TasksAnswer(Answer):
    """The tasks that the program declares, or workers announced."""

    success: Yes
    tasks: list[TaskInfo]
