"""The simulator of autoscaling, on the traces that are quickest to run. `make simulate` runs all."""

from __future__ import annotations

import pytest

from benchmarks.autoscaling import oracle, plots
from benchmarks.autoscaling.report import GOAL_HOURS, GOAL_WITHIN, compared
from benchmarks.autoscaling.run import measured
from benchmarks.autoscaling.scalers import drain_time
from benchmarks.autoscaling.simulator import simulate
from benchmarks.autoscaling.traces import MAKERS, SimulatedJob, Trace

#: One job of 30 s in a pool of single slots.
ONE_JOB = Trace(name="one", title="one job", jobs=[SimulatedJob(100.0, 30.0)], length=600.0, slots=1, seed=1)


def trace(name: str) -> Trace:
    """Returns a trace by name."""
    return {make.__name__: make for make in MAKERS}[f"_{name}"](0)


@pytest.mark.parametrize("name", ["step_from_zero", "flash_crowd"])
def test_the_default_policy_keeps_the_target_at_little_more_than_the_oracles_cost(name: str) -> None:
    row = measured(trace(name))
    own, best = row["scalers"]["drain-time"], row["scalers"]["oracle"]
    assert own["within"] >= GOAL_WITHIN
    assert best["within"] >= GOAL_WITHIN
    assert own["worker_hours"] <= GOAL_HOURS * best["worker_hours"]
    for rival in ("thresholds", "keda-style"):
        assert min(compared(row, rival)) >= 0
        assert max(compared(row, rival)) > 0


def test_a_single_job_costs_its_boot_and_its_run_and_waits_for_the_boot() -> None:
    outcome = simulate(ONE_JOB, drain_time(ONE_JOB))
    assert outcome.launches == 1
    assert 25 <= outcome.waits[0] <= 37  # a second to wake up, and the boot
    assert 55 <= outcome.worker_hours * 3600 <= 80


def test_the_oracle_launches_ahead_of_the_job() -> None:
    outcome = oracle.best_outcome(ONE_JOB)
    assert outcome.share_within(ONE_JOB.target_wait) == 1
    assert 54 <= outcome.worker_hours * 3600 <= 80


def test_a_simulation_is_repeatable_and_runs_every_job() -> None:
    first, second = (simulate(trace("step_from_zero"), drain_time(trace("step_from_zero"))) for _ in range(2))
    assert first == second
    assert len(first.waits) == len(trace("step_from_zero").jobs)


def test_there_are_enough_traces_each_with_a_name_of_its_own() -> None:
    names = [make.__name__ for make in MAKERS]
    assert len(set(names)) == len(names) >= 20
    assert {name.replace("-", "_") for name in plots.TIMELINES} <= {name.removeprefix("_") for name in names}
