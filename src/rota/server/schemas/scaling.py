"""The load of queues and workers; the autoscaler's state, settings and decisions."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from rota.server.schemas.common import RequestBody, ResponseBody

Workers = Annotated[int, Field(ge=0, le=10_000)]
PolicyName = Literal["drain-time", "thresholds"]


class Demand(ResponseBody):
    """Load and worker capacity."""

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
    """Load and capacity of one queue."""

    queue: str
    is_paused: bool
    mean_run_ms: float | None


class Scaling(Demand):
    """Load and capacity over all queues. A worker that serves several queues is counted once."""

    idle_workers: int
    busy_workers: int


class ScalingDecisionBody(ResponseBody):
    """A planning round: what was observed, what was decided, and what was done."""

    id: str
    at: str
    #: Workers that the pool should have, and those that the demand alone calls for.
    wanted: int
    needed: int
    running: int
    booting: int
    draining: int
    #: Pending jobs, those of high priority, and for how long the next one has been due.
    backlog: int
    high: int
    oldest_wait_ms: int | None
    reasons: list[str]
    #: At most 20 machines of each are named.
    launched: list[str]
    drained: list[str]
    terminated: list[str]
    is_hold: bool
    is_dry_run: bool
    is_paused: bool


class ScalingSettingsBody(ResponseBody):
    """The settings in force, and which of them were changed at run time."""

    policy: str | None
    min_workers: int | None
    max_workers: int | None
    target_wait_ms: int | None
    interval_ms: int | None
    is_dry_run: bool
    is_paused: bool
    changed: list[str]


class Planner(ResponseBody):
    """The planner that holds the lease."""

    id: str
    host: str
    pid: int
    version: str
    provider: str
    queues: list[str]


class ScalingResponse(ResponseBody):
    """The autoscaler: the load that it observes, its state, its settings, and a page of decisions, newest first."""

    total: Scaling
    queues: list[QueueScaling]
    #: null if no autoscaler runs.
    planner: Planner | None
    #: The planners that wait for the lease, by id.
    standby: list[str]
    settings: ScalingSettingsBody
    #: The latest planning round.
    latest: ScalingDecisionBody | None
    decisions: list[ScalingDecisionBody]
    cursor: str | None
    actions: list[Literal["change", "dry_run"]]


class QueueScalingResponse(QueueScaling):
    """The load of one queue, for KEDA's `metrics-api` scaler and other autoscalers."""

    #: Workers that start every waiting job within the target wait, given one slot count for all workers.
    desired: int


class ChangeScaling(RequestBody):
    """Settings to change at run time. null: as the autoscaler was started. Fields left out stay as they are."""

    is_paused: bool | None = None
    is_dry_run: bool | None = None
    min_workers: Workers | None = None
    max_workers: Workers | None = None
    policy: PolicyName | None = None
    target_wait_ms: Annotated[int, Field(ge=1, le=86_400_000)] | None = None


class DryRunScaling(RequestBody):
    """Settings to decide with, in place of those in force. They are not stored."""

    min_workers: Workers | None = None
    max_workers: Workers | None = None
    policy: PolicyName | None = None
    target_wait_ms: Annotated[int, Field(ge=1, le=86_400_000)] | None = None


class ScalingDryRunResponse(ResponseBody):
    """What the planner would decide now. Nothing was done."""

    planner: str
    #: The settings that the decision is based on.
    policy: str
    min_workers: int
    max_workers: int
    target_wait_ms: int | None
    #: `drained`: the machines that would be drained, at most 20.
    decision: ScalingDecisionBody
    #: How many machines would be launched, drained, and removed because they are broken.
    launch: int
    drain: int
    replace: int


class PoolStep(ResponseBody):
    """One step: the greatest value of each figure. null where no autoscaler was at work."""

    at: str
    wanted: int | None
    running: int | None
    booting: int | None
    draining: int | None
    backlog: int | None
    oldest_wait_ms: int | None
    #: Machines launched and drained within the step.
    launched: int
    drained: int


class PoolHistoryResponse(ResponseBody):
    """The pool per step. The last step may still be running."""

    step_ms: int
    since: str
    until: str
    points: list[PoolStep]
