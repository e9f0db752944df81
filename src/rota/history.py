"""What has happened in the queues, and how loaded they are: for charts, for alarms and for whoever starts workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec

from rota.core.history import (
    HOUR_MS,
    HOURS_KEPT,
    MINUTE_MS,
    MINUTES_KEPT,
    Counted,
    Series,
    merged,
    series,
)
from rota.core.job import checked_queue, checked_time_ms
from rota.core.retry import Seconds, to_ms
from rota.errors import InvalidOption
from rota.store.tallies import Tallies
from rota.store.views import QueueInfo, Views, WorkerInfo

#: Rates are those of the last minutes.
WINDOW: Final = 5
#: How far ahead `Load.due` looks, in seconds.
AHEAD: Final = (60, 300, 900)
MOST_POINTS: Final = 1_500


class Load(msgspec.Struct, frozen=True):
    """How much there is to do in a queue, and how fast it comes and goes: what an autoscaler needs to know."""

    queue: str
    at: int
    is_paused: bool
    counts: dict[str, int]
    #: How long the next job to start has been due, ms; None when none is pending.
    oldest_wait_ms: int | None
    #: Jobs per second over the last minutes: enqueued; ended in whatever way.
    arrivals_per_second: float
    services_per_second: float
    #: How long an attempt runs on average; None when none has ended lately.
    mean_run_ms: float | None
    #: Seconds ahead -> scheduled jobs that fall due until then.
    due: dict[int, int]
    #: Of the workers that live and serve the queue: how many, their slots, and how many of those are busy.
    workers: int
    slots: int
    busy: int


async def read_history(
    views: Views, tallies: Tallies, *, queue: str | None, task: str | None, since: Seconds | datetime,
    step: Seconds | None,
) -> Series:  # fmt: skip
    """See `Rota.history`."""
    now = await views.now()
    start = checked_time_ms(since, "since") if isinstance(since, datetime) else now - to_ms(since, "since")
    if start >= now:
        raise InvalidOption("since", f"{since!r} is not in the past")
    is_fine = start >= now - MINUTES_KEPT * MINUTE_MS
    unit, unit_ms = ("minute", MINUTE_MS) if is_fine else ("hour", HOUR_MS)
    step_ms = unit_ms if step is None else to_ms(step, "step")
    if step_ms == 0 or step_ms % unit_ms:
        kept = "whole minutes" if is_fine else "whole hours: minutes are kept for a day"
        raise InvalidOption("step", f"{step!r} is not a number of {kept}")
    start = max(start, now - HOURS_KEPT * HOUR_MS) // step_ms * step_ms
    if (now - start) / step_ms > MOST_POINTS:
        raise InvalidOption("step", f"{step!r} makes more than {MOST_POINTS:,} points")
    queues = [checked_queue(queue)] if queue else await views.queues()
    found = await tallies.read(queues, unit, start // unit_ms, now // unit_ms)
    parts = [
        series(
            tally.pages, tally.slots_of(task), since=start, until=now, step_ms=step_ms, unit_ms=unit_ms, queue=queue,
            task=task,
        )
        for tally in found
    ]  # fmt: skip
    if not parts:
        return series({}, None, since=start, until=now, step_ms=step_ms, unit_ms=unit_ms, task=task)
    return parts[0] if len(parts) == 1 else merged(parts)


async def read_totals(views: Views, tallies: Tallies, queue: str | None) -> dict[str, dict[str, Counted]]:
    """See `Rota.totals`."""
    queues = [checked_queue(queue)] if queue else await views.queues()
    return {name: tally.by_task() for name, tally in zip(queues, await tallies.read(queues), strict=True)}


async def read_loads(views: Views, tallies: Tallies, queues: Sequence[str] | None) -> list[Load]:
    """See `Rota.loads`."""
    names = [checked_queue(queue) for queue in queues] if queues else await views.queues()
    now = await views.now()
    minute = now // MINUTE_MS
    infos = await views.queue_infos(names)
    found = await tallies.read(names, "minute", minute - WINDOW, minute)
    workers = await views.workers()
    due = await views.due_within(names, now, AHEAD)
    start = (minute - WINDOW) * MINUTE_MS
    loads: list[Load] = []
    for info, tally in zip(infos, found, strict=True):
        lately = series(tally.pages, None, since=start, until=now, step_ms=MINUTE_MS, unit_ms=MINUTE_MS).total
        loads.append(_load(info, lately, workers, due[info.name], now, (now - start) / 1000))
    return loads


def _load(
    info: QueueInfo, lately: Counted, workers: Sequence[WorkerInfo], due: Mapping[int, int], now: int, seconds: float
) -> Load:
    serving = [worker for worker in workers if worker.serves(info.name)]
    return Load(
        queue=info.name,
        at=now,
        is_paused=info.is_paused,
        counts=info.counts,
        oldest_wait_ms=info.oldest_pending_ms,
        arrivals_per_second=lately.enqueued / seconds,
        services_per_second=(lately.completed + lately.dead + lately.cancelled) / seconds,
        mean_run_ms=lately.run.mean_ms,
        due=dict(due),
        workers=len(serving),
        slots=sum(int(worker.info.get("slots", 0)) for worker in serving),
        busy=sum(int(worker.info.get("busy", 0)) for worker in serving),
    )
