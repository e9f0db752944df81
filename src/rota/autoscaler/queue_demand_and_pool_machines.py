"""Reads what a decision depends on: the demand of the queues from the store, the machines from the provider."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from rota.autoscaler.machine_provider import Machine
from rota.client.session import Session
from rota.core.autoscaling.observation import ObservedWorker, QueueDemand, WorkerState
from rota.core.metric_series import MINUTE_MS, Point, add_counts, series
from rota.core.shards import base_of
from rota.store.autoscaler_lease_decisions_and_demand import Demand, Launch, read_demand
from rota.store.keys import failures_of
from rota.store.reads import WorkerInfo

#: Minutes over which the mean duration of attempts is taken.
WINDOW: Final = 5
#: A queue without work is read in one of so many rounds: within five minutes, with a round every 5 s.
TURNS: Final = 60
#: Machines that were launched and are not listed yet count as booting for this long; then they are taken for lost.
VISIBLE_MS: Final = 60_000


@dataclass(slots=True, kw_only=True)
class PoolMachine:
    """A machine of the pool, and the workers that have registered from it."""

    id: str
    #: As the provider lists it; None if it is not listed (yet).
    listed: Machine | None = None
    #: 0 if unknown: then any worker that was ever registered from it counts.
    launched_at: int = 0
    #: When it was first in the list.
    first_listed_at: int = 0
    is_barred: bool = False
    #: A worker that was last seen before this moment is taken for lost.
    lost_before: int = 0
    workers: list[WorkerInfo] = field(default_factory=list[WorkerInfo])

    @property
    def alive(self) -> list[WorkerInfo]:
        """Its workers that are alive and have not drained."""
        return [worker for worker in self.workers if worker.status == "ALIVE" and worker.info.get("state") != "drained"]

    @property
    def may_run_jobs(self) -> list[WorkerInfo]:
        """Its workers that may hold a job: those alive, and silent ones that did not end and are not taken for lost."""
        return [
            worker
            for worker in self.workers
            if worker.info.get("state") not in ("drained", "stopped")
            and (worker.status == "ALIVE" or worker.last_seen >= self.lost_before)
        ]

    @property
    def is_busy(self) -> bool:
        """True if a worker of it runs a job, or may run one: what a silent worker does is not known."""
        return any(worker.info.get("busy") or worker.status != "ALIVE" for worker in self.may_run_jobs)

    @property
    def has_registered(self) -> bool:
        """True if a worker has registered from it since it was launched."""
        return any(worker.last_seen >= self.launched_at for worker in self.workers)

    @property
    def has_drained(self) -> bool:
        """True if no worker of it may run a job, and the latest one was drained."""
        latest = max(self.workers, key=lambda worker: worker.last_seen, default=None)
        return not self.may_run_jobs and self.has_registered and latest is not None and _has_drained(latest)

    @property
    def may_be_terminated(self) -> bool:
        """True if no worker of it holds a job, and none that registers from now on takes one."""
        return self.is_barred and not self.may_run_jobs

    @property
    def state(self) -> WorkerState:
        """Its state, as far as scaling is concerned."""
        if self.listed is not None and self.listed.state == "failed":
            return WorkerState.FAILED
        if self.is_barred or self.has_drained or (self.listed is not None and self.listed.is_interrupted):
            return WorkerState.DRAINING
        if not self.has_registered:
            return WorkerState.BOOTING
        is_draining = bool(self.alive) and all(worker.info.get("state") == "draining" for worker in self.alive)
        return WorkerState.DRAINING if is_draining else WorkerState.RUNNING

    def observed(self) -> ObservedWorker:
        """As the decision takes it. A machine whose worker is silent is replaced when it has been so for long."""
        workers = self.alive or ([max(self.workers, key=lambda one: one.last_seen)] if self.has_registered else [])
        since = [worker.info["busy_since"] for worker in workers if worker.info.get("busy_since")]
        started = [worker.info["started_at"] for worker in workers if worker.info.get("started_at")]
        return ObservedWorker(
            id=self.id,
            state=self.state,
            slots=sum(int(worker.info.get("slots", 0)) for worker in workers),
            busy=sum(int(worker.info.get("busy", 0)) for worker in workers),
            started_ms=self.launched_at or min(started, default=self.first_listed_at),
            heartbeat_ms=max((worker.last_seen for worker in workers), default=None),
            work_started_ms=min(since, default=None),
        )


def _has_drained(worker: WorkerInfo) -> bool:
    return worker.info.get("state") == "drained" or bool(worker.info.get("was_drained"))


def pool_of(
    machines: Iterable[Machine],
    workers: Iterable[WorkerInfo],
    launches: Mapping[str, Launch],
    barred: set[str],
    first_listed: Mapping[str, int],
    lost_before: int = 0,
) -> dict[str, PoolMachine]:
    """Returns the machines of the pool by id: those listed, and those launched that are not listed yet.

    `first_listed` is when each machine was first in the list. Workers last seen before `lost_before` are lost.
    """
    pool = {
        machine.id: PoolMachine(
            id=machine.id,
            listed=machine,
            launched_at=machine.launched_at or 0,
            first_listed_at=first_listed.get(machine.id, 0),
        )
        for machine in machines
    }
    for launch in launches.values():
        for machine_id in launch.machines or ():
            found = pool.setdefault(machine_id, PoolMachine(id=machine_id))
            found.launched_at = found.launched_at or launch.at
    for worker in workers:
        machine_of_worker = pool.get(str(worker.info.get("machine", "")))
        if machine_of_worker is not None:
            machine_of_worker.workers.append(worker)
    for machine in pool.values():
        machine.is_barred = machine.id in barred
        machine.lost_before = lost_before
    return pool


class DemandReader:
    """Reads the demand of the served queues. Remembers what it has read, so that queues at rest cost little."""

    def __init__(self, queues: Sequence[str] | None) -> None:
        self._queues = queues
        self._encoded: dict[str, bytes] = {}
        #: Name -> when its demand last changed. Without those that have been at rest for the whole window.
        self._changed_at: dict[str, int] = {}
        self._turn = 0

    async def names(self, session: Session) -> list[str]:
        """The names of the served queues and their shards, and of their failure queues, which workers serve as well."""
        if self._queues is None:
            names = await session.shards.names_of_all(None)
        else:
            parts = await asyncio.gather(*(session.shards.names_of(queue) for queue in self._queues))
            names = [name for part in parts for name in part]
        return list(dict.fromkeys(one for name in names for one in (name, failures_of(name))))

    async def read(self, session: Session, soon_ms: int, now: int) -> list[QueueDemand]:
        """The demand of each queue that has any, or had jobs in the last minutes."""
        names = await self._to_read(session, await self.names(session))
        active: dict[str, Demand] = {}
        for name, encoded in zip(names, await session.scaling.demand(names, soon_ms), strict=True):
            before = self._encoded.get(name)
            demand = read_demand(encoded)
            is_idle = not (demand.pending or demand.processing or demand.due)
            if encoded != before:
                self._encoded[name] = encoded
                if before is not None or not is_idle:
                    self._changed_at[name] = now
            if name in self._changed_at:
                if is_idle and now - self._changed_at[name] > WINDOW * MINUTE_MS:
                    del self._changed_at[name]
                else:
                    active[name] = demand
        points = await self._read_points(session, list(active), now)
        by_queue: dict[str, list[str]] = {}
        for name in active:
            by_queue.setdefault(base_of(name), []).append(name)
        return [
            _sum(queue, [active[name] for name in parts], [points[name] for name in parts], now)
            for queue, parts in by_queue.items()
        ]

    async def _to_read(self, session: Session, names: Sequence[str]) -> list[str]:
        """The queues with work, those that had some in the last minutes, and in turn a few of the others.

        A queue whose jobs are so short and rare that no round meets one is found by the number of its runs, when it is
        its turn.
        """
        self._turn = (self._turn + 1) % TURNS
        wanted = {*self._changed_at, *names[self._turn :: TURNS], *await session.scaling.queues_with_work(names)}
        return [name for name in names if name in wanted]

    async def _read_points(self, session: Session, names: Sequence[str], now: int) -> dict[str, Sequence[Point]]:
        """Name -> the counts of each of the last minutes, the current one last."""
        minute = now // MINUTE_MS
        since = (minute - WINDOW) * MINUTE_MS
        counters = await session.counters.read(names, "minute", minute - WINDOW, minute)
        return {
            name: series(counter.intervals, None, since=since, until=now, step_ms=MINUTE_MS, unit_ms=MINUTE_MS).points
            for name, counter in zip(names, counters, strict=True)
        }


def _sum(queue: str, parts: Sequence[Demand], points: Sequence[Sequence[Point]], now: int) -> QueueDemand:
    """The demand of a queue, from that of its shards."""
    due_since = [part.due_since for part in parts if part.pending]
    high = sum(part.high for part in parts)
    return QueueDemand(
        queue=queue,
        high=high,
        normal=sum(part.pending for part in parts) - high,
        oldest_wait_ms=max(0, now - min(due_since)) if due_since else None,
        due=sum(part.due for part in parts),
        arrivals_per_second=sum(_rate(part[-2:], now) for part in points),
        arrivals_per_second_5m=sum(_rate(part, now) for part in points),
        mean_run_ms=add_counts(point.counts for part in points for point in part).run.mean_ms,
        processing=sum(part.processing for part in parts),
        is_paused=all(part.is_paused for part in parts),
    )


def _rate(points: Sequence[Point], now: int) -> float:
    """Jobs enqueued per second over these minutes, of which the last is not over."""
    return sum(point.counts.enqueued for point in points) / ((now - points[0].at) / 1000) if points else 0.0
