"""The overview of queues, workers, workflows and the server, with alerts."""

from __future__ import annotations

from typing import Literal

from rota.server.schemas.common import ResponseBody
from rota.server.schemas.health import Finding
from rota.server.schemas.jobs import Stats
from rota.server.schemas.metrics import MetricCounts
from rota.server.schemas.queues import Pause


class OverviewQueue(ResponseBody):
    """The state of a queue, with counts of the last hour."""

    name: str
    is_paused: bool
    #: Null unless it is paused.
    paused: Pause | None
    stats: Stats
    oldest_wait_ms: int | None
    #: Rates and counts of the last five minutes.
    arrivals_per_second: float
    services_per_second: float
    #: Time to drain at these rates; null if the backlog does not become smaller.
    drain_ms: int | None
    last_5m: MetricCounts
    #: Live workers that serve the queue, and their slots.
    workers: int
    slots: int
    busy: int
    #: Completed jobs and failed attempts in each of the last 60 minutes; the current minute is last.
    completed_per_minute: list[int]
    failed_per_minute: list[int]


class OverviewWorkers(ResponseBody):
    """Totals of all workers."""

    alive: int
    draining: int
    #: Disappeared within the last hour without unregistering.
    dead: int
    slots: int
    busy: int


class OverviewWorkflows(ResponseBody):
    """Workflows that need an operator: failed and held, or parked because a compensation failed."""

    held: int
    parked: int


class OverviewServer(ResponseBody):
    """The Valkey or Redis server."""

    #: Name and version.
    server: str
    used_memory: int
    #: Null without a limit.
    maxmemory: int | None
    evicted_keys: int
    is_aof_on: bool | None


class Alert(ResponseBody):
    """A condition that needs an operator."""

    kind: Literal[
        "server",
        "parked_workflows",
        "held_workflows",
        "dead_letters",
        "dead_workers",
        "unserved_queues",
        "paused_queues",
        "orphaned_schedules",
    ]
    level: Literal["warn", "fail"]
    count: int
    message: str
    #: The first twenty affected queues, workers, workflows or schedules; for the server, the failed checks.
    names: list[str]


class OverviewVerdict(ResponseBody):
    """The state of the system in one line, without what was acknowledged."""

    level: Literal["ok", "warn", "fail"]
    #: Such as "Degraded: mail 30 × slower than usual, all workers busy".
    text: str


class OverviewResponse(ResponseBody):
    """The state of the system at the time `at`, at most about a second ago."""

    at: str
    verdict: OverviewVerdict
    #: What is unusual, the worst first; at most a hundred.
    attention: list[Finding]
    #: Over all queues.
    stats: Stats
    #: Counts of the last five minutes.
    last_5m: MetricCounts
    arrivals_per_second: float
    services_per_second: float
    oldest_wait_ms: int | None
    queues: list[OverviewQueue]
    workers: OverviewWorkers
    #: Null for a token limited to some queues.
    workflows: OverviewWorkflows | None
    server: OverviewServer | None
    alerts: list[Alert]
