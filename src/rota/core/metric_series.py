"""Metrics over time: decodes the counters that the store keeps, and derives rates, percentiles and series from them.

The store counts by queue and task: 64 numbers for each, in the order of `COUNTS`, then two histograms. A histogram has
a bucket for each power of two of milliseconds, so that a percentile is right within a factor of two, at any scale.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

#: Order of the counts; also known to `gather_and_write_counts.lua`.
COUNTS: Final = (
    "enqueued",
    "started",
    "completed",
    "failed",
    "retried",
    "dead",
    "cancelled",
    "stalled",
    "waited_ms",
    "ran_ms",
)
BUCKETS: Final = 27
WIDTH: Final = len(COUNTS) + 2 * BUCKETS
#: Upper ends of the buckets in ms; the last has none. A whole number of ms below 2^n is in bucket n or before.
BOUNDS_MS: Final[Sequence[int]] = tuple(2**n for n in range(BUCKETS - 1))
#: Name for all tasks of a queue beyond the first hundred.
OTHER_TASKS: Final = "__other__"
OTHER_TASK_NUMBER: Final = 1
MINUTE_MS: Final = 60_000
HOUR_MS: Final = 3_600_000
#: How many minutes and hours of history are kept.
MINUTES_KEPT: Final = 24 * 60
HOURS_KEPT: Final = 30 * 24

#: What one minute or hour added: (task number - 1) · 64 + index of the count -> amount.
Increments = Mapping[int, int]


class Times(msgspec.Struct, frozen=True):
    """Durations: their number, their sum, and a histogram."""

    count: int = 0
    total_ms: int = 0
    buckets: tuple[int, ...] = (0,) * BUCKETS

    @property
    def mean_ms(self) -> float | None:
        """Mean duration; None if there is none."""
        return self.total_ms / self.count if self.count else None

    def percentile_ms(self, share: float) -> float | None:
        """Returns the duration that this share of all stayed below, within a factor of two; None if there is none."""
        if not self.count:
            return None
        rank, below = share * self.count, 0
        for bucket, amount in enumerate(self.buckets):
            if amount and below + amount >= rank:
                low, high = (2 ** (bucket - 1), 2**bucket) if bucket else (0, 1)
                return low + (high - low) * (rank - below) / amount
            below += amount
        return float(2**BUCKETS)

    @property
    def p50_ms(self) -> float | None:
        """Median."""
        return self.percentile_ms(0.5)

    @property
    def p95_ms(self) -> float | None:
        """95th percentile."""
        return self.percentile_ms(0.95)

    @property
    def p99_ms(self) -> float | None:
        """99th percentile."""
        return self.percentile_ms(0.99)


class Counts(msgspec.Struct, frozen=True):
    """Counts of a task or a queue over a period.

    `failed` counts attempts, `dead` jobs that became dead letters, `retried` failures with another attempt to come,
    `stalled` attempts whose worker died. `wait` is the time from due to start, for each attempt that started; `run` the
    time from start to end, for each that completed or failed.
    """

    enqueued: int = 0
    started: int = 0
    completed: int = 0
    failed: int = 0
    retried: int = 0
    dead: int = 0
    cancelled: int = 0
    stalled: int = 0
    wait: Times = Times()
    run: Times = Times()

    @property
    def failure_rate(self) -> float | None:
        """Share of failed and stalled attempts among those that ended in one of these ways, or completed; None if there
        are none.
        """
        failed = self.failed + self.stalled
        return failed / (self.completed + failed) if self.completed + failed else None


class Point(msgspec.Struct, frozen=True):
    """The counts of one step of a series, which starts at `at`."""

    at: int
    counts: Counts


class Series(msgspec.Struct, frozen=True):
    """Counts in equal steps of time. The last step may be incomplete: `until` is the server's time of the query."""

    queue: str | None
    task: str | None
    step_ms: int
    since: int
    until: int
    points: list[Point]

    @property
    def total(self) -> Counts:
        """Sum of all steps."""
        return add_counts(point.counts for point in self.points)

    def per_second(self, point: Point) -> float:
        """Returns jobs completed per second in the elapsed part of a step."""
        return point.counts.completed / (max(1, min(self.step_ms, self.until - point.at)) / 1000)


def counts_from(numbers: Sequence[int]) -> Counts:
    """Decodes the 64 numbers of one task."""
    first, second = len(COUNTS), len(COUNTS) + BUCKETS
    wait, run = tuple(numbers[first:second]), tuple(numbers[second : second + BUCKETS])
    enqueued, started, completed, failed, retried, dead, cancelled, stalled, waited_ms, ran_ms = numbers[:first]
    return Counts(
        enqueued,
        started,
        completed,
        failed,
        retried,
        dead,
        cancelled,
        stalled,
        wait=Times(sum(wait), waited_ms, wait),
        run=Times(sum(run), ran_ms, run),
    )


def add_counts(parts: Iterable[Counts]) -> Counts:
    """Returns the sum of several counts."""
    numbers = [0] * WIDTH
    for part in parts:
        for index, amount in enumerate(_numbers(part)):
            numbers[index] += amount
    return counts_from(numbers)


def series(
    minutes: Mapping[int, Increments],
    task_numbers: Sequence[int] | None,
    *,
    since: int,
    until: int,
    step_ms: int,
    unit_ms: int,
    queue: str | None = None,
    task: str | None = None,
) -> Series:
    """Returns the series of what each minute (or hour: `unit_ms`) added, for some tasks or all, gaps included."""
    first = since // step_ms
    sums: dict[int, list[int]] = {}
    for number, added in minutes.items():
        at = number * unit_ms
        if not since <= at < until:
            continue
        numbers = sums.setdefault(at // step_ms, [0] * WIDTH)
        for position, amount in added.items():
            task_index, count = divmod(position, WIDTH)
            if task_numbers is None or task_index + 1 in task_numbers:
                numbers[count] += amount
    steps = range(first, -(-until // step_ms))
    nothing = Counts()
    points = [Point(step * step_ms, counts_from(sums[step]) if step in sums else nothing) for step in steps]
    return Series(queue, task, step_ms, first * step_ms, until, points)


def merge_series(parts: Sequence[Series]) -> Series:
    """Returns the sum of several queues' series, which must have the same steps."""
    first = parts[0]
    points = [
        Point(points[0].at, add_counts(point.counts for point in points))
        for points in zip(*(part.points for part in parts), strict=True)
    ]
    return msgspec.structs.replace(first, queue=None, points=points)


def _numbers(part: Counts) -> tuple[int, ...]:
    return (
        part.enqueued,
        part.started,
        part.completed,
        part.failed,
        part.retried,
        part.dead,
        part.cancelled,
        part.stalled,
        part.wait.total_ms,
        part.run.total_ms,
        *part.wait.buckets,
        *part.run.buckets,
    )
