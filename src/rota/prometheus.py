"""What Prometheus scrapes of a store: the same figures from whichever process is asked, as all of them are the store's.

Nothing here is counted in memory, so nothing starts at zero when a server restarts. A scrape costs five round trips and
a handful of lookups for each queue, however many jobs there are.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, Final

from rota.client import Rota
from rota.core.exposition import CONTENT_TYPE, Family, Sample, histogram_samples, render
from rota.core.history import BOUNDS_MS, Counted, Times
from rota.doctor import server_info
from rota.errors import StoreError
from rota.store.gauges import FlowGauges, Gauges, QueueGauges
from rota.store.tallies import Tallies
from rota.store.views import QueueInfo, WorkerInfo

__all__ = ["CONTENT_TYPE", "exposition"]

#: Outcome of a run -> the count of its task that says how often.
OUTCOMES: Final[Mapping[str, str]] = {"completed": "completed", "failed": "dead", "cancelled": "cancelled"}
#: Count of a task -> the counter that it is shown as.
COUNTERS: Final[Mapping[str, tuple[str, str]]] = {
    "enqueued": ("rota_jobs_enqueued_total", "Runs made: by enqueues, schedules, workflows and failure handlers."),
    "started": ("rota_attempts_total", "Attempts begun."),
    "retried": ("rota_retries_total", "Attempts that failed and are made again."),
    "stalled": ("rota_lease_expired_total", "Attempts whose worker vanished."),
}
#: Total of a queue -> the counter that it is shown as.
TOTALS: Final[Mapping[str, tuple[str, str]]] = {
    "redriven": ("rota_redriven_total", "Dead letters that were given another life."),
    "deleted": ("rota_deleted_total", "Runs that were deleted or purged."),
}
#: Every fourth power of two, from 4 ms to 70 min: the store knows each power, which would be many series for each task.
_BOUNDS: Final = range(2, 23, 2)


async def exposition(rota: Rota) -> str:
    """The text of a scrape. A store that does not answer is a figure, too: `rota_store_up` is 0 then."""
    families = [_build()]
    try:
        families += await _families(rota)
    except StoreError:
        families.append(_up(0))
    return render(families)


async def _families(rota: Rota) -> list[Family]:
    link = await rota.checked_link()
    began = time.perf_counter()
    queues = await link.views.queues()
    round_trip = Family("rota_store_roundtrip_seconds", "gauge", "How long the server took to answer just now.")
    round_trip.add(time.perf_counter() - began)
    infos = await link.views.queue_infos(queues)
    workers = await link.views.workers()
    tallies = await Tallies(link.gateway, rota.keys).read(queues)
    tasks = {queue: tally.by_task() for queue, tally in zip(queues, tallies, strict=True)}
    gauges, flows = await Gauges(link.gateway, rota.keys).read(queues)
    return [
        _up(1),
        round_trip,
        *_queues(infos),
        *_counters(infos, tasks),
        *_times(tasks),
        *_workers(infos, workers),
        *_around(gauges, flows),
        *_server(await server_info(link.store)),
    ]


def _build() -> Family:
    build = Family("rota_build_info", "gauge", "Always 1; the version is in the label.")
    build.add(1, version=version("rota"))
    return build


def _up(value: int) -> Family:
    up = Family("rota_store_up", "gauge", "1 while the store answers.")
    up.add(value)
    return up


def _queues(infos: Sequence[QueueInfo]) -> list[Family]:
    jobs = Family("rota_queue_jobs", "gauge", "Runs of a queue in each state; those that have ended while kept.")
    oldest = Family("rota_queue_oldest_age_seconds", "gauge", "How long the next job to start has been due.")
    paused = Family("rota_queue_paused", "gauge", "1 while nothing of the queue is claimed.")
    for info in infos:
        for state, count in info.counts.items():
            jobs.add(count, queue=info.name, state=state)
        oldest.add((info.oldest_pending_ms or 0) / 1000, queue=info.name)
        paused.add(int(info.is_paused), queue=info.name)
    return [jobs, oldest, paused]


def _counters(infos: Sequence[QueueInfo], tasks: Mapping[str, Mapping[str, Counted]]) -> list[Family]:
    ended = Family("rota_jobs_total", "counter", "Runs that have ended, by outcome; failed: for good.")
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


def _times(tasks: Mapping[str, Mapping[str, Counted]]) -> list[Family]:
    wait = Family("rota_job_wait_seconds", "histogram", "From the time that a job was due to the start of an attempt.")
    run = Family("rota_job_run_seconds", "histogram", "How long attempts took that completed or failed.")
    for queue, by_task in tasks.items():
        for task, counted in by_task.items():
            wait.samples.extend(_histogram(counted.wait, queue, task))
            run.samples.extend(_histogram(counted.run, queue, task))
    return [wait, run]


def _histogram(times: Times, queue: str, task: str) -> list[Sample]:
    starts = [0, *(place + 1 for place in _BOUNDS)]
    ends = [*(place + 1 for place in _BOUNDS), len(times.buckets)]
    counts = [sum(times.buckets[start:end]) for start, end in zip(starts, ends, strict=True)]
    bounds = [BOUNDS_MS[place] / 1000 for place in _BOUNDS]
    return histogram_samples({"queue": queue, "task": task}, bounds, counts, times.total_ms / 1000)


def _workers(infos: Sequence[QueueInfo], workers: Sequence[WorkerInfo]) -> list[Family]:
    alive = [worker for worker in workers if worker.status == "ALIVE"]
    count = Family("rota_workers", "gauge", "Workers by what they say of themselves; vanished: silent, without a word.")
    states = Counter({"active": 0, "waiting": 0, "draining": 0})
    states.update(str(worker.info.get("state", "active")) for worker in alive)
    states["vanished"] = sum(w.status == "DEAD" and w.info.get("state") != "stopped" for w in workers)
    for state, number in states.items():
        count.add(number, state=state)
    slots = Family("rota_worker_slots", "gauge", "Slots of the workers that live.")
    busy = sum(int(worker.info.get("busy", 0)) for worker in alive)
    slots.add(busy, state="busy")
    slots.add(max(0, sum(int(worker.info.get("slots", 0)) for worker in alive) - busy), state="free")
    serving = Family("rota_queue_workers", "gauge", "Live workers that serve a queue.")
    for info in infos:
        serving.add(sum(worker.serves(info.name) for worker in alive), queue=info.name)
    return [count, slots, serving]


def _around(gauges: Sequence[QueueGauges], flows: FlowGauges) -> list[Family]:
    locks = Family("rota_queue_locks", "gauge", "Locks that a job holds, or is next to hold.")
    waiting = Family("rota_queue_lock_waiting", "gauge", "Unfinished jobs that ask for a lock and do not have it.")
    schedules = Family("rota_schedules", "gauge", "Schedules of a queue.")
    lag = Family("rota_schedule_lag_seconds", "gauge", "How long a tick has been due that nobody fired.")
    outbox = Family("rota_queue_outbox", "gauge", "Ended jobs whose dependents have not been told.")
    stopping = Family("rota_queue_stopping", "gauge", "Cancelled jobs whose handler has yet to stop.")
    for one in gauges:
        locks.add(one.locks, queue=one.queue)
        waiting.add(one.lock_waiting, queue=one.queue)
        schedules.add(one.schedules, queue=one.queue, state="active")
        schedules.add(one.paused_schedules, queue=one.queue, state="paused")
        lag.add(one.schedule_lag_ms / 1000, queue=one.queue)
        outbox.add(one.outbox, queue=one.queue)
        stopping.add(one.stopping, queue=one.queue)
    workflows = Family("rota_workflows", "gauge", "Workflows: all that are kept; held, until somebody resumes them.")
    workflows.add(flows.kept, state="kept")
    workflows.add(flows.held, state="held")
    workflows.add(flows.undecided, state="undecided")
    return [locks, waiting, schedules, lag, outbox, stopping, workflows]


def _server(info: Mapping[str, Any]) -> list[Family]:
    """Memory and persistence, of the node that is worst off; nothing where the server does not say."""
    found: list[Family] = []

    def tell(name: str, help: str, field: str, value: Any = None) -> None:
        if field in info:
            one = Family(name, "counter" if name.endswith("_total") else "gauge", help)
            one.add(float(info[field]) if value is None else float(value))
            found.append(one)

    tell("rota_store_memory_bytes", "Memory in use.", "used_memory")
    tell("rota_store_memory_limit_bytes", "maxmemory; 0 where there is none.", "maxmemory")
    tell("rota_store_evicted_keys_total", "Keys that the server deleted to make room: lost jobs.", "evicted_keys")
    tell("rota_store_clients", "Connections.", "connected_clients")
    tell("rota_store_aof_enabled", "1 where an accepted job outlives a crash.", "aof_enabled")
    policy = info.get("maxmemory_policy") == "noeviction"
    tell("rota_store_noeviction", "1 where a full server refuses jobs, and deletes none.", "maxmemory_policy", policy)
    writes = Family("rota_store_last_write_ok", "gauge", "1 where the last write to disk succeeded.")
    for kind, status in (("aof", "aof_last_write_status"), ("rdb", "rdb_last_bgsave_status")):
        if status in info:
            writes.add(int(info[status] == "ok"), kind=kind)
    return [*found, writes]
