"""The policy `drain-time`: the workers needed to start every job within the target wait.

Two numbers are computed, and the pool changes only if it is outside of them: with fewer than `least` workers jobs would
wait too long, more than `most` are not needed. The shares below were chosen with `make simulate`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rota.core.autoscaling.observation import Observation, ObservedWorker, WorkerState
from rota.core.autoscaling.policy_settings import DrainTime

#: Launching: the predicted backlog is to be done within what is left of the target wait after the boot, but at least
#: and at most within these shares of the target wait.
LAUNCH_SHARE: Final = 0.55
MAX_LAUNCH_SHARE: Final = 0.75
#: Draining: the share of the target wait, less the wait of the oldest job, in which the backlog is to be done.
DRAIN_SHARE: Final = 0.5
#: Draining: for how many target waits the load is expected to last.
LOAD_TARGETS: Final = 2
#: How much of its run time a running job has left, on average. Between a half (equal run times) and 1 (exponential).
LEFT_SHARE: Final = 0.7
#: After this many boot times a machine that has not registered is no longer expected.
LATE_BOOTS: Final = 2


@dataclass(frozen=True, slots=True)
class Need:
    """How many workers the demand calls for. `least` is at most `most`."""

    least: int
    most: int
    reason: str


@dataclass(slots=True)
class _Demand:
    """The demand of all queues, in jobs, slot-seconds (`_s`) and slots (`load`)."""

    jobs: int = 0
    processing: int = 0
    due: int = 0
    arrivals: float = 0.0
    oldest_s: float = 0.0
    waiting_s: float = 0.0
    left_s: float = 0.0
    due_s: float = 0.0
    load: float = 0.0
    load_5m: float = 0.0
    #: Slots that limits let all queues use; None if one of them is without limits.
    max_slots: int | None = 0


@dataclass(frozen=True, slots=True)
class _Supply:
    """What the present workers do until a worker that is requested now has booted."""

    boot_s: float
    slots_per_worker: float
    served_s: float
    #: Machines that are late to register: they count as workers, but not as capacity.
    late: int
    is_booting: bool


def needed_for_target_wait(
    observation: Observation, policy: DrainTime, capacity: Sequence[ObservedWorker], now_ms: int
) -> Need:
    """Returns how many workers are needed, `capacity` being those that run or boot.

    Launching looks at the work, in slot-seconds, that will wait when a worker requested now has booted: what waits now
    and falls due until then, plus expected arrivals, minus what the present workers do in that time. Draining looks at
    the load of the last minutes and at what waits now, and does not happen while jobs wait for machines that boot.
    """
    demand = _total_demand(observation, policy)
    supply = _supply(policy, capacity, now_ms)
    target_s, boot_s = policy.target_wait_ms / 1000, supply.boot_s
    work_s = demand.waiting_s + demand.due_s
    # One standard deviation of the time until as many slots are free as jobs wait: it matters for few slots.
    spread_s = demand.waiting_s / math.sqrt(demand.jobs) if demand.jobs else 0.0
    until_booted_s = work_s + spread_s + demand.left_s + demand.load * boot_s
    within_s = min(
        # A job may wait an interval before it is seen, and boots vary by as much.
        max(target_s - boot_s - 2 * policy.interval_ms / 1000, LAUNCH_SHARE * target_s),
        MAX_LAUNCH_SHARE * target_s,
    )
    least_slots = max(0.0, until_booted_s - supply.served_s) / within_s
    lasting_s = max(LOAD_TARGETS * target_s, boot_s)
    most_slots = max(
        work_s / max(DRAIN_SHARE * target_s - demand.oldest_s, policy.interval_ms / 1000),
        (work_s + demand.left_s + demand.load_5m * lasting_s) / (lasting_s + DRAIN_SHARE * target_s),
        # With fewer than this, the next decision would launch again.
        until_booted_s / (boot_s + within_s),
    )
    least, most = (_workers(slots, demand, supply) for slots in (least_slots, most_slots))
    if demand.jobs and supply.is_booting:
        most = max(most, len(capacity))
    return Need(least, max(least, most), _reason(demand, supply, policy))


def _workers(slots: float, demand: _Demand, supply: _Supply) -> int:
    """Whole workers: at least one while there is a job, and no more slots than jobs and limits can use."""
    usable = demand.jobs + demand.processing + demand.due + math.ceil(demand.arrivals * supply.boot_s - 0.5)
    if not (demand.jobs or demand.processing or demand.due):
        return 0
    if demand.max_slots is not None:
        usable = min(usable, demand.max_slots)
    return max(1, math.ceil(min(slots, usable) / supply.slots_per_worker - 1e-9)) + supply.late


def _total_demand(observation: Observation, policy: DrainTime) -> _Demand:
    total = _Demand()
    for queue in observation.queues:
        if queue.is_paused:
            continue
        run_s = (max(queue.mean_run_ms or 0, queue.mean_run_ms_1m or 0) or policy.assumed_run_ms) / 1000
        jobs = queue.high + queue.normal
        total.jobs += jobs
        total.processing += queue.processing
        total.due += queue.due
        total.arrivals += queue.arrivals_per_second
        total.oldest_s = max(total.oldest_s, (queue.oldest_wait_ms or 0) / 1000)
        total.waiting_s += jobs * run_s
        total.left_s += queue.processing * run_s * LEFT_SHARE
        total.due_s += queue.due * run_s
        total.load += queue.arrivals_per_second * run_s
        total.load_5m += queue.arrivals_per_second_5m * run_s
        if queue.max_slots is None:
            total.max_slots = None
        elif total.max_slots is not None:
            total.max_slots += queue.max_slots
    return total


def _supply(policy: DrainTime, capacity: Sequence[ObservedWorker], now_ms: int) -> _Supply:
    boots = [worker.registered_ms - worker.started_ms for worker in capacity if worker.registered_ms is not None]
    boot_s = max(policy.boot_ms, sum(boots) / len(boots) if boots else 0) / 1000
    slots = late = booting = 0
    served_s = 0.0
    for worker in capacity:
        of_worker = worker.slots or policy.worker_slots
        slots += of_worker
        if worker.state is WorkerState.RUNNING:
            served_s += of_worker * boot_s
            continue
        booting += 1
        age_s = max(0.0, (now_ms - worker.started_ms) / 1000)
        if age_s > LATE_BOOTS * boot_s:
            late += 1
        else:
            served_s += of_worker * min(boot_s, age_s)
    return _Supply(boot_s, slots / len(capacity) if capacity else policy.worker_slots, served_s, late, booting > 0)


def _reason(demand: _Demand, supply: _Supply, policy: DrainTime) -> str:
    if not (demand.jobs or demand.processing or demand.due):
        return "No job waits, runs or falls due."
    due = f", {demand.due:,} fall due within {supply.boot_s:.0f} s" if demand.due else ""
    return (
        f"{demand.jobs:,} jobs wait ({demand.waiting_s:,.0f} slot-seconds, the oldest {demand.oldest_s:.0f} s){due}; "
        f"arriving jobs keep {demand.load:.1f} slots busy; the target wait is {policy.target_wait_ms / 1000:g} s."
    )
