"""What can be said from counts: percentiles, rates, steps."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.metric_series import (
    BUCKETS,
    COUNTS,
    WIDTH,
    Counts,
    Point,
    Series,
    Times,
    add_counts,
    counts_from,
    merge_series,
    series,
)

MINUTE = 60_000


def times(*ms: int) -> Times:
    buckets = [0] * BUCKETS
    for one in ms:
        buckets[min(one.bit_length(), BUCKETS - 1)] += 1
    return Times(len(ms), sum(ms), tuple(buckets))


@given(st.lists(st.integers(0, 2**26), min_size=1), st.sampled_from([0.5, 0.95, 0.99, 1.0]))
def test_a_percentile_is_right_within_a_factor_of_two(ms: list[int], share: float) -> None:
    exact = sorted(ms)[math.ceil(share * len(ms)) - 1]

    found = times(*ms).percentile_ms(share)

    assert found is not None
    assert exact / 2 <= found <= max(1, 2 * exact)


def test_of_nothing_nothing_is_said() -> None:
    nothing = Counts()

    assert (nothing.failure_rate, nothing.wait.mean_ms, nothing.run.p99_ms) == (None, None, None)


def test_rates_are_those_of_what_has_ended() -> None:
    assert Counts(started=9, completed=3, failed=1).failure_rate == 0.25
    assert Counts(started=9, completed=3, failed=1, stalled=2).failure_rate == 0.5
    assert times(10, 20).mean_ms == 15
    assert times(*[3] * 98, 1000, 1000).p50_ms == pytest.approx(3.02, abs=0.01)
    assert 512 < (times(*[3] * 98, 1000, 1000).p99_ms or 0) < 1024


def test_the_64_numbers_of_a_task_are_its_counts_and_two_histograms() -> None:
    numbers = list(range(WIDTH))

    found = counts_from(numbers)

    assert WIDTH == 64
    assert [getattr(found, name) for name in COUNTS[:8]] == list(range(8))
    assert (found.wait.total_ms, found.run.total_ms) == (8, 9)
    assert (found.wait.buckets[0], found.run.buckets[-1]) == (10, 63)
    assert add_counts([found, found]) == counts_from([2 * number for number in numbers])


def test_steps_gather_their_minutes_and_empty_ones_are_there_too() -> None:
    pages = {10: {0: 5}, 11: {0: 2, 64: 1}, 14: {66: 4}}

    found = series(pages, None, since=10 * MINUTE, until=14 * MINUTE + 30_000, step_ms=2 * MINUTE, unit_ms=MINUTE)

    assert [point.at // MINUTE for point in found.points] == [10, 12, 14]
    assert [point.counts.enqueued for point in found.points] == [8, 0, 0]
    assert [found.per_second(point) for point in found.points] == [0, 0, 4 / 30]
    assert found.total == add_counts(point.counts for point in found.points)
    only = series(pages, [1], since=10 * MINUTE, until=12 * MINUTE, step_ms=MINUTE, unit_ms=MINUTE, task="send")
    assert only.task == "send"
    assert [point.counts.enqueued for point in only.points] == [5, 2]


def test_series_of_several_queues_are_added_step_by_step() -> None:
    one = Series("a", None, MINUTE, 0, 2 * MINUTE, [Point(0, Counts(enqueued=1)), Point(MINUTE, Counts(dead=1))])

    both = merge_series([one, one])

    assert [(point.counts.enqueued, point.counts.dead) for point in both.points] == [(2, 0), (0, 2)]
    assert both.queue is None
