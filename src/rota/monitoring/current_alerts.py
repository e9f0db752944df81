"""Alerts: conditions of queues, workers, workflows, schedules and the server that need an operator.

Server and schedule checks are expensive and change rarely, so they are collected separately, in `ServerStatus`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from rota.client.overview import Overview
from rota.client.queue_metrics import QueueLoad
from rota.client.rota import Rota
from rota.core.explain import format_duration
from rota.monitoring.doctor import QUEUE_CHECKS, collect, diagnose
from rota.store.reads import WorkerInfo

Level = Literal["warn", "fail"]
Kind = Literal[
    "server",
    "parked_workflows",
    "held_workflows",
    "dead_letters",
    "dead_workers",
    "unserved_queues",
    "paused_queues",
    "orphaned_schedules",
]
#: A worker that died longer ago raises no alert.
RECENTLY_DEAD_MS: Final = 3_600_000
#: A queue is unserved if its first job has been due for this long and no worker serves it.
UNSERVED_MS: Final = 10_000
#: Names listed by one alert; its count includes all of them.
MAX_NAMES: Final = 20


class Risk(msgspec.Struct, frozen=True):
    """A problem of the server, as found by `rota doctor`."""

    level: Level
    check: str
    message: str


class ServerStatus(msgspec.Struct, frozen=True):
    """Status of the server, and of the schedules."""

    risks: list[Risk]
    used_memory: int
    #: None if there is no limit, or the server does not report it.
    maxmemory: int | None
    evicted_keys: int
    is_aof_on: bool | None
    server: str
    orphaned: list[str]
    paused_schedules: list[str]


class Alert(msgspec.Struct, frozen=True):
    """A condition that needs an operator: its kind, how many are affected, and their names."""

    kind: Kind
    level: Level
    count: int
    message: str
    names: list[str]


async def read_server_status(rota: Rota) -> ServerStatus:
    """Returns the findings of `rota doctor` about the server, without its trial job, and the state of the schedules."""
    facts = await collect(rota, tries_permissions=False)
    findings = [one for one in diagnose(facts) if one.check not in QUEUE_CHECKS]
    schedules = await rota.schedules.list()
    return ServerStatus(
        risks=[Risk(one.level, one.check, one.message) for one in findings if one.level != "ok"],
        used_memory=facts.used_memory,
        maxmemory=facts.maxmemory or None,
        evicted_keys=facts.evicted_keys,
        is_aof_on=facts.is_aof_on,
        server=" ".join([facts.server, ".".join(map(str, facts.version))]).strip(),
        orphaned=[schedule.id for schedule in schedules if schedule.is_orphaned],
        paused_schedules=[schedule.id for schedule in schedules if schedule.is_paused],
    )


def alerts(overview: Overview, status: ServerStatus | None = None) -> list[Alert]:
    """Returns the current alerts, failures first."""
    found: list[Alert] = []

    def add(kind: Kind, level: Level, names: Sequence[str], message: str, count: int | None = None) -> None:
        if names:
            found.append(Alert(kind, level, len(names) if count is None else count, message, list(names[:MAX_NAMES])))

    for risk in status.risks if status is not None else ():
        add("server", risk.level, [risk.check], risk.message)
    add("parked_workflows", "fail", overview.parked, "a compensation failed for good: fix the cause, then resume")
    dead = [load for load in overview.loads if load.counts["failed"]]
    add(
        "dead_letters",
        "warn",
        [load.queue for load in dead],
        "failed for good: find the cause, then redrive or delete",
        sum(load.counts["failed"] for load in dead),
    )
    add("held_workflows", "warn", overview.held, "failed and held: fix the cause, then resume or cancel")
    dead_workers = [worker for worker in overview.workers if is_recently_dead(worker)]
    longest = format_duration(max((worker.silent_ms for worker in dead_workers), default=0))
    add("dead_workers", "warn", [worker.id for worker in dead_workers], f"stopped responding up to {longest} ago")
    unserved = [load.queue for load in overview.loads if is_unserved(load)]
    add("unserved_queues", "fail", unserved, "jobs are due and no worker serves the queue: start one")
    paused = [load.queue for load in overview.loads if load.is_paused]
    add("paused_queues", "warn", paused, "no job starts until the queue is resumed")
    orphaned = status.orphaned if status is not None else ()
    add("orphaned_schedules", "warn", orphaned, "no running worker declares them: remove them, or deploy the code")
    return sorted(found, key=lambda alert: alert.level != "fail")


def is_unserved(load: QueueLoad) -> bool:
    """Returns whether jobs of the queue are due and no worker serves it."""
    return not load.workers and not load.is_paused and (load.oldest_wait_ms or 0) > UNSERVED_MS


def is_recently_dead(worker: WorkerInfo) -> bool:
    """Returns whether the worker stopped responding recently, without a clean shutdown."""
    return worker.status == "DEAD" and worker.info.get("state") != "stopped" and worker.silent_ms <= RECENTLY_DEAD_MS
