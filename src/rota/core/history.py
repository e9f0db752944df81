"""What has happened over time: the counts that the store keeps, and what can be said from them.

The store counts by queue and task: 64 numbers for each, in the order of `COUNTS`, then two histograms. A histogram has
a bucket for each power of two of milliseconds, so that a percentile is right within a factor of two, at any scale.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

#: Also known to `include/tally.lua`, by their places.
COUNTS: Final = (
    "enqueued", "started", "completed", "failed", "retried", "dead", "cancelled", "stalled", "waited_ms", "ran_ms"
)  # fmt: skip
BUCKETS: Final = 27
WIDTH: Final = len(COUNTS) + 2 * BUCKETS
#: Upper ends of the buckets in ms; the last has none. A whole number of ms below 2^n is in bucket n or before.
BOUNDS_MS: Final[Sequence[int]] = tuple(2**n for n in range(BUCKETS - 1))
#: What tasks are called that came when a hundred others had been there.
OTHER: Final = "__other__"
OTHER_SLOT: Final = 1
MINUTE_MS: Final = 60_000
HOUR_MS: Final = 3_600_000
#: How far back each minute is known, and each hour.
MINUTES_KEPT: Final = 24 * 60
HOURS_KEPT: Final = 30 * 24
PERCENTILES: Final = (0.5, 0.95, 0.99)

#: Place in the tally -> amount: slot · 64 + place of the count.
Added = Mapping[int, int]


class Times(msgspec.Struct, frozen=True):
    """How long something took: how often, in all, and by buckets."""

    count: int = 0
    total_ms: int = 0
    buckets: tuple[int, ...] = (0,) * BUCKETS

    @property
    def mean_ms(self) -> float | None:
        """None when nothing was timed."""
        return self.total_ms / self.count if self.count else None

    def percentile_ms(self, share: float) -> float | None:
        """What that share of all stayed below, about; None when nothing was timed."""
        if not self.count:
            return None
        wanted, seen = share * self.count, 0
        for place, amount in enumerate(self.buckets):
            if amount and seen + amount >= wanted:
                low, high = (2 ** (place - 1), 2**place) if place else (0, 1)
                return low + (high - low) * (wanted - seen) / amount
            seen += amount
        return float(2**BUCKETS)

    @property
    def p50_ms(self) -> float | None:
        """Half of all stayed below."""
        return self.percentile_ms(0.5)

    @property
    def p95_ms(self) -> float | None:
        """All but 5 % stayed below."""
        return self.percentile_ms(0.95)

    @property
    def p99_ms(self) -> float | None:
        """All but 1 % stayed below."""
        return self.percentile_ms(0.99)


class Counted(msgspec.Struct, frozen=True):
    """What happened to the jobs of a task or a queue in some span of time.

    `failed` counts attempts, `dead` jobs that failed for good, `retried` failures that are tried again, `stalled`
    attempts whose worker vanished. `wait` is from the time a job was due to its start, for each attempt that started;
    `run` from there to its end, for each that completed or failed.
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
        """The share of attempts that failed, of those that came to an end; None when none did."""
        ended = self.completed + self.failed
        return self.failed / ended if ended else None


class Point(msgspec.Struct, frozen=True):
    """What was counted from `at` on, for one step of a series."""

    at: int
    counted: Counted


class Series(msgspec.Struct, frozen=True):
    """What happened from step to step. The last step may not be over yet: `until` is the server's time then."""

    queue: str | None
    task: str | None
    step_ms: int
    since: int
    until: int
    points: list[Point]

    @property
    def total(self) -> Counted:
        """All steps together."""
        return add(point.counted for point in self.points)

    def per_second(self, point: Point) -> float:
        """Jobs completed per second in one step, as far as it is over."""
        return point.counted.completed / (max(1, min(self.step_ms, self.until - point.at)) / 1000)


def counted(numbers: Sequence[int]) -> Counted:
    """What the 64 numbers of one task say."""
    first, second = len(COUNTS), len(COUNTS) + BUCKETS
    wait, run = tuple(numbers[first:second]), tuple(numbers[second : second + BUCKETS])
    enqueued, started, completed, failed, retried, dead, cancelled, stalled, waited_ms, ran_ms = numbers[:first]
    return Counted(
        enqueued, started, completed, failed, retried, dead, cancelled, stalled,
        wait=Times(sum(wait), waited_ms, wait), run=Times(sum(run), ran_ms, run),
    )  # fmt: skip


def add(parts: Iterable[Counted]) -> Counted:
    """Several counts as one."""
    numbers = [0] * WIDTH
    for part in parts:
        for place, amount in enumerate(_numbers(part)):
            numbers[place] += amount
    return counted(numbers)


def series(
    minutes: Mapping[int, Added],
    slots: Sequence[int] | None,
    *,
    since: int,
    until: int,
    step_ms: int,
    unit_ms: int,
    queue: str | None = None,
    task: str | None = None,
) -> Series:
    """Steps from what each minute (or hour: `unit_ms`) added, for some slots or all. Empty steps are there too."""
    first = since // step_ms
    sums: dict[int, list[int]] = {}
    for number, added in minutes.items():
        at = number * unit_ms
        if not since <= at < until:
            continue
        numbers = sums.setdefault(at // step_ms, [0] * WIDTH)
        for place, amount in added.items():
            slot, count = divmod(place, WIDTH)
            if slots is None or slot + 1 in slots:
                numbers[count] += amount
    steps = range(first, -(-until // step_ms))
    nothing = Counted()
    points = [Point(step * step_ms, counted(sums[step]) if step in sums else nothing) for step in steps]
    return Series(queue, task, step_ms, first * step_ms, until, points)


def merged(parts: Sequence[Series]) -> Series:
    """Series of several queues, which have the same steps, as one."""
    first = parts[0]
    points = [
        Point(points[0].at, add(point.counted for point in points))
        for points in zip(*(part.points for part in parts), strict=True)
    ]
    return msgspec.structs.replace(first, queue=None, points=points)


def _numbers(part: Counted) -> tuple[int, ...]:
    return (
        part.enqueued, part.started, part.completed, part.failed, part.retried, part.dead, part.cancelled, part.stalled,
        part.wait.total_ms, part.run.total_ms, *part.wait.buckets, *part.run.buckets,
    )  # fmt: skip
