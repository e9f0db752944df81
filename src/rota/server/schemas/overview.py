"""How everything stands, and what needs attention."""

from __future__ import annotations

from typing import Literal

from rota.server.schemas.base import Answer, Yes
from rota.server.schemas.jobs import Stats
from rota.server.schemas.watching import Counted


class OverviewQueue(Answer):
    """How a queue stands now, and what the last hour brought."""

    name: str
    is_paused: bool
    stats: Stats
    oldest_wait_ms: int | None
    #: Over the last five minutes.
    arrivals_per_second: float
    services_per_second: float
    #: What was counted over those minutes.
    lately: Counted
    #: Of the workers that live and serve it.
    workers: int
    slots: int
    busy: int
    #: Jobs completed, and attempts failed, in each of the last 60 minutes; the present one is last.
    completed_per_minute: list[int]
    failed_per_minute: list[int]


class OverviewWorkers(Answer):
    """The workers together."""

    alive: int
    draining: int
    #: Vanished within the last hour, without taking their leave.
    dead: int
    slots: int
    busy: int


class OverviewWorkflows(Answer):
    """Workflows that wait for a human: failed and held, or parked in their compensations."""

    held: int
    parked: int


class OverviewServer(Answer):
    """The server behind it all."""

    #: Name and version.
    server: str
    used_memory: int
    #: Null where there is no limit.
    maxmemory: int | None
    evicted_keys: int
    is_aof_on: bool | None


class Attention(Answer):
    """Something that needs a person."""

    kind: Literal[
        "server", "parked_workflows", "held_workflows", "dead_letters", "dead_workers", "unserved_queues",
        "paused_queues", "orphaned_schedules",
    ]  # fmt: skip
    level: Literal["warn", "fail"]
    count: int
    message: str
    #: Which: queues, workers, workflows or schedules; of the server, what was checked. The first twenty.
    names: list[str]


class OverviewAnswer(Answer):
    """Everything at one glance. It is as old as `at` says: about a second at most."""

    success: Yes
    at: str
    #: Over all queues.
    stats: Stats
    lately: Counted
    arrivals_per_second: float
    services_per_second: float
    oldest_wait_ms: int | None
    queues: list[OverviewQueue]
    workers: OverviewWorkers
    #: Null for a token that is limited to some queues.
    workflows: OverviewWorkflows | None
    server: OverviewServer | None
    attention: list[Attention]
