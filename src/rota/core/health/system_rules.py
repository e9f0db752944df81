"""Rules about everything but queues and jobs: the server, workers, workflows, schedules, pauses and the autoscaler."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rota.core.explain import format_count, format_duration
from rota.core.health.finding import MAX_NAMES, Finding, Kind, Level
from rota.core.health.situation import ScheduleSituation, Situation

#: Warnings of the doctor under which the system runs worse now. The others are about its configuration.
DEGRADING_CHECKS: Final = frozenset({"memory", "latency", "clock", "repairs"})
#: A tick that is due for longer and was not fired is missed.
OVERDUE_MS: Final = 60_000
#: An autoscaler without a planning round for so long and so many intervals has stopped.
SILENT_PLANNER_MS: Final = 60_000
SILENT_ROUNDS: Final = 3
#: A longer wait at the limit of the pool is a finding, if no target is set.
WAIT_AT_LIMIT_MS: Final = 60_000


def server_findings(situation: Situation) -> Iterator[Finding]:
    """Yields the problems of the server."""
    for risk in situation.risks:
        level: Level = risk.level
        if level == "warn" and risk.check not in DEGRADING_CHECKS:
            level = "notice"
        yield Finding(
            key=f"server:{risk.check}",
            kind="server",
            level=level,
            subject="store",
            phrase=f"at risk ({risk.check})",
            detail=risk.message,
            names=(risk.check,),
        )


def workflow_findings(situation: Situation) -> Iterator[Finding]:
    """Yields the workflows that wait for an operator."""
    if parked := situation.parked_workflows:
        yield Finding(
            key="parked_workflows",
            kind="parked_workflows",
            level="fail",
            subject=format_count(len(parked), "workflow"),
            phrase="half undone",
            detail="a compensation failed for good: fix the cause, then resume",
            count=len(parked),
            names=tuple(parked[:MAX_NAMES]),
        )
    if held := situation.held_workflows:
        yield Finding(
            key="held_workflows",
            kind="held_workflows",
            level="notice",
            subject=format_count(len(held), "workflow"),
            phrase="held after a failure",
            detail="failed and held: fix the cause, then resume or cancel",
            count=len(held),
            names=tuple(held[:MAX_NAMES]),
        )


def dead_workers(situation: Situation) -> Iterator[Finding]:
    """Yields workers that disappeared. Where others serve their queues, nothing is degraded."""
    served = {queue.name for queue in situation.queues if queue.workers}
    for worker in situation.dead_workers:
        is_covered = all(queue in served for queue in worker.queues)
        lost = f" with {format_count(worker.running, 'running job')}" if worker.running else ""
        yield Finding(
            key=f"dead_worker:{worker.id}",
            kind="dead_worker",
            level="notice" if is_covered else "warn",
            subject=f"worker {worker.id}",
            phrase="stopped sending heartbeats",
            detail=f"last seen {format_duration(worker.silent_ms)} ago{lost}: its jobs run again on other workers; "
            "see its logs, and the machine's memory",
            count=1,
            worker=worker.id,
            names=tuple(worker.queues[:MAX_NAMES]),
            value=worker.silent_ms,
        )


def schedule_findings(situation: Situation) -> Iterator[Finding]:
    """Yields the schedules that missed a tick, whose last run failed, or that no code declares."""
    for schedule in situation.schedules:
        if schedule.is_orphaned:
            yield _about(
                schedule,
                "orphaned_schedule",
                "notice",
                "is orphaned",
                "no running worker declares it: remove it, or deploy the code",
            )
        if schedule.is_paused:
            continue
        if schedule.overdue_ms >= OVERDUE_MS:
            overdue = format_duration(schedule.overdue_ms)
            yield _about(
                schedule,
                "missed_schedule",
                "fail",
                f"is {overdue} overdue",
                f"its tick was due {overdue} ago and no worker has fired it: start a worker for {schedule.queue}",
            )
        elif schedule.missed:
            yield _about(schedule, "missed_schedule", "warn", "missed its last tick", schedule.missed)
        if schedule.has_last_run_failed:
            why = f": {schedule.error}" if schedule.error else ""
            yield _about(
                schedule,
                "failed_schedule",
                "warn",
                "failed in its last run",
                f"{schedule.last_job} failed{why}; find the cause, then redrive it",
            )


def _about(schedule: ScheduleSituation, kind: Kind, level: Level, phrase: str, detail: str) -> Finding:
    return Finding(
        key=f"{kind}:{schedule.id}",
        kind=kind,
        level=level,
        subject=f"schedule {schedule.id.partition(':')[2]}",
        phrase=phrase,
        detail=detail,
        queue=schedule.queue,
        job=schedule.last_job if kind == "failed_schedule" else None,
        schedule=schedule.id,
        names=(schedule.id,),
    )


def paused_tasks(situation: Situation) -> Iterator[Finding]:
    """Yields the tasks that are paused."""
    for pause in situation.paused_tasks:
        by = f" by {pause.by}" if pause.by else ""
        yield Finding(
            key=f"paused_task:{pause.queue}:{pause.task}",
            kind="paused_task",
            level="notice",
            subject=f"{pause.task} in {pause.queue}",
            phrase="is paused",
            detail=f"paused{by}, {format_count(pause.waiting, 'job')} waiting: none starts until the task is resumed",
            count=pause.waiting,
            queue=pause.queue,
            task=pause.task,
        )


def scaling_findings(situation: Situation) -> Iterator[Finding]:
    """Yields why the autoscaler does not give the queues the workers that they need."""
    scaling = situation.scaling
    if scaling is None or scaling.is_paused:
        return
    if scaling.silent_ms >= max(SILENT_PLANNER_MS, SILENT_ROUNDS * scaling.interval_ms):
        silent = format_duration(scaling.silent_ms)
        yield _scaling(
            "stopped",
            "has stopped",
            f"no planning round for {silent}: the number of workers no longer changes; start `rota autoscale`",
        )
    elif scaling.is_hold:
        yield _scaling("hold", "cannot decide", f"it changes nothing: {scaling.reason or 'see its latest decision'}")
    elif (
        scaling.needed > scaling.max_workers > 0
        and scaling.workers >= scaling.max_workers
        and scaling.oldest_wait_ms >= (scaling.target_wait_ms or WAIT_AT_LIMIT_MS)
    ):
        yield _scaling(
            "limit",
            f"at its limit of {format_count(scaling.max_workers, 'worker')}",
            f"the demand calls for {scaling.needed} workers and jobs wait "
            f"{format_duration(scaling.oldest_wait_ms)}: raise the limit with `rota autoscale`",
            value=scaling.needed,
            usual=scaling.max_workers,
        )


def _scaling(what: str, phrase: str, detail: str, *, value: float | None = None, usual: float | None = None) -> Finding:
    return Finding(
        key=f"scaling:{what}",
        kind="scaling",
        level="warn",
        subject="autoscaler",
        phrase=phrase,
        detail=detail,
        value=value,
        usual=usual,
    )
