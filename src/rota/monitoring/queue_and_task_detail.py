"""One queue or one task in detail: its load, its durations, its errors, and its slowest, latest and running jobs.

Histograms count an attempt when it has ended, and an hour of them hides the last minutes. So the detail has three more
views of the durations: the last five minutes, the exact durations of the latest jobs, and the ages of running ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from rota.client.job_listing import Filters, list_jobs
from rota.client.rota import Rota
from rota.client.session import checked_session, sessions_of
from rota.core.health.situation import RunningJob
from rota.core.health.usual_values import Usual
from rota.core.ids import JobRef
from rota.core.job_record import JobRecord
from rota.core.metric_series import MINUTE_MS, Counts, Series, add_counts
from rota.core.state_transitions import JobState
from rota.core.times_and_errors_of_sampled_jobs import (
    ErrorGroup,
    JobTimes,
    group_by_error,
    ran_ms,
    slowest,
    times_of,
    waited_ms,
)
from rota.monitoring.health_reader import HealthReader

#: Jobs of each state that are sampled, and jobs of each list.
SAMPLE: Final = 100
LISTED: Final = 10
#: The span of "now", in minutes, and of the series, in seconds.
NOW_MINUTES: Final = 5
SERIES_S: Final = 3_600
#: A little more than a day, which is read by hours instead of minutes.
DAY_S: Final = 25 * 3_600


class ScheduleSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule and its last job."""

    id: str
    words: str
    task: str
    is_paused: bool
    next_run: int | None
    last_run: int | None
    last_job: str | None
    last_state: JobState | None


class Detail(msgspec.Struct, frozen=True, kw_only=True):
    """A queue or a task at one moment."""

    at: int
    #: The last hour, minute by minute.
    series: Series
    #: The last five minutes.
    now: Counts
    usual: Usual | None
    #: Ages of the attempts in progress; the longest first.
    running: Sequence[RunningJob]
    #: Durations of the latest finished jobs, exact.
    runs: JobTimes
    waits: JobTimes
    latest: Sequence[JobRecord]
    slowest: Sequence[JobRecord]
    errors: Sequence[ErrorGroup]
    schedules: Sequence[ScheduleSummary]
    #: Of a queue: the last hour, by task.
    tasks: dict[str, Counts]
    #: Of a task: the queues in which it had jobs in the last day.
    queues: Sequence[str]


class DetailReader:
    """Reads details. The costs of one do not depend on the number of jobs."""

    def __init__(self, rota: Rota, health: HealthReader) -> None:
        self._rota = rota
        self._health = health

    async def read(self, *, queue: str | None, task: str | None) -> Detail:
        """Returns the detail of a queue, or of a task in one queue or in all."""
        series = await self._rota.metrics(queue=queue, task=task, since=SERIES_S, step=60)
        completed = await self._sample(JobState.COMPLETED, queue, task)
        dead = await self._sample(JobState.FAILED, queue, task)
        retried = [one for one in await self._sample(JobState.SCHEDULED, queue, task) if one.counts.failures]
        finished = sorted([*completed, *dead], key=lambda record: -(record.ended_at or 0))
        situation = await self._health.latest()
        running = [
            job
            for job in situation.running
            if (queue is None or job.queue == queue) and (task is None or job.task == task)
        ]
        by_task = await self._rota.metrics_by_task(queue=queue, since=SERIES_S) if queue and not task else {}
        return Detail(
            at=series.until,
            series=series,
            now=add_counts(
                point.counts for point in series.points if point.at > series.until - NOW_MINUTES * MINUTE_MS - MINUTE_MS
            ),
            usual=await self._usual(queue, task),
            running=sorted(running, key=lambda job: -job.age_ms),
            runs=times_of(map(ran_ms, finished[:SAMPLE])),
            waits=times_of(map(waited_ms, finished[:SAMPLE])),
            latest=finished[:LISTED],
            slowest=slowest(finished, LISTED),
            errors=group_by_error([*dead, *retried])[: 2 * LISTED],
            schedules=await self._schedules(queue, task),
            tasks=by_task.get(queue or "", {}),
            queues=await self._queues_of(task) if task is not None else [],
        )

    async def _queues_of(self, task: str) -> list[str]:
        by_queue = await self._rota.metrics_by_task(since=DAY_S)
        return sorted(queue for queue, tasks in by_queue.items() if task in tasks)

    async def _sample(self, state: JobState, queue: str | None, task: str | None) -> list[JobRecord]:
        page = await list_jobs(
            sessions_of(self._rota),
            state,
            queue=queue,
            filters=Filters.of(task=task),
            cursor=None,
            limit=SAMPLE,
            order="newest",
            max_arguments=0,
        )
        return page.jobs

    async def _usual(self, queue: str | None, task: str | None) -> Usual | None:
        situation = await self._health.latest()
        for one in situation.queues:
            if queue is not None and one.name == queue:
                return one.usual if task is None else one.usual_by_task.get(task)
            if queue is None and task is not None and task in one.usual_by_task:
                return one.usual_by_task[task]
        return None

    async def _schedules(self, queue: str | None, task: str | None) -> list[ScheduleSummary]:
        session = await checked_session(self._rota)
        infos = [info for info in await self._rota.schedules.list(queue=queue) if task is None or info.task == task]
        infos = infos[:LISTED]
        refs = [JobRef.parse(info.last_job) for info in infos if info.last_job is not None]
        records = await session.read_records(refs)
        states = {ref.full_id: record.state for ref, record in zip(refs, records, strict=True) if record is not None}
        return [
            ScheduleSummary(
                id=info.id,
                words=info.words,
                task=info.task,
                is_paused=info.is_paused,
                next_run=round(info.next_runs[0].timestamp() * 1000) if info.next_runs else None,
                last_run=round(info.last_run.timestamp() * 1000) if info.last_run is not None else None,
                last_job=info.last_job,
                last_state=states.get(info.last_job or ""),
            )
            for info in infos
        ]
