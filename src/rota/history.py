"""What has happened in the queues, and how loaded they are: for charts, for alarms and for whoever starts workers."""

from __future__ import annotations

from collections.abc import Sequence
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
    add,
    merged,
    series,
)
from rota.core.job import base_of, checked_queue, checked_time_ms
from rota.core.retry import Seconds, to_ms
from rota.errors import InvalidOption
from rota.link import Link
from rota.store.views import QueueInfo, WorkerInfo, merge_shards

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
    #: All that was counted over the last minutes.
    lately: Counted
    #: Seconds ahead -> scheduled jobs that fall due until then.
    due: dict[int, int]
    #: Of the workers that live and serve the queue: how many, their slots, and how many of those are busy.
    workers: int
    slots: int
    busy: int


async def read_history(
    link: Link, *, queue: str | None, task: str | None, since: Seconds | datetime, step: Seconds | None
) -> Series:
    """See `Rota.history`."""
    now = await link.views.now()
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
    # A step that is longer than what is kept begins before all that is known.
    first = max(start, now - (MINUTES_KEPT if is_fine else HOURS_KEPT) * unit_ms)
    found = await link.tallies.read(await _names(link, queue), unit, first // unit_ms, now // unit_ms)
    parts = [
        series(
            tally.pages, tally.slots_of(task), since=start, until=now, step_ms=step_ms, unit_ms=unit_ms, queue=queue,
            task=task,
        )
        for tally in found
    ]  # fmt: skip
    if not parts:
        return series({}, None, since=start, until=now, step_ms=step_ms, unit_ms=unit_ms, task=task)
    return msgspec.structs.replace(merged(parts), queue=queue)


async def read_totals(link: Link, queue: str | None) -> dict[str, dict[str, Counted]]:
    """See `Rota.totals`."""
    names = await _names(link, queue)
    found: dict[str, dict[str, Counted]] = {}
    for name, tally in zip(names, await link.tallies.read(names), strict=True):
        of_queue = found.setdefault(base_of(name), {})
        for task, counts in tally.by_task().items():
            of_queue[task] = add((of_queue[task], counts)) if task in of_queue else counts
    return found


async def read_by_task(link: Link, *, queue: str | None, since: Seconds) -> dict[str, dict[str, Counted]]:
    """See `Rota.history_by_task`."""
    names = await _names(link, queue)
    now = await link.views.now()
    start = now - to_ms(since, "since")
    is_fine = start >= now - MINUTES_KEPT * MINUTE_MS
    unit, unit_ms = ("minute", MINUTE_MS) if is_fine else ("hour", HOUR_MS)
    found: dict[str, dict[str, Counted]] = {}
    first = max(start, now - HOURS_KEPT * HOUR_MS) // unit_ms
    for name, tally in zip(names, await link.tallies.read(names, unit, first, now // unit_ms), strict=True):
        of_queue = found.setdefault(base_of(name), {})
        for task, counts in tally.lately().items():
            of_queue[task] = add((of_queue[task], counts)) if task in of_queue else counts
    return found


async def read_minutes(link: Link, minutes: int) -> dict[str, list[Counted]]:
    """Queue -> what each of the last minutes brought, the present one last."""
    names = await _names(link, None)
    now = await link.views.now()
    last = now // MINUTE_MS
    since = (last - minutes + 1) * MINUTE_MS
    by_queue: dict[str, list[Series]] = {}
    for name, tally in zip(names, await link.tallies.read(names, "minute", last - minutes + 1, last), strict=True):
        of_name = series(tally.pages, None, since=since, until=now, step_ms=MINUTE_MS, unit_ms=MINUTE_MS)
        by_queue.setdefault(base_of(name), []).append(of_name)
    return {queue: [point.counted for point in merged(parts).points] for queue, parts in by_queue.items()}


async def read_loads(
    link: Link, queues: Sequence[str] | None, workers: Sequence[WorkerInfo] | None = None
) -> list[Load]:
    """See `Rota.loads`."""
    names = [name for queue in queues for name in await _names(link, queue)] if queues else await _names(link, None)
    now = await link.views.now()
    minute = now // MINUTE_MS
    start = (minute - WINDOW) * MINUTE_MS
    infos = merge_shards(await link.views.queue_infos(names))
    tallies = await link.tallies.read(names, "minute", minute - WINDOW, minute)
    workers = await link.views.workers() if workers is None else workers
    due_of = await link.views.due_within(names, now, AHEAD)
    loads: list[Load] = []
    for info in infos:
        shards = [name for name in names if base_of(name) == info.name]
        lately = add(
            series(tally.pages, None, since=start, until=now, step_ms=MINUTE_MS, unit_ms=MINUTE_MS).total
            for name, tally in zip(names, tallies, strict=True)
            if name in shards
        )
        serving = [worker for worker in workers if any(worker.serves(name) for name in shards)]
        due = {ahead: sum(due_of[name][ahead] for name in shards) for ahead in AHEAD}
        loads.append(_load(info, lately, serving, due, now, (now - start) / 1000))
    return loads


async def _names(link: Link, queue: str | None) -> list[str]:
    return await link.names_of(checked_queue(queue)) if queue else await link.views.queues()


def _load(
    info: QueueInfo, lately: Counted, serving: Sequence[WorkerInfo], due: dict[int, int], now: int, seconds: float
) -> Load:
    return Load(
        queue=info.name,
        at=now,
        is_paused=info.is_paused,
        counts=info.counts,
        oldest_wait_ms=info.oldest_pending_ms,
        arrivals_per_second=lately.enqueued / seconds,
        services_per_second=(lately.completed + lately.dead + lately.cancelled) / seconds,
        mean_run_ms=lately.run.mean_ms,
        lately=lately,
        due=due,
        workers=len(serving),
        slots=sum(int(worker.info.get("slots", 0)) for worker in serving),
        busy=sum(int(worker.info.get("busy", 0)) for worker in serving),
    )
