"""The pool over time, per step."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rota.core.autoscaling.pool_history_chart import CARRIED_MS, PoolSample, pool_history

MINUTE = 60_000


def sample(at: int, **figures: int) -> PoolSample:
    return PoolSample(at=at, **{"wanted": 1, **figures})


def test_a_step_has_the_greatest_values_and_the_sum_of_what_was_done() -> None:
    samples = [
        sample(MINUTE, wanted=2, running=1, high=1, normal=4, oldest_wait_ms=10, launch_count=2),
        sample(MINUTE + 1, wanted=1, running=2, normal=3, launch_count=1, drain_count=1),
    ]

    (step,) = pool_history(samples, since=MINUTE, until=2 * MINUTE - 1, step_ms=MINUTE).steps

    assert step is not None
    assert (step.wanted, step.running, step.backlog, step.oldest_wait_ms) == (2, 2, 5, 10)
    assert (step.launched, step.drained) == (3, 1)


def test_a_step_without_a_decision_repeats_a_recent_one_and_launches_nothing() -> None:
    samples = [sample(MINUTE - 1, wanted=3, launch_count=3)]

    steps = pool_history(samples, since=MINUTE, until=10 * MINUTE, step_ms=MINUTE).steps

    assert [step and (step.wanted, step.launched) for step in steps] == [(3, 0)] * 3 + [None] * 7


@given(
    at=st.lists(st.integers(0, 10_000_000), max_size=50).map(sorted),
    since=st.integers(0, 10_000_000),
    length=st.integers(0, 5_000_000),
    step_ms=st.integers(1_000 * 60, 3_600_000),
)
def test_every_step_is_there_and_every_decision_within_is_counted(
    at: list[int], since: int, length: int, step_ms: int
) -> None:
    until = since + length
    history = pool_history([sample(one, launch_count=1) for one in at], since=since, until=until, step_ms=step_ms)

    assert history.since <= since < history.since + step_ms
    assert len(history.steps) == (until - history.since) // step_ms + 1
    end = history.since + len(history.steps) * step_ms
    assert sum(step.launched for step in history.steps if step) == sum(history.since <= one < end for one in at)
    for number, step in enumerate(history.steps):
        start = history.since + number * step_ms
        is_known = any(start - CARRIED_MS <= one < start + step_ms for one in at)
        assert (step is not None) == is_known
