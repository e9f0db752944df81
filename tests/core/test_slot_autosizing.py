"""Automatic concurrency: when a worker gets more slots or fewer, and how many jobs it claims ahead."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.claim_ahead import MIN_AHEAD, jobs_to_claim_ahead
from rota.core.slot_autosizing import MAX_SLOTS, WorkerLoad, next_slots

#: Every slot is busy, jobs wait, and the machine has room: the load under which a worker grows.
SATURATED = WorkerLoad(slots=100, busy=100, has_backlog=True, cpu=0.5, lag_ms=5)


def test_a_saturated_worker_grows_by_a_quarter() -> None:
    assert next_slots(SATURATED) == 125


@pytest.mark.parametrize(
    "change",
    [
        {"busy": 99},
        {"has_backlog": False},
        {"cpu": 0.75},
        {"lag_ms": 30},
    ],
)
def test_it_grows_only_if_more_slots_would_help(change: dict[str, float]) -> None:
    assert next_slots(replace(SATURATED, **change)) == 100


@pytest.mark.parametrize("change", [{"lag_ms": 101}, {"cpu": 0.96, "lag_ms": 31}])
def test_it_shrinks_by_a_fifth_when_its_event_loops_lag(change: dict[str, float]) -> None:
    assert next_slots(replace(SATURATED, **change)) == 80


def test_a_full_cpu_without_lag_is_no_reason_to_shrink() -> None:
    assert next_slots(replace(SATURATED, cpu=1.0, lag_ms=30)) == 100


def test_small_workers_grow_and_shrink_by_one() -> None:
    assert next_slots(replace(SATURATED, slots=1, busy=1)) == 2
    assert next_slots(replace(SATURATED, slots=2, busy=2, lag_ms=500)) == 1


@given(st.integers(1, MAX_SLOTS), st.integers(0, MAX_SLOTS), st.booleans(), st.floats(0, 1), st.integers(0, 10_000))
def test_the_number_of_slots_stays_within_its_bounds(
    slots: int, busy: int, has_backlog: bool, cpu: float, lag_ms: int
) -> None:
    assert 1 <= next_slots(WorkerLoad(slots, busy, has_backlog, cpu, lag_ms)) <= MAX_SLOTS


def test_nothing_is_claimed_ahead_of_handlers_slower_than_a_claim_cycle() -> None:
    assert jobs_to_claim_ahead(0, elapsed_s=1, cycle_s=0.005, slots=100) == 0
    assert jobs_to_claim_ahead(10, elapsed_s=1, cycle_s=0.005, slots=100) == 0


def test_as_many_are_claimed_ahead_as_slots_may_become_free_in_one_cycle() -> None:
    """2,000 attempts a second end 10 in a cycle of 5 ms, and four times that in a burst."""
    assert jobs_to_claim_ahead(2_000, elapsed_s=1, cycle_s=0.005, slots=100) == 40


@given(st.integers(0, 10**6), st.floats(0.001, 100), st.floats(0, 1), st.integers(1, MAX_SLOTS))
def test_no_more_jobs_are_claimed_ahead_than_there_are_slots(
    ended: int, elapsed_s: float, cycle_s: float, slots: int
) -> None:
    """With few slots 16 at most: jobs held by a worker that stalls start late."""
    assert 0 <= jobs_to_claim_ahead(ended, elapsed_s, cycle_s, slots) <= max(slots, MIN_AHEAD)
