"""Reads the situation that the rules of `rota.core.health` judge.

What changes slowly and costs more, such as running jobs, locks, schedules and the history, is read less often than
the overview. Every read is bounded, and none scans the keyspace.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from rota.client.overview import Overview
from rota.client.queue_metrics import QueueLoad
from rota.client.rota import Rota
from rota.client.schedules import ScheduleInfo
from rota.client.session import Session, checked_session
from rota.core.health.finding import Finding
from rota.core.health.situation import (
    DeadWorker,
    HeldLock,
    PausedTask,
    QueueSituation,
    RunningJob,
    ScalingSituation,
    ScheduleSituation,
    ServerRisk,
    Situation,
)
from rota.core.health.verdict import findings
from rota.core.ids import JobRef
from rota.core.metric_series import Counts
from rota.core.shards import base_of
from rota.core.state_transitions import JobState
from rota.monitoring.current_alerts import ServerStatus, is_recently_dead, read_server_status
from rota.monitoring.running_jobs_by_worker import RunningAttempt, RunningJobsByWorker
from rota.monitoring.usual_values_reader import UsualOfQueue, UsualValuesReader
from rota.store.autoscaler_lease_decisions_and_demand import ScalingRecord
from rota.store.reads import WorkerInfo

#: How long jobs, locks, schedules and the autoscaler's state are used before they are read again.
DETAILS_S: Final = 10.0
#: The span of rates and run times, in seconds: as in `QueueLoad`.
RECENT_S: Final = 300
#: Queues whose locks are read, and locks of each.
LOCK_QUEUES: Final = 20
LOCKS_PER_QUEUE: Final = 100
#: Schedules whose last jobs are read.
MAX_SCHEDULES: Final = 200
#: An autoscaler whose latest round is longer ago was removed on purpose.
FORGOTTEN_PLANNER_MS: Final = 86_400_000


class Details(msgspec.Struct, frozen=True):
    """What is read less often than the overview. Ages are those of the moment `at`."""

    at: int = 0
    running: Sequence[RunningJob] = ()
    locks: Sequence[HeldLock] = ()
    schedules: Sequence[ScheduleSituation] = ()
    scaling: ScalingSituation | None = None


class HealthReader:
    """The health of one namespace."""

    def __init__(self, rota: Rota) -> None:
        self._rota = rota
        self._running = RunningJobsByWorker(rota)
        self._usual = UsualValuesReader(rota)
        self._details = Details()
        self._status: ServerStatus | None = None
        self._latest: Situation | None = None
        self._read_at = -DETAILS_S

    async def findings(self, overview: Overview | None = None, status: ServerStatus | None = None) -> list[Finding]:
        """Returns what is unusual now. What is not given is read."""
        return findings(await self.situation(overview, status))

    async def situation(self, overview: Overview | None = None, status: ServerStatus | None = None) -> Situation:
        """Returns the situation of this moment."""
        overview = await self._rota.overview() if overview is None else overview
        session = await checked_session(self._rota)
        names = await session.views.queues()
        usual = await self._usual.read(names, overview.at)
        recent = await self._rota.metrics_by_task(since=RECENT_S)
        if time.monotonic() - self._read_at >= DETAILS_S:
            self._status = await read_server_status(self._rota) if status is None else None
            self._details = await self._read_details(session, overview)
            self._read_at = time.monotonic()
        status = status or self._status
        self._latest = Situation(
            at=overview.at,
            queues=[_queue(load, recent.get(load.queue, {}), usual) for load in overview.loads],
            running=self._details.running,
            locks=self._details.locks,
            dead_workers=[_dead_worker(worker) for worker in overview.workers if is_recently_dead(worker)],
            schedules=self._details.schedules,
            held_workflows=overview.held,
            parked_workflows=overview.parked,
            risks=[ServerRisk(risk.level, risk.check, risk.message) for risk in status.risks] if status else [],
            paused_tasks=await _paused_tasks(session, overview),
            scaling=self._details.scaling,
        )
        return self._latest

    async def latest(self) -> Situation:
        """Returns the situation that was read last, or reads it."""
        return await self.situation() if self._latest is None else self._latest

    async def _read_details(self, session: Session, overview: Overview) -> Details:
        held, _ = await self._running.by_worker()
        jobs = [_running(one, overview.at) for of_worker in held.values() for one in of_worker if one.id]
        return Details(
            overview.at,
            jobs,
            await _locks(session, overview),
            await self._schedules(session, overview.at),
            _scaling(await session.scaling.read()),
        )

    async def _schedules(self, session: Session, now: int) -> list[ScheduleSituation]:
        infos = (await self._rota.schedules.list())[:MAX_SCHEDULES]
        refs = [JobRef.parse(info.last_job) for info in infos if info.last_job is not None]
        records = {
            ref.full_id: record
            for ref, record in zip(refs, await session.read_records(refs), strict=True)
            if record is not None
        }
        found: list[ScheduleSituation] = []
        for info in infos:
            last = records.get(info.last_job or "")
            has_failed = last is not None and last.state is JobState.FAILED
            error = last.error if last is not None and has_failed else None
            found.append(
                ScheduleSituation(
                    id=info.id,
                    queue=info.queue,
                    is_paused=info.is_paused,
                    is_orphaned=info.is_orphaned,
                    overdue_ms=_overdue_ms(info, now),
                    last_job=info.last_job,
                    has_last_run_failed=has_failed,
                    error=f"{error.type}: {error.message}"[:200] if error is not None else "",
                )
            )
        return found


def _queue(load: QueueLoad, recent: Mapping[str, Counts], usual: Mapping[str, UsualOfQueue]) -> QueueSituation:
    known = usual.get(load.queue, UsualOfQueue())
    return QueueSituation(
        name=load.queue,
        is_paused=load.is_paused,
        paused_by=load.pause.by if load.pause is not None else "",
        pending=load.counts["pending"],
        failed=load.counts["failed"],
        oldest_wait_ms=load.oldest_wait_ms,
        arrivals_per_second=load.arrivals_per_second,
        services_per_second=load.services_per_second,
        workers=load.workers,
        slots=load.slots,
        busy=load.busy,
        recent=load.last_5m,
        recent_by_task=recent,
        usual=known.queue,
        usual_by_task=known.tasks,
    )


def _running(one: RunningAttempt, now: int) -> RunningJob:
    lease = one.lease
    return RunningJob(
        queue=base_of(lease.queue),
        task=one.task,
        job=f"{lease.queue}:{one.id}",
        run=lease.run,
        worker=lease.worker,
        age_ms=max(0, now - lease.claimed_at),
        has_progress=lease.progress is not None,
    )


async def _locks(session: Session, overview: Overview) -> list[HeldLock]:
    """Returns the first locks of the queues with blocked jobs."""
    queues = [load.queue for load in overview.loads if load.counts["blocked"]][:LOCK_QUEUES]
    names = [name for queue in queues for name in await session.shards.names_of(queue)][:LOCK_QUEUES]
    found: list[HeldLock] = []
    for name in names:
        page = await session.views.locks([name], cursor=None, limit=LOCKS_PER_QUEUE)
        found += (
            HeldLock(
                queue=base_of(lock.queue),
                name=lock.name,
                holder=lock.holder,
                held_ms=max(0, overview.at - lock.since),
                waiting=lock.waiting,
            )
            for lock in page.locks
            if lock.since is not None and lock.waiting
        )
    return found


async def _paused_tasks(session: Session, overview: Overview) -> list[PausedTask]:
    queues = [load.queue for load in overview.loads if load.has_paused_tasks]
    names = [name for queue in queues for name in await session.shards.names_of(queue)]
    return [
        PausedTask(task=one.task, queue=base_of(one.queue), by=one.pause.by, waiting=one.waiting)
        for one in (await session.views.paused_tasks(names) if names else [])
        if not one.is_resuming
    ]


def _dead_worker(worker: WorkerInfo) -> DeadWorker:
    info = worker.info
    return DeadWorker(
        id=worker.id,
        silent_ms=worker.silent_ms,
        queues=info.get("queues", []),
        running=len(info.get("running", [])),
    )


def _overdue_ms(info: ScheduleInfo, now: int) -> int:
    return max(0, now - round(info.next_runs[0].timestamp() * 1000)) if info.next_runs else 0


def _scaling(record: ScalingRecord) -> ScalingSituation | None:
    latest, info = record.latest, record.info
    if latest is None or record.now - latest.at > FORGOTTEN_PLANNER_MS:
        return None
    return ScalingSituation(
        is_paused=latest.is_paused,
        is_hold=latest.is_hold,
        reason="; ".join(latest.reasons),
        silent_ms=max(0, record.now - latest.at),
        interval_ms=info.interval_ms if info is not None else 0,
        workers=latest.running + latest.booting,
        max_workers=info.max_workers if info is not None else 0,
        needed=latest.needed,
        oldest_wait_ms=latest.oldest_wait_ms or 0,
        target_wait_ms=info.target_wait_ms if info is not None else None,
    )
