"""Metrics of queues: counts over time, totals and load."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Final

import msgspec

from rota.client.session import Session
from rota.core.ids import checked_queue
from rota.core.job_options import checked_time_ms
from rota.core.metric_series import (
    HOUR_MS,
    HOURS_KEPT,
    MINUTE_MS,
    MINUTES_KEPT,
    Counts,
    Series,
    add_counts,
    merge_series,
    series,
)
from rota.core.retry import Seconds, to_ms
from rota.core.shards import base_of
from rota.errors import InvalidOption
from rota.store.compute_in_thread import compute
from rota.store.read_metric_counters import QueueCounters
from rota.store.reads import Pause, QueueInfo, WorkerInfo, merge_shards

#: Minutes over which rates are computed.
WINDOW: Final = 5
#: Seconds for which `QueueLoad.due` counts jobs that fall due.
DUE_WITHIN_S: Final = (60, 300, 900)
MAX_POINTS: Final = 1_500


class QueueLoad(msgspec.Struct, frozen=True):
    """The load of a queue: its jobs, its rates and its workers. The input of an autoscaler."""

    queue: str
    at: int
    is_paused: bool
    counts: dict[str, int]
    #: For how long the next job to start has been due, ms; None when none is pending.
    oldest_wait_ms: int | None
    #: Jobs per second over the last minutes: enqueued; ended in any state.
    arrivals_per_second: float
    services_per_second: float
    #: Mean duration of an attempt; None when none has ended in the last minutes.
    mean_run_ms: float | None
    #: All counters over the last five minutes.
    last_5m: Counts
    #: Seconds from now -> scheduled jobs that fall due until then.
    due: dict[int, int]
    #: Of the live workers that serve the queue: their number, their slots, and how many slots are busy.
    workers: int
    slots: int
    busy: int
    #: Who paused it, when and why; None unless it is paused.
    pause: Pause | None = None
    has_paused_tasks: bool = False


async def read_metrics(
    session: Session,
    *,
    queue: str | None,
    task: str | None,
    since: Seconds | datetime,
    step: Seconds | None,
    until: datetime | None = None,
) -> Series:
    """See `Rota.metrics`."""
    clock = await session.views.now()
    now = clock if until is None else min(clock, checked_time_ms(until, "until"))
    start = checked_time_ms(since, "since") if isinstance(since, datetime) else now - to_ms(since, "since")
    if start >= now:
        raise InvalidOption("since", f"{since!r} is not {'in the past' if until is None else 'before until'}")
    is_fine = start >= clock - MINUTES_KEPT * MINUTE_MS
    unit, unit_ms = ("minute", MINUTE_MS) if is_fine else ("hour", HOUR_MS)
    step_ms = unit_ms if step is None else to_ms(step, "step")
    if step_ms == 0 or step_ms % unit_ms:
        kept = "whole minutes" if is_fine else "whole hours: minutes are kept for a day"
        raise InvalidOption("step", f"{step!r} is not a number of {kept}")
    start = max(start, clock - HOURS_KEPT * HOUR_MS) // step_ms * step_ms
    if (now - start) / step_ms > MAX_POINTS:
        raise InvalidOption("step", f"{step!r} makes more than {MAX_POINTS:,} points")
    # A step that is longer than the retention begins before the first stored minute or hour.
    first = max(start, clock - (MINUTES_KEPT if is_fine else HOURS_KEPT) * unit_ms)
    found = await session.counters.read(await _names(session, queue), unit, first // unit_ms, now // unit_ms)
    of_one = partial(series, since=start, until=now, step_ms=step_ms, unit_ms=unit_ms, queue=queue, task=task)
    intervals = sum(len(counter.intervals) for counter in found)
    return await compute(intervals + (now - start) // step_ms * len(found), _sum_series, found, task, of_one)


def _sum_series(found: Sequence[QueueCounters], task: str | None, of_one: Callable[..., Series]) -> Series:
    if not found:
        return of_one({}, None, queue=None)
    parts = [of_one(counter.intervals, counter.numbers_of(task)) for counter in found]
    return msgspec.structs.replace(merge_series(parts), queue=parts[0].queue)


async def read_totals(session: Session, queue: str | None) -> dict[str, dict[str, Counts]]:
    """See `Rota.totals`."""
    names = await _names(session, queue)
    found: dict[str, dict[str, Counts]] = {}
    for name, counter in zip(names, await session.counters.read(names), strict=True):
        of_queue = found.setdefault(base_of(name), {})
        for task, counts in counter.total_by_task().items():
            of_queue[task] = add_counts((of_queue[task], counts)) if task in of_queue else counts
    return found


async def read_by_task(session: Session, *, queue: str | None, since: Seconds) -> dict[str, dict[str, Counts]]:
    """See `Rota.metrics_by_task`."""
    names = await _names(session, queue)
    now = await session.views.now()
    start = now - to_ms(since, "since")
    is_fine = start >= now - MINUTES_KEPT * MINUTE_MS
    unit, unit_ms = ("minute", MINUTE_MS) if is_fine else ("hour", HOUR_MS)
    first = max(start, now - HOURS_KEPT * HOUR_MS) // unit_ms
    counters = await session.counters.read(names, unit, first, now // unit_ms)
    return await compute(sum(len(counter.intervals) for counter in counters), _sum_by_task, names, counters)


def _sum_by_task(names: Sequence[str], counters: Sequence[QueueCounters]) -> dict[str, dict[str, Counts]]:
    found: dict[str, dict[str, Counts]] = {}
    for name, counter in zip(names, counters, strict=True):
        of_queue = found.setdefault(base_of(name), {})
        for task, counts in counter.recent_by_task().items():
            of_queue[task] = add_counts((of_queue[task], counts)) if task in of_queue else counts
    return found


async def read_minutes(session: Session, minutes: int) -> dict[str, list[Counts]]:
    """Returns, by queue, the counts of each of the last minutes, the current one last."""
    names = await _names(session, None)
    now = await session.views.now()
    last = now // MINUTE_MS
    since = (last - minutes + 1) * MINUTE_MS
    by_queue: dict[str, list[Series]] = {}
    for name, counter in zip(
        names, await session.counters.read(names, "minute", last - minutes + 1, last), strict=True
    ):
        of_name = series(counter.intervals, None, since=since, until=now, step_ms=MINUTE_MS, unit_ms=MINUTE_MS)
        by_queue.setdefault(base_of(name), []).append(of_name)
    return {queue: [point.counts for point in merge_series(parts).points] for queue, parts in by_queue.items()}


async def read_loads(
    session: Session, queues: Sequence[str] | None, workers: Sequence[WorkerInfo] | None = None
) -> list[QueueLoad]:
    """See `Rota.loads`."""
    names = (
        [name for queue in queues for name in await _names(session, queue)] if queues else await _names(session, None)
    )
    now = await session.views.now()
    minute = now // MINUTE_MS
    start = (minute - WINDOW) * MINUTE_MS
    infos = merge_shards(await session.views.queue_infos(names))
    counters = await session.counters.read(names, "minute", minute - WINDOW, minute)
    workers = await session.views.workers() if workers is None else workers
    due_of = await session.views.due_within(names, now, DUE_WITHIN_S)
    loads: list[QueueLoad] = []
    for info in infos:
        shards = [name for name in names if base_of(name) == info.name]
        last_5m = add_counts(
            series(counter.intervals, None, since=start, until=now, step_ms=MINUTE_MS, unit_ms=MINUTE_MS).total
            for name, counter in zip(names, counters, strict=True)
            if name in shards
        )
        serving = [worker for worker in workers if any(worker.serves(name) for name in shards)]
        due = {seconds: sum(due_of[name][seconds] for name in shards) for seconds in DUE_WITHIN_S}
        loads.append(_load(info, last_5m, serving, due, now, (now - start) / 1000))
    return loads


async def _names(session: Session, queue: str | None) -> list[str]:
    return await session.shards.names_of_all(checked_queue(queue) if queue else None)


def _load(
    info: QueueInfo, last_5m: Counts, serving: Sequence[WorkerInfo], due: dict[int, int], now: int, seconds: float
) -> QueueLoad:
    return QueueLoad(
        queue=info.name,
        at=now,
        is_paused=info.is_paused,
        counts=info.counts,
        oldest_wait_ms=info.oldest_pending_ms,
        arrivals_per_second=last_5m.enqueued / seconds,
        services_per_second=(last_5m.completed + last_5m.dead + last_5m.cancelled) / seconds,
        mean_run_ms=last_5m.run.mean_ms,
        last_5m=last_5m,
        due=due,
        workers=len(serving),
        slots=sum(int(worker.info.get("slots", 0)) for worker in serving),
        busy=sum(int(worker.info.get("busy", 0)) for worker in serving),
        pause=info.pause,
        has_paused_tasks=info.has_paused_tasks,
    )
