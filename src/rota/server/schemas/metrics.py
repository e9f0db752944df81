"""Metrics: counts and durations, over time and by task."""

from __future__ import annotations

from rota.server.schemas.common import ResponseBody


class Times(ResponseBody):
    """Durations in ms; null without samples. Percentiles are accurate within a factor of two."""

    mean_ms: float | None
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None


class MetricCounts(ResponseBody):
    """Counts of a time span. `failed` counts attempts, `dead` counts jobs that became dead letters."""

    enqueued: int
    started: int
    completed: int
    failed: int
    retried: int
    dead: int
    cancelled: int
    stalled: int
    #: Failed attempts divided by finished attempts; null without finished attempts.
    failure_rate: float | None
    wait: Times
    run: Times


class MetricPoint(MetricCounts):
    """Counts of one step."""

    at: str
    completed_per_second: float


class PreviousMetrics(ResponseBody):
    """The same span of an earlier day or week."""

    step_ms: int
    since: str
    until: str
    points: list[MetricPoint]
    total: MetricCounts


class MetricsResponse(ResponseBody):
    """Counts per step. The last step may still be running."""

    queue: str | None
    type: str | None
    step_ms: int
    since: str
    until: str
    points: list[MetricPoint]
    total: MetricCounts
    #: Null unless `compare` is given.
    previous: PreviousMetrics | None


class TaskMetrics(MetricCounts):
    """Counts of one task in one queue."""

    queue: str
    type: str


class TaskMetricsResponse(ResponseBody):
    """Tasks in the requested order."""

    tasks: list[TaskMetrics]
