"""Details of queues and tasks as JSON values, with a short-lived cache for all callers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from rota.core.format_iso_time import iso_time, iso_time_or_none
from rota.core.health.queue_rules import drain_ms
from rota.core.health.situation import RunningJob
from rota.core.health.usual_values import Usual
from rota.core.job_record import JobRecord
from rota.core.metric_series import Series
from rota.core.shards import base_of
from rota.core.times_and_errors_of_sampled_jobs import ErrorGroup, JobTimes, ran_ms, times_of, waited_ms
from rota.monitoring.current_alerts import is_recently_dead
from rota.monitoring.queue_and_task_detail import LISTED, Detail, DetailReader, ScheduleSummary
from rota.server import serializers
from rota.server.ttl_cache import TtlCache
from rota.store.reads import WorkerInfo

#: How long a detail is used for all callers.
DETAIL_S: Final = 3.0
#: Details that are cached at a time.
MAX_DETAILS: Final = 200


class DetailCache:
    """Details by queue and task."""

    def __init__(self, reader: DetailReader) -> None:
        self._reader = reader
        self._known: dict[tuple[str | None, str | None], TtlCache[Detail]] = {}

    async def get(self, queue: str | None, task: str | None) -> Detail:
        """Returns a detail that is at most three seconds old."""
        key = (queue, task)
        if key not in self._known:
            if len(self._known) >= MAX_DETAILS:
                self._known.clear()
            self._known[key] = TtlCache(partial(self._reader.read, queue=queue, task=task), DETAIL_S)
        return await self._known[key].get()


def detail_json(
    detail: Detail,
    pending: int | None,
    workers: Sequence[WorkerInfo],
    findings: Sequence[dict[str, Any]],
    may_see: Callable[[str], bool],
) -> dict[str, Any]:
    """Returns the parts that queues and tasks have in common.

    `pending` is None for a task, whose pending jobs are not counted. Of the workers' queues those are shown that the
    caller `may_see`.
    """
    seconds = 300.0
    arrivals, services = detail.now.enqueued / seconds, _ended(detail) / seconds
    return {
        "at": iso_time(detail.at),
        "rates": {
            "arrivals_per_second": arrivals,
            "services_per_second": services,
            "drain_ms": drain_ms(pending, arrivals, services) if pending is not None else None,
        },
        "now": serializers.counts_json(detail.now),
        "hour": serializers.counts_json(detail.series.total),
        "usual": _usual_json(detail.usual),
        "running": _running_times(detail.running),
        "recent_runs": _times_json(detail.runs),
        "recent_waits": _times_json(detail.waits),
        "step_ms": detail.series.step_ms,
        "points": points_json(detail.series),
        "errors": [_error_json(group) for group in detail.errors],
        "slowest": [job_line_json(record) for record in detail.slowest],
        "latest": [job_line_json(record) for record in detail.latest],
        "longest_running": [_running_line_json(job, detail.at) for job in detail.running[:LISTED]],
        "workers": [_worker_json(worker, may_see) for worker in workers],
        "schedules": [_schedule_json(one) for one in detail.schedules],
        "findings": findings,
    }


def workers_of(workers: Sequence[WorkerInfo], queues: Sequence[str]) -> list[WorkerInfo]:
    """Returns the workers that serve one of the queues, and those that died lately and did."""
    names = set(queues)
    return [
        worker
        for worker in workers
        if (worker.status == "ALIVE" or is_recently_dead(worker))
        and names & {base_of(queue) for queue in worker.info.get("queues", ())}
    ]


def points_json(series: Series) -> list[dict[str, Any]]:
    """Returns the steps of a series."""
    return [
        {
            "at": iso_time(point.at),
            "completed_per_second": series.per_second(point),
            **serializers.counts_json(point.counts),
        }
        for point in series.points
    ]


def job_line_json(record: JobRecord) -> dict[str, Any]:
    """Returns a job with its durations."""
    return {
        "jobId": record.ref.full_id,
        "run": record.ref.run or "",
        "type": record.task,
        "queue": record.ref.queue,
        "status": record.state.value.upper(),
        "waited_ms": waited_ms(record),
        "ran_ms": ran_ms(record),
        "started_at": iso_time_or_none(record.claimed_at),
        "ended_at": iso_time_or_none(record.ended_at),
        "worker": record.worker or None,
        "error": f"{record.error.type}: {record.error.message}"[:500] if record.error is not None else None,
    }


def _ended(detail: Detail) -> int:
    return detail.now.completed + detail.now.dead + detail.now.cancelled


def _usual_json(usual: Usual | None) -> dict[str, Any] | None:
    if usual is None:
        return None
    return {
        "source": usual.source,
        "samples": usual.samples,
        "run_ms": usual.run_mean_ms,
        "run_p99_ms": usual.run_p99_ms,
        "wait_p95_ms": usual.wait_p95_ms,
        "failure_rate": usual.failure_rate,
    }


def _running_times(running: Sequence[RunningJob]) -> dict[str, Any]:
    times = times_of(job.age_ms for job in running)
    return {"count": len(running), "oldest_ms": times.max_ms, "p50_ms": times.p50_ms}


def _times_json(times: JobTimes) -> dict[str, Any]:
    return {
        "sample": times.sample,
        "p50_ms": times.p50_ms,
        "p95_ms": times.p95_ms,
        "p99_ms": times.p99_ms,
        "max_ms": times.max_ms,
    }


def _error_json(group: ErrorGroup) -> dict[str, Any]:
    return {
        "error": group.type,
        "message": group.message,
        "pattern": group.pattern,
        "count": group.count,
        "dead": group.dead,
        "first_seen": iso_time(group.first_seen),
        "last_seen": iso_time(group.last_seen),
        "job": group.job,
    }


def _running_line_json(job: RunningJob, now: int) -> dict[str, Any]:
    return {
        "jobId": job.job,
        "run": job.run,
        "type": job.task,
        "queue": job.queue,
        "status": "PROCESSING",
        "waited_ms": None,
        "ran_ms": job.age_ms,
        "started_at": iso_time(now - job.age_ms),
        "ended_at": None,
        "worker": job.worker,
        "error": None,
    }


def _worker_json(worker: WorkerInfo, may_see: Callable[[str], bool]) -> dict[str, Any]:
    info = worker.info
    return {
        "id": worker.id,
        "name": worker.name,
        "host": info.get("host", ""),
        "status": worker.status,
        "state": info.get("state", ""),
        "slots": info.get("slots", 0),
        "busy": info.get("busy", 0),
        "queues": [queue for queue in info.get("queues", []) if may_see(queue)],
    }


def _schedule_json(one: ScheduleSummary) -> dict[str, Any]:
    return {
        "id": one.id,
        "words": one.words,
        "type": one.task,
        "is_paused": one.is_paused,
        "next_run": iso_time_or_none(one.next_run),
        "last_run": iso_time_or_none(one.last_run),
        "last_job": one.last_job,
        "last_status": one.last_state.value.upper() if one.last_state is not None else None,
    }
