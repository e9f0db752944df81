"""What is usual at this hour: waits, run times and failures of the same hour of earlier days and weeks.

A day counts with its highest value of the hour before, the hour itself and the hour after, so that a nightly batch that
starts early or ends late is usual. The median of the last seven days is compared with the median of the same weekday
of the last four weeks, and the higher one is usual: neither a daily nor a weekly peak is an anomaly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Final

import msgspec

from rota.core.metric_series import Counts, add_counts

#: Days and weeks that are compared.
DAYS: Final = 7
WEEKS: Final = 4
#: Fewer days with data say nothing: then the last day is usual, and without that the last hour.
MIN_DAYS: Final = 2
#: An hour, or the last hour, with fewer attempts says nothing.
MIN_ATTEMPTS: Final = 20
#: Hours of the last day that are usual where there are too few days.
RECENT_HOURS: Final = 24
Value = Callable[[Counts], float | None]


class Usual(msgspec.Struct, frozen=True, kw_only=True):
    """Usual values, and where they come from. None: nothing of the kind was measured."""

    #: "at this hour of earlier days", "in the last day" or "in the last hour".
    source: str
    #: Days that were compared, or hours.
    samples: int
    wait_p95_ms: float | None = None
    run_mean_ms: float | None = None
    run_p50_ms: float | None = None
    run_p99_ms: float | None = None
    failure_rate: float | None = None


def compared_hours(hour: int) -> list[int]:
    """Returns the numbers of the hours whose counts `usual_values` takes for the hour of that number."""
    days = {*range(1, DAYS + 1), *(7 * week for week in range(1, WEEKS + 1))}
    found = {hour - 24 * day + near for day in days for near in (-1, 0, 1)}
    return sorted(found | set(range(hour - RECENT_HOURS, hour)))


def usual_values(hour: int, hours: Mapping[int, Counts], last_hour: Counts | None = None) -> Usual | None:
    """Returns what is usual in the hour of that number, from the counts of earlier hours; None without history.

    `last_hour` has the counts of the last hour without its last minutes, for a system in its first hours.
    """
    daily = [_near(hour - 24 * day, hours) for day in range(1, DAYS + 1)]
    weekly = [_near(hour - 7 * 24 * week, hours) for week in range(1, WEEKS + 1)]
    days = [day for day in daily if day]
    weeks = [week for week in weekly if week]
    if max(len(days), len(weeks)) >= MIN_DAYS:
        return _usual("at this hour of earlier days", len(days), [days, weeks])
    recent = [hours[one] for one in range(hour - RECENT_HOURS, hour) if _has_enough(hours.get(one))]
    if recent:
        return _usual("in the last day", len(recent), [[[one] for one in recent]])
    if last_hour is not None and _has_enough(last_hour):
        return _usual("in the last hour", 1, [[[last_hour]]])
    return None


def _near(hour: int, hours: Mapping[int, Counts]) -> list[Counts]:
    """Returns the counts of an hour and of those before and after it, where they say something."""
    found = [hours[one] for one in (hour - 1, hour, hour + 1) if _has_enough(hours.get(one))]
    if found:
        return found
    # Rare jobs: three hours together may say what one does not.
    together = add_counts(hours[one] for one in (hour - 1, hour, hour + 1) if one in hours)
    return [together] if _has_enough(together) else []


def _has_enough(counts: Counts | None) -> bool:
    return counts is not None and max(counts.started, counts.completed + counts.failed) >= MIN_ATTEMPTS


def _usual(source: str, samples: int, groups: Sequence[Sequence[Sequence[Counts]]]) -> Usual:
    def highest(value: Value) -> float | None:
        medians = [found for group in groups if (found := _median_of_highest(group, value)) is not None]
        return max(medians, default=None)

    return Usual(
        source=source,
        samples=samples,
        wait_p95_ms=highest(lambda counts: counts.wait.p95_ms),
        run_mean_ms=highest(lambda counts: counts.run.mean_ms),
        run_p50_ms=highest(lambda counts: counts.run.p50_ms),
        run_p99_ms=highest(lambda counts: counts.run.p99_ms),
        failure_rate=highest(lambda counts: counts.failure_rate),
    )


def _median_of_highest(group: Sequence[Sequence[Counts]], value: Value) -> float | None:
    """Returns the median over days of the highest value of each day."""
    values = [max(found) for day in group if (found := [one for counts in day if (one := value(counts)) is not None])]
    return median(values) if values else None
