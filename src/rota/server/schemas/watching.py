"""Health, load and history."""

from __future__ import annotations

from typing import Literal

from rota.server.schemas.base import Answer, Yes


class Health(Answer):
    """Whether the store answers."""

    success: Yes
    status: Literal["ok"]
    version: str


class Demand(Answer):
    """What is asked of workers, and what there is of them."""

    backlog: int
    processing: int
    oldest_wait_ms: int | None
    #: Over the last five minutes.
    arrivals_per_second: float
    services_per_second: float
    due_in_1m: int
    due_in_5m: int
    due_in_15m: int
    workers: int
    slots: int
    busy: int


class QueueScaling(Demand):
    """What one queue asks of its workers."""

    queue: str
    is_paused: bool
    mean_run_ms: float | None


class Scaling(Demand):
    """The same of all queues together, which share workers."""

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


class TaskCounted(Counted):
    """What happened to the jobs of one task in one queue."""

    queue: str
    type: str


class TaskMetricsAnswer(Answer):
    """Tasks by what was asked for, the first first."""

    success: Yes
    tasks: list[TaskCounted]
