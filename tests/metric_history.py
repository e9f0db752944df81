"""Writes counters of past minutes and hours into a server, as if jobs had run then."""

from __future__ import annotations

import time

import msgspec

from rota import Rota
from rota.client.session import sessions_of
from rota.core.metric_series import HOUR_MS, MINUTE_MS, WIDTH, Counts
from tests.core.health_history import times_of
from tests.servers import Server


def ended(runs: int, run_ms: float, *, failed: int = 0, waited_ms: float = 10) -> Counts:
    """The counts of runs that took about equally long."""
    return Counts(
        enqueued=runs,
        started=runs,
        completed=runs - failed,
        failed=failed,
        retried=failed,
        wait=times_of([waited_ms], runs),
        run=times_of([run_ms], runs),
    )


def write_hours(rota: Rota, server: Server, queue: str, counts: Counts, *, task: str, hours_ago: list[int]) -> None:
    """Stores the same counts for past hours."""
    now = int(time.time() * 1000) // HOUR_MS
    _write(rota, server, queue, task, "hour_counters", [now - ago for ago in hours_ago], counts)


def write_minutes(rota: Rota, server: Server, queue: str, counts: Counts, *, task: str, minutes_ago: list[int]) -> None:
    """Stores the same counts for past minutes."""
    now = int(time.time() * 1000) // MINUTE_MS
    _write(rota, server, queue, task, "minute_counters", [now - ago for ago in minutes_ago], counts)


def write_usual_days(rota: Rota, server: Server, queue: str, *, task: str, run_ms: float) -> None:
    """Stores a week in which the task ran for so long at this hour."""
    days = [24 * day for day in range(1, 8)]
    write_hours(rota, server, queue, ended(500, run_ms), task=task, hours_ago=days)


def _write(rota: Rota, server: Server, queue: str, task: str, key: str, numbers: list[int], counts: Counts) -> None:
    keys = sessions_of(rota).keys
    with server.client() as client:
        client.sadd(keys.shared("queues"), queue)
        known = client.hget(keys.queue(queue, "task_numbers"), task)
        number = int(known) if known else 2 + client.hlen(keys.queue(queue, "task_numbers"))
        client.hset(keys.queue(queue, "task_numbers"), task, number)
        first = (number - 1) * WIDTH
        words = [word for at, amount in enumerate(_numbers(counts)) if amount for word in (first + at, amount)]
        for interval in numbers:
            client.set(keys.queue(queue, key, str(interval)), msgspec.msgpack.encode(words), ex=90_000)


def _numbers(counts: Counts) -> list[int]:
    return [
        counts.enqueued,
        counts.started,
        counts.completed,
        counts.failed,
        counts.retried,
        counts.dead,
        counts.cancelled,
        counts.stalled,
        counts.wait.total_ms,
        counts.run.total_ms,
        *counts.wait.buckets,
        *counts.run.buckets,
    ]
