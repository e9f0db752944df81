"""Prometheus metrics of the whole system, read from the store: the same from every process."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Any, Final

from rota.client.rota import Rota
from rota.client.session import checked_session
from rota.core.health.finding import Finding
from rota.core.health.verdict import verdict
from rota.core.metric_series import BOUNDS_MS, Counts, Times
from rota.core.prometheus_text import CONTENT_TYPE, Family, Sample, histogram_samples, render
from rota.errors import StoreError
from rota.monitoring.doctor import server_info
from rota.store.autoscaler_lease_decisions_and_demand import PlannerInfo, ScalingRecord
from rota.store.lock_schedule_and_workflow_gauges import Gauges, QueueGauges, WorkflowGauges
from rota.store.reads import QueueInfo, WorkerInfo

__all__ = ["CONTENT_TYPE", "metrics_text"]

#: Outcome of a run -> field of `Counts`.
OUTCOMES: Final[Mapping[str, str]] = {"completed": "completed", "failed": "dead", "cancelled": "cancelled"}
#: Field of `Counts` -> its counter.
COUNTERS: Final[Mapping[str, tuple[str, str]]] = {
    "enqueued": ("rota_jobs_enqueued_total", "Runs created by enqueues, schedules, workflows and failure handlers."),
    "started": ("rota_attempts_total", "Attempts started."),
    "retried": ("rota_retries_total", "Failed attempts that are retried."),
    "stalled": ("rota_lease_expired_total", "Attempts whose worker died."),
}
#: Total of a queue -> its counter.
TOTALS: Final[Mapping[str, tuple[str, str]]] = {
    "redriven": ("rota_redriven_total", "Dead letters redriven."),
    "deleted": ("rota_deleted_total", "Runs deleted or purged."),
}
#: Every second power of two, from 4 ms to 70 min: the store has each power, which would be too many series per task.
_BOUNDS: Final = range(2, 23, 2)


async def metrics_text(rota: Rota, health: Callable[[], Awaitable[Sequence[Finding]]] | None = None) -> str:
    """Returns the text of a scrape. If the store does not respond, `rota_store_up` is 0.

    `health` returns what is unusual, such as `HealthReader(rota).findings`: keep the reader, it caches the history.
    """
    families = [_build()]
    try:
        families += await _families(rota)
        families += _health(await health()) if health is not None else []
    except StoreError:
        families.append(_up(0))
    return render(families)


async def _families(rota: Rota) -> list[Family]:
    session = await checked_session(rota)
    began = time.perf_counter()
    queues = await session.views.queues()
    round_trip = Family("rota_store_roundtrip_seconds", "gauge", "Round trip of one command to the server.")
    round_trip.add(time.perf_counter() - began)
    infos = await session.views.queue_infos(queues)
    workers = await session.views.workers()
    counters = await session.counters.read(queues)
    tasks = {queue: of_queue.total_by_task() for queue, of_queue in zip(queues, counters, strict=True)}
    gauges, workflows = await Gauges(session.redis, session.keys).read(queues)
    return [
        _up(1),
        round_trip,
        *_queues(infos),
        *_counters(infos, tasks),
        *_times(tasks),
        *_workers(infos, workers),
        *_locks_schedules_workflows(gauges, workflows),
        *_autoscaler(await session.scaling.read()),
        *_server(await server_info(session.store)),
    ]


def _health(found: Sequence[Finding]) -> list[Family]:
    level = Family("rota_health", "gauge", "0 healthy, 1 degraded, 2 critical.")
    level.add(("ok", "warn", "fail").index(verdict(found).level))
    counts = Family("rota_findings", "gauge", "Unusual conditions, by kind, level and queue.")
    for (kind, severity, queue), number in sorted(Counter((f.kind, f.level, f.queue or "") for f in found).items()):
        counts.add(number, kind=kind, level=severity, queue=queue)
    return [level, counts]


def _build() -> Family:
    build = Family("rota_build_info", "gauge", "Always 1; the version is in the label.")
    build.add(1, version=version("rota"))
    return build


def _up(value: int) -> Family:
    up = Family("rota_store_up", "gauge", "1 while the store responds.")
    up.add(value)
    return up


def _queues(infos: Sequence[QueueInfo]) -> list[Family]:
    jobs = Family("rota_queue_jobs", "gauge", "Runs of a queue in each state; ended ones during retention.")
    oldest = Family("rota_queue_oldest_age_seconds", "gauge", "How long the next job to start has been due.")
    paused = Family("rota_queue_paused", "gauge", "1 while the queue is paused.")
    for info in infos:
        for state, count in info.counts.items():
            jobs.add(count, queue=info.name, state=state)
        oldest.add((info.oldest_pending_ms or 0) / 1000, queue=info.name)
        paused.add(int(info.is_paused), queue=info.name)
    return [jobs, oldest, paused]


def _counters(infos: Sequence[QueueInfo], tasks: Mapping[str, Mapping[str, Counts]]) -> list[Family]:
    ended = Family("rota_jobs_total", "counter", "Runs that have ended, by outcome; failed: dead letters.")
    counters = {count: Family(name, "counter", help) for count, (name, help) in COUNTERS.items()}
    totals = {total: Family(name, "counter", help) for total, (name, help) in TOTALS.items()}
    for queue, by_task in tasks.items():
        for task, counted in by_task.items():
            for outcome, count in OUTCOMES.items():
                ended.add(getattr(counted, count), queue=queue, task=task, outcome=outcome)
            for count, family in counters.items():
                family.add(getattr(counted, count), queue=queue, task=task)
    for info in infos:
        for total, family in totals.items():
            family.add(info.totals[total], queue=info.name)
    return [ended, *counters.values(), *totals.values()]


def _times(tasks: Mapping[str, Mapping[str, Counts]]) -> list[Family]:
    wait = Family("rota_job_wait_seconds", "histogram", "Time from due to the start of an attempt.")
    run = Family("rota_job_run_seconds", "histogram", "Duration of attempts that completed or failed.")
    for queue, by_task in tasks.items():
        for task, counted in by_task.items():
            wait.samples.extend(_histogram(counted.wait, queue, task))
            run.samples.extend(_histogram(counted.run, queue, task))
    return [wait, run]


def _histogram(times: Times, queue: str, task: str) -> list[Sample]:
    starts = [0, *(bucket + 1 for bucket in _BOUNDS)]
    ends = [*(bucket + 1 for bucket in _BOUNDS), len(times.buckets)]
    counts = [sum(times.buckets[start:end]) for start, end in zip(starts, ends, strict=True)]
    bounds = [BOUNDS_MS[bucket] / 1000 for bucket in _BOUNDS]
    return histogram_samples({"queue": queue, "task": task}, bounds, counts, times.total_ms / 1000)


def _workers(infos: Sequence[QueueInfo], workers: Sequence[WorkerInfo]) -> list[Family]:
    alive = [worker for worker in workers if worker.status == "ALIVE"]
    count = Family("rota_workers", "gauge", "Workers by state; dead: stopped responding without a clean shutdown.")
    states = Counter({"active": 0, "waiting": 0, "draining": 0})
    states.update(str(worker.info.get("state", "active")) for worker in alive)
    states["dead"] = sum(w.status == "DEAD" and w.info.get("state") != "stopped" for w in workers)
    for state, number in states.items():
        count.add(number, state=state)
    slots = Family("rota_worker_slots", "gauge", "Slots of live workers.")
    busy = sum(int(worker.info.get("busy", 0)) for worker in alive)
    slots.add(busy, state="busy")
    slots.add(max(0, sum(int(worker.info.get("slots", 0)) for worker in alive) - busy), state="free")
    serving = Family("rota_queue_workers", "gauge", "Live workers that serve a queue.")
    for info in infos:
        serving.add(sum(worker.serves(info.name) for worker in alive), queue=info.name)
    return [count, slots, serving]


def _locks_schedules_workflows(gauges: Sequence[QueueGauges], workflow_gauges: WorkflowGauges) -> list[Family]:
    locks = Family("rota_queue_locks", "gauge", "Locks held by a job, or assigned to the next one.")
    waiting = Family("rota_queue_lock_waiting", "gauge", "Unfinished jobs that wait for a lock.")
    schedules = Family("rota_schedules", "gauge", "Schedules of a queue.")
    lag = Family("rota_schedule_lag_seconds", "gauge", "How long the oldest unfired tick has been due.")
    outbox = Family("rota_queue_outbox", "gauge", "Ended jobs whose dependents have not been notified.")
    stopping = Family("rota_queue_stopping", "gauge", "Cancelled jobs whose handler has not stopped yet.")
    for one in gauges:
        locks.add(one.locks, queue=one.queue)
        waiting.add(one.lock_waiting, queue=one.queue)
        schedules.add(one.schedules, queue=one.queue, state="active")
        schedules.add(one.paused_schedules, queue=one.queue, state="paused")
        lag.add(one.schedule_lag_ms / 1000, queue=one.queue)
        outbox.add(one.outbox, queue=one.queue)
        stopping.add(one.stopping, queue=one.queue)
    workflows = Family(
        "rota_workflows", "gauge", "Workflows by state; kept: all of them; held: failed, waiting for a resume."
    )
    workflows.add(workflow_gauges.kept, state="kept")
    workflows.add(workflow_gauges.stuck, state="held")
    workflows.add(workflow_gauges.awaiting_decision, state="undecided")
    return [locks, waiting, schedules, lag, outbox, stopping, workflows]


def _autoscaler(record: ScalingRecord) -> list[Family]:
    """Returns the state of the pool after the latest planning round; nothing where no autoscaler has ever run."""
    if record.latest is None:
        return []
    up = Family("rota_autoscaler_up", "gauge", "1 while a planner holds the lease.")
    up.add(int(record.holder is not None))
    paused = Family("rota_autoscaler_paused", "gauge", "1 while the autoscaler is paused.")
    paused.add(int(bool(record.settings.is_paused)))
    workers = Family("rota_autoscaler_workers", "gauge", "Workers of the pool, by state; wanted: what was decided.")
    for state in ("wanted", "running", "booting", "draining"):
        workers.add(getattr(record.latest, state), state=state)
    hold = Family("rota_autoscaler_hold", "gauge", "1 if the latest round could not decide, and changed nothing.")
    hold.add(int(record.latest.is_hold))
    decisions = Family("rota_autoscaler_decisions_total", "counter", "Decisions stored.")
    decisions.add(record.decisions)
    age = Family("rota_autoscaler_last_round_seconds", "gauge", "Time since the latest planning round.")
    age.add(max(0, record.now - record.latest.at) / 1000)
    wait = Family("rota_autoscaler_oldest_wait_seconds", "gauge", "Longest wait that the latest round observed.")
    wait.add((record.latest.oldest_wait_ms or 0) / 1000)
    return [up, paused, workers, hold, decisions, age, wait, *_autoscaler_settings(record.info)]


def _autoscaler_settings(info: PlannerInfo | None) -> list[Family]:
    """Returns the settings in force; nothing while no planner holds the lease."""
    if info is None:
        return []
    limit = Family("rota_autoscaler_limit_workers", "gauge", "Least and greatest number of workers.")
    limit.add(info.min_workers, bound="min")
    limit.add(info.max_workers, bound="max")
    if info.target_wait_ms is None:
        return [limit]
    target = Family("rota_autoscaler_target_wait_seconds", "gauge", "Jobs should start within this time.")
    target.add(info.target_wait_ms / 1000)
    return [limit, target]


def _server(info: Mapping[str, Any]) -> list[Family]:
    """Returns memory and persistence of the node with the worst values; nothing the server does not report."""
    found: list[Family] = []

    def add(name: str, help: str, field: str, value: Any = None) -> None:
        if field in info:
            one = Family(name, "counter" if name.endswith("_total") else "gauge", help)
            one.add(float(info[field]) if value is None else float(value))
            found.append(one)

    add("rota_store_memory_bytes", "Memory in use.", "used_memory")
    add("rota_store_memory_limit_bytes", "maxmemory; 0 if there is none.", "maxmemory")
    add("rota_store_evicted_keys_total", "Keys evicted by the server: lost jobs.", "evicted_keys")
    add("rota_store_clients", "Connections.", "connected_clients")
    add("rota_store_aof_enabled", "1 if accepted jobs survive a crash.", "aof_enabled")
    policy = info.get("maxmemory_policy") == "noeviction"
    add(
        "rota_store_noeviction", "1 if a full server refuses jobs instead of evicting them.", "maxmemory_policy", policy
    )
    writes = Family("rota_store_last_write_ok", "gauge", "1 if the last write to disk succeeded.")
    for kind, status in (("aof", "aof_last_write_status"), ("rdb", "rdb_last_bgsave_status")):
        if status in info:
            writes.add(int(info[status] == "ok"), kind=kind)
    return [*found, writes]
