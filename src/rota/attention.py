"""What needs a person: of the queues and workers, as an overview shows them, and of what is around them.

The server and the schedules change rarely, and are dear to look at: that is apart, in `Surroundings`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from rota.client import Rota
from rota.core.explain import span
from rota.doctor import STANDING, collect, diagnose
from rota.history import Load
from rota.overview import Overview
from rota.store.views import WorkerInfo

Level = Literal["warn", "fail"]
Kind = Literal[
    "server", "parked_workflows", "held_workflows", "dead_letters", "dead_workers", "unserved_queues", "paused_queues",
    "orphaned_schedules",
]  # fmt: skip
#: A worker that vanished longer ago is no news.
MISSED_MS: Final = 3_600_000
#: A queue whose first job has waited this long, with nobody to take it, has no worker.
UNSERVED_MS: Final = 10_000
#: Subjects that one alarm names; it counts them all.
NAMED: Final = 20


class Risk(msgspec.Struct, frozen=True):
    """What is wrong with the server itself, as `rota doctor` finds it."""

    level: Level
    check: str
    message: str


class Surroundings(msgspec.Struct, frozen=True):
    """What is around the queues: the server, and the schedules."""

    risks: list[Risk]
    used_memory: int
    #: None where there is no limit, or the server does not say.
    maxmemory: int | None
    evicted_keys: int
    is_aof_on: bool | None
    server: str
    orphaned: list[str]
    paused_schedules: list[str]


class Alarm(msgspec.Struct, frozen=True):
    """Something that needs a person: what, how many, and which."""

    kind: Kind
    level: Level
    count: int
    message: str
    names: list[str]


async def read_surroundings(rota: Rota) -> Surroundings:
    """Looks at the server as `rota doctor` does, writing nothing; and at the schedules."""
    facts = await collect(rota, tries_rights=False)
    findings = [one for one in diagnose(facts) if one.check not in STANDING]
    schedules = await rota.schedules.list()
    return Surroundings(
        risks=[Risk(one.level, one.check, one.message) for one in findings if one.level != "ok"],
        used_memory=facts.used_memory,
        maxmemory=facts.maxmemory or None,
        evicted_keys=facts.evicted_keys,
        is_aof_on=facts.is_aof_on,
        server=" ".join([facts.server, ".".join(map(str, facts.version))]).strip(),
        orphaned=[schedule.id for schedule in schedules if schedule.is_orphaned],
        paused_schedules=[schedule.id for schedule in schedules if schedule.is_paused],
    )


def alarms(overview: Overview, around: Surroundings | None = None) -> list[Alarm]:
    """What needs attention, the worst first."""
    found: list[Alarm] = []

    def add(kind: Kind, level: Level, names: Sequence[str], message: str, count: int | None = None) -> None:
        if names:
            found.append(Alarm(kind, level, len(names) if count is None else count, message, list(names[:NAMED])))

    for risk in around.risks if around is not None else ():
        add("server", risk.level, [risk.check], risk.message)
    add("parked_workflows", "fail", overview.parked, "a compensation failed for good: mend it, then resume")
    dead = [load for load in overview.loads if load.counts["failed"]]
    add(
        "dead_letters", "warn", [load.queue for load in dead], "failed for good: look at why, then redrive or delete",
        sum(load.counts["failed"] for load in dead),
    )  # fmt: skip
    add("held_workflows", "warn", overview.held, "failed and held: mend the step, then resume or cancel")
    missed = [worker for worker in overview.workers if has_vanished(worker)]
    longest = span(max((worker.silent_ms for worker in missed), default=0))
    add("dead_workers", "warn", [worker.id for worker in missed], f"vanished without a word, up to {longest} ago")
    unserved = [load.queue for load in overview.loads if is_unserved(load)]
    add("unserved_queues", "fail", unserved, "jobs are due and no worker serves them: start one")
    paused = [load.queue for load in overview.loads if load.is_paused]
    add("paused_queues", "warn", paused, "no job starts there until it is resumed")
    orphaned = around.orphaned if around is not None else ()
    add("orphaned_schedules", "warn", orphaned, "no program that runs declares them any more: remove them, or deploy")
    return sorted(found, key=lambda alarm: alarm.level != "fail")


def is_unserved(load: Load) -> bool:
    """True for a queue whose jobs could start, if only there were a worker."""
    return not load.workers and not load.is_paused and (load.oldest_wait_ms or 0) > UNSERVED_MS


def has_vanished(worker: WorkerInfo) -> bool:
    """True for one that was lost lately, and did not take its leave."""
    return worker.status == "DEAD" and worker.info.get("state") != "stopped" and worker.silent_ms <= MISSED_MS
