"""Autoscaling: the decision, its fail-safe, and which workers leave."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rota.core.autoscaling.decide_launches_and_drains import Decision, desired, leaving_order
from rota.core.autoscaling.log_lines import launched_line, queue_length_line, scaling_lines, terminated_line
from rota.core.autoscaling.observation import Observation, ObservedWorker, QueueDemand, WorkerState
from rota.core.autoscaling.policy_settings import POLICIES, DrainTime, Policy, Thresholds
from rota.errors import InvalidOption

NOW = 1_800_000_000_000
BOTH = [DrainTime(), Thresholds()]


def worker(
    id: str,
    state: WorkerState = WorkerState.RUNNING,
    *,
    slots: int = 1,
    busy: int = 0,
    age_ms: int = 600_000,
    silent_ms: int = 1_000,
    work_age_ms: int | None = None,
    is_protected: bool = False,
) -> ObservedWorker:
    return ObservedWorker(
        id=id,
        state=state,
        slots=slots,
        busy=busy,
        started_ms=NOW - age_ms,
        heartbeat_ms=None if state is WorkerState.BOOTING else NOW - silent_ms,
        work_started_ms=None if work_age_ms is None else NOW - work_age_ms,
        is_protected=is_protected,
    )


def workers(count: int, *, busy: int = 0) -> list[ObservedWorker]:
    return [worker(f"w{index}", busy=busy) for index in range(count)]


def pending(normal: int, *, high: int = 0, mean_run_ms: float | None = 1_000) -> QueueDemand:
    return QueueDemand(queue="default", high=high, normal=normal, mean_run_ms=mean_run_ms)


# thresholds


@pytest.mark.requirement("S2-24", "S2-25")
def test_the_example_of_the_original_script() -> None:
    seen = Observation(at_ms=NOW, queues=[pending(25, high=50)], workers=workers(7))
    decision = desired(seen, Thresholds(), NOW)
    assert [queue_length_line(seen), *scaling_lines(decision), launched_line(["i-0abcd1234", "i-0efgh5678"])] == [
        "Queue Length: 75 (High Priority: 50, Normal: 25)",
        "Scaling up by 3 instances...",
        "Launched instances: i-0abcd1234, i-0efgh5678",
    ]
    assert (decision.count, decision.launch) == (10, 3)


@pytest.mark.requirement("S2-25")
@pytest.mark.parametrize(
    ("total", "have", "wanted"),
    [
        (50, 1, 1),
        (51, 1, 2),
        (53, 1, 4),
        (1_000, 1, 10),
        (75, 10, 10),
        (10, 10, 10),
        (9, 10, 9),
        (7, 10, 7),
        (0, 10, 1),
        (0, 1, 1),
        (0, 0, 1),
    ],
)
def test_thresholds_follow_the_numbers_of_the_original_script(total: int, have: int, wanted: int) -> None:
    seen = Observation(at_ms=NOW, queues=[pending(total)], workers=workers(have))
    decision = desired(seen, Thresholds(), NOW)
    assert decision.count == wanted
    assert decision.launch - len(decision.drain) == wanted - have


@pytest.mark.requirement("S2-26")
def test_thresholds_drain_only_idle_workers() -> None:
    seen = Observation(
        at_ms=NOW, queues=[pending(0)], workers=[worker("a", busy=1, work_age_ms=5), worker("b"), *workers(1, busy=1)]
    )
    assert desired(seen, Thresholds(), NOW).drain == ("b",)


@pytest.mark.requirement("S2-27")
def test_booting_machines_count_so_that_nothing_is_launched_twice() -> None:
    booting = [worker(f"b{index}", WorkerState.BOOTING, age_ms=5_000) for index in range(9)]
    seen = Observation(at_ms=NOW, queues=[pending(75)], workers=[*workers(1), *booting])
    assert desired(seen, Thresholds(), NOW).launch == 0


# both policies


@pytest.mark.parametrize("policy", BOTH, ids=lambda policy: policy.name)
@pytest.mark.parametrize(
    "change",
    [
        {"at_ms": None},
        {"at_ms": NOW - 30_001},
        {"store_error": "connection refused"},
        {"provider_error": "Throttling"},
    ],
    ids=["missing", "stale", "store", "provider"],
)
def test_without_good_figures_nothing_changes(policy: Policy, change: dict[str, Any]) -> None:
    for queue in (pending(0), pending(10_000)):
        seen = Observation(
            at_ms=NOW,
            queues=[queue],
            workers=[*workers(5), worker("x", WorkerState.FAILED), worker("d", WorkerState.DRAINING)],
        )
        decision = desired(replace(seen, **change), policy, NOW)
        assert decision.is_hold
        assert decision == Decision(count=5, needed=5, reasons=decision.reasons, is_hold=True)
        assert "Holding" in decision.reasons[0]


@pytest.mark.parametrize("policy", BOTH, ids=lambda policy: policy.name)
def test_a_machine_that_never_registers_is_replaced(policy: Policy) -> None:
    late = worker("late", WorkerState.BOOTING, age_ms=policy.boot_timeout_ms + 1)
    seen = Observation(at_ms=NOW, queues=[pending(5)], workers=[late])
    decision = desired(seen, policy, NOW)
    assert (decision.replace, decision.count, decision.launch) == (("late",), 1, 1)
    assert "late did not register in time" in decision.reasons[-1]


@pytest.mark.parametrize("policy", BOTH, ids=lambda policy: policy.name)
def test_a_silent_worker_is_replaced_but_not_right_after_an_outage(policy: Policy) -> None:
    silent = worker("silent", silent_ms=policy.lost_ms + 1)
    seen = Observation(at_ms=NOW, queues=[pending(5)], workers=[silent])
    assert desired(seen, policy, NOW).replace == ("silent",)
    assert desired(replace(seen, readable_since_ms=NOW - 5_000), policy, NOW).replace == ()


@pytest.mark.parametrize("policy", BOTH, ids=lambda policy: policy.name)
def test_a_draining_worker_is_no_capacity(policy: Policy) -> None:
    seen = Observation(at_ms=NOW, queues=[pending(5)], workers=[worker("d", WorkerState.DRAINING, busy=1)])
    assert desired(seen, policy, NOW).launch == 1


def test_booting_then_idle_then_the_youngest_work_leaves_and_never_a_protected_worker() -> None:
    pool = [
        worker("old-work", busy=1, work_age_ms=60_000),
        worker("protected-idle", is_protected=True),
        worker("young-work", busy=1, work_age_ms=1_000),
        worker("idle"),
        worker("booting", WorkerState.BOOTING, age_ms=1_000),
    ]
    assert [one.id for one in leaving_order(pool)] == ["booting", "idle", "young-work", "old-work"]


def test_log_lines_in_the_singular_and_for_replacements() -> None:
    decision = Decision(count=1, needed=1, launch=1, drain=("a",), replace=("b",))
    assert scaling_lines(decision) == [
        "Scaling up by 1 instance...",
        "Scaling down by 1 instance...",
        "Replacing 1 instance: b",
    ]
    assert terminated_line(["a"]) == "Terminated instances: a"


@pytest.mark.parametrize("policy", POLICIES.values(), ids=lambda policy: policy.name)
@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("max_workers", 0),
        ("max_workers", 10_001),
        ("min_workers", -1),
        ("min_workers", 11),
        ("min_workers", 1.5),
        ("interval_ms", 0),
        ("boot_ms", 400_000),
        ("stale_ms", 4_999),
        ("lost_ms", True),
    ],
)
def test_settings_out_of_bounds_are_refused(policy: type[Policy], option: str, value: int) -> None:
    with pytest.raises(InvalidOption):
        policy(**{option: value})


def test_thresholds_that_cross_are_refused() -> None:
    with pytest.raises(InvalidOption, match="scale_down_below"):
        Thresholds(scale_up_above=5)


# drain-time


def test_the_first_job_brings_the_first_worker() -> None:
    assert desired(Observation(at_ms=NOW, queues=[pending(1)]), DrainTime(), NOW).launch == 1


def test_without_jobs_the_pool_shrinks_to_its_minimum() -> None:
    seen = Observation(at_ms=NOW, queues=[pending(0)], workers=workers(3))
    assert desired(seen, DrainTime(), NOW).count == 0
    assert desired(seen, DrainTime(min_workers=2), NOW).count == 2


def test_a_paused_queue_brings_no_worker() -> None:
    paused = replace(pending(1_000), is_paused=True)
    assert desired(Observation(at_ms=NOW, queues=[paused]), DrainTime(), NOW).count == 0
