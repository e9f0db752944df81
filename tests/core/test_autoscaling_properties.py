"""Properties of scaling decisions that hold for every observation."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from rota.core.autoscaling.decide_launches_and_drains import Decision, desired
from rota.core.autoscaling.observation import Observation, ObservedWorker, PastDecision, QueueDemand, WorkerState
from rota.core.autoscaling.policy_settings import DrainTime, Policy, Thresholds

NOW = 1_800_000_000_000
SLOTS = 4

ages = st.integers(0, 900_000)


@st.composite
def worker(draw: st.DrawFn, states: tuple[WorkerState, ...] = tuple(WorkerState)) -> ObservedWorker:
    state = draw(st.sampled_from(states))
    started_ms = NOW - draw(ages)
    is_booting = state is WorkerState.BOOTING
    busy = 0 if is_booting else draw(st.integers(0, SLOTS))
    return ObservedWorker(
        id="",
        state=state,
        slots=SLOTS,
        busy=busy,
        started_ms=started_ms,
        registered_ms=None if is_booting else min(NOW, started_ms + draw(st.integers(0, 90_000))),
        heartbeat_ms=None if is_booting else NOW - draw(st.integers(0, 120_000)),
        work_started_ms=NOW - draw(ages) if busy else None,
        is_protected=draw(st.booleans()),
    )


@st.composite
def queue(draw: st.DrawFn) -> QueueDemand:
    jobs = draw(st.integers(0, 2_000))
    return QueueDemand(
        queue="q",
        high=draw(st.integers(0, 200)),
        normal=jobs,
        oldest_wait_ms=draw(st.integers(0, 300_000)) if jobs else None,
        due=draw(st.integers(0, 300)),
        arrivals_per_second=draw(st.floats(0, 20)),
        arrivals_per_second_5m=draw(st.floats(0, 20)),
        mean_run_ms=draw(st.none() | st.floats(1, 100_000)),
        mean_run_ms_1m=draw(st.none() | st.floats(1, 100_000)),
        processing=draw(st.integers(0, 100)),
        is_paused=draw(st.booleans()),
        max_slots=draw(st.none() | st.integers(0, 50)),
    )


@st.composite
def observation(draw: st.DrawFn, states: tuple[WorkerState, ...] = tuple(WorkerState)) -> Observation:
    workers = draw(st.lists(worker(states), max_size=12))
    return Observation(
        at_ms=NOW - draw(st.integers(0, 30_000)),
        queues=draw(st.lists(queue(), max_size=3)),
        workers=[replace(one, id=f"w{index}") for index, one in enumerate(workers)],
        history=[
            PastDecision(at_ms=NOW - draw(st.integers(0, 60_000)), count=3, needed=draw(st.integers(0, 12)))
            for _ in range(draw(st.integers(0, 3)))
        ],
    )


@st.composite
def policy(draw: st.DrawFn) -> Policy:
    least = draw(st.integers(0, 5))
    most = draw(st.integers(max(1, least), 12))
    if draw(st.booleans()):
        return Thresholds(min_workers=least, max_workers=most)
    return drain_time_policy(draw, least, most)


def drain_time_policy(draw: st.DrawFn, least: int, most: int) -> DrainTime:
    return DrainTime(
        min_workers=least,
        max_workers=most,
        target_wait_ms=draw(st.integers(1_000, 600_000)),
        boot_ms=draw(st.integers(0, 300_000)),
        down_cooldown_ms=draw(st.integers(0, 60_000)),
        worker_slots=SLOTS,
    )


@st.composite
def drain_time(draw: st.DrawFn) -> DrainTime:
    return drain_time_policy(draw, 0, draw(st.integers(1, 12)))


def capacity(seen: Observation, decision: Decision) -> set[str]:
    return {one.id for one in seen.workers if one.state in (WorkerState.BOOTING, WorkerState.RUNNING)} - set(
        decision.replace
    )


@given(observation(), policy())
def test_the_count_is_within_its_bounds_unless_workers_cannot_leave(seen: Observation, rules: Policy) -> None:
    decision = desired(seen, rules, NOW)
    assert decision.count >= rules.min_workers
    if decision.count > rules.max_workers:
        assert "busy or protected" in " ".join(decision.reasons)
        assert decision.launch == 0


@given(observation(), policy())
def test_the_parts_of_a_decision_agree(seen: Observation, rules: Policy) -> None:
    decision = desired(seen, rules, NOW)
    have = capacity(seen, decision)
    assert decision.count == len(have) + decision.launch - len(decision.drain)
    assert not (decision.launch and decision.drain)
    assert set(decision.drain) <= have
    assert len(set(decision.drain)) == len(decision.drain)
    assert decision.reasons


@given(observation(), policy())
def test_a_protected_worker_never_leaves(seen: Observation, rules: Policy) -> None:
    protected = {one.id for one in seen.workers if one.is_protected}
    assert not protected & set(desired(seen, rules, NOW).drain)


@given(observation(), policy())
def test_a_worker_leaves_only_if_all_with_less_to_lose_leave_as_well(seen: Observation, rules: Policy) -> None:
    decision = desired(seen, rules, NOW)
    leaving = [one for one in seen.workers if one.id in decision.drain]
    staying = [
        one for one in seen.workers if one.id in capacity(seen, decision) - set(decision.drain) and not one.is_protected
    ]
    if any(one.busy for one in leaving):
        assert all(one.busy for one in staying)
        youngest_staying = max((one.work_started_ms or 0 for one in staying), default=0)
        assert all((one.work_started_ms or 0) >= youngest_staying for one in leaving if one.busy)


@given(
    observation(),
    policy(),
    st.sampled_from([{"at_ms": None}, {"at_ms": NOW - 30_001}, {"store_error": "x"}, {"provider_error": "x"}]),
)
def test_without_good_figures_nothing_changes(seen: Observation, rules: Policy, fault: dict[str, int | None]) -> None:
    decision = desired(replace(seen, **fault), rules, NOW)
    assert decision.is_hold
    assert (decision.launch, decision.drain, decision.replace) == (0, (), ())


@given(observation(), policy())
def test_the_order_of_the_observation_does_not_matter(seen: Observation, rules: Policy) -> None:
    mixed = replace(seen, workers=list(reversed(seen.workers)))
    assert desired(mixed, rules, NOW) == desired(seen, rules, NOW)


@given(observation(), policy(), queue(), st.integers(1, 1_000))
def test_more_jobs_never_mean_fewer_workers(seen: Observation, rules: Policy, busy: QueueDemand, more: int) -> None:
    before = replace(seen, queues=[*seen.queues, busy])
    after = replace(seen, queues=[*seen.queues, replace(busy, normal=busy.normal + more)])
    assert desired(after, rules, NOW).count >= desired(before, rules, NOW).count


ALIVE = (WorkerState.BOOTING, WorkerState.RUNNING)


def applied(seen: Observation, decision: Decision) -> Observation:
    """The observation after the decision has been carried out, with the same demand."""
    workers = [
        replace(one, state=WorkerState.DRAINING) if one.id in decision.drain else one
        for one in seen.workers
        if one.id not in decision.replace
    ]
    new = [
        ObservedWorker(id=f"new{index}", state=WorkerState.BOOTING, slots=SLOTS, started_ms=NOW)
        for index in range(decision.launch)
    ]
    return replace(seen, workers=workers + new, history=[*seen.history, decision.as_past(NOW)])


@given(observation(ALIVE), drain_time())
def test_a_decision_that_was_carried_out_is_not_repeated_or_reversed(seen: Observation, rules: DrainTime) -> None:
    seen = replace(seen, workers=[replace(one, registered_ms=None) for one in seen.workers])
    decision = desired(seen, rules, NOW)
    again = desired(applied(seen, decision), rules, NOW)
    if decision.launch:
        assert (again.launch, again.drain) == (0, ())
    if decision.drain:
        assert again.launch == 0


@given(queue(), drain_time())
def test_any_job_brings_a_worker_to_an_empty_pool_and_no_job_brings_none(one: QueueDemand, rules: DrainTime) -> None:
    one = replace(one, is_paused=False, max_slots=None)
    wants = bool(one.high + one.normal + one.due + one.processing)
    assert (desired(Observation(at_ms=NOW, queues=[one]), rules, NOW).launch > 0) == wants


@given(queue(), drain_time(), st.integers(0, 50))
def test_limits_bound_the_pool(one: QueueDemand, rules: DrainTime, slots: int) -> None:
    seen = Observation(at_ms=NOW, queues=[replace(one, max_slots=slots)])
    assert desired(seen, rules, NOW).count <= max(1, -(-slots // SLOTS))
