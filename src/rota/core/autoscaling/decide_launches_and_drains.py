"""The scaling decision: how many workers are wanted, how many to launch, and which ones leave."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rota.core.autoscaling.drain_time_policy import needed_for_target_wait
from rota.core.autoscaling.observation import Observation, ObservedWorker, PastDecision, WorkerState
from rota.core.autoscaling.policy_settings import DrainTime, Policy, Thresholds
from rota.core.autoscaling.thresholds_policy import change_by_thresholds


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What to do now. Applying it twice to the same observation is the caller's to prevent; deciding twice is safe."""

    #: Workers that the pool should have, booting ones included, draining and failed ones not.
    count: int
    #: Workers that the demand alone calls for, within min and max, before cool-downs. For the history.
    needed: int
    #: Workers to request from the provider now. Includes the replacements of `replace`.
    launch: int = 0
    #: Workers to drain now, by id. A booting one has no work: the provider may remove it at once.
    drain: tuple[str, ...] = ()
    #: Machines to remove without draining, by id: they never registered, have lost their worker, or failed.
    replace: tuple[str, ...] = ()
    #: Why, in full sentences; the most important one first.
    reasons: tuple[str, ...] = field(default=())
    #: The figures did not allow a decision: nothing changes, and the decision stays out of the history.
    is_hold: bool = False

    def as_past(self, at_ms: int) -> PastDecision:
        """Returns the entry for `Observation.history`."""
        return PastDecision(
            at_ms=at_ms, count=self.count, needed=self.needed, launched=self.launch, drained=len(self.drain)
        )


def desired(observation: Observation, policy: Policy, now_ms: int) -> Decision:
    """Decides how many workers are wanted.

    Missing or stale figures, an unreachable store and a provider error lead to a hold: nothing is launched, drained
    or replaced. Otherwise `count` is within `min_workers` and `max_workers`, except that protected and busy workers
    (policy `thresholds`) stay above it until they are free.
    """
    workers = sorted(observation.workers, key=lambda worker: worker.id)
    broken = [worker for worker in workers if _is_broken(worker, observation, policy, now_ms)]
    gone = {worker.id for worker in broken}
    capacity = [
        worker
        for worker in workers
        if worker.state in (WorkerState.BOOTING, WorkerState.RUNNING) and worker.id not in gone
    ]
    if (problem := _why_hold(observation, policy, now_ms)) is not None:
        have = sum(worker.state in (WorkerState.BOOTING, WorkerState.RUNNING) for worker in workers)
        return Decision(count=have, needed=have, reasons=(f"Holding: {problem}.",), is_hold=True)
    have = len(capacity)
    reasons: list[str] = []
    if isinstance(policy, Thresholds):
        needed, reason = change_by_thresholds(observation, policy, have)
        count, candidates = needed, [worker for worker in capacity if not worker.busy]
    elif isinstance(policy, DrainTime):
        need = needed_for_target_wait(observation, policy, capacity, now_ms)
        # Between the two numbers the pool stays as it is.
        needed = _within_bounds(min(max(have, need.least), need.most), policy)
        count, candidates, reason = needed, capacity, need.reason
        if count < have and (kept := _needed_lately(observation, policy, now_ms)) > count:
            count = min(have, kept)
            reasons.append(f"Keeping {count}: {kept} were needed in the last {policy.down_cooldown_ms / 1000:g} s.")
    else:
        raise TypeError(f"unknown policy {policy!r}")
    count = _within_bounds(count, policy)
    reasons.insert(0, reason)
    drain = tuple(worker.id for worker in leaving_order(candidates)[: max(0, have - count)])
    if have - count > len(drain):
        count = have - len(drain)
        reasons.append(f"Keeping {count}: the others are busy or protected.")
    if broken:
        reasons.append(f"Replacing {len(broken)}: {', '.join(_why_broken(worker) for worker in broken[:3])}.")
    return Decision(
        count=count,
        needed=needed,
        launch=max(0, count - have),
        drain=drain,
        replace=tuple(worker.id for worker in broken),
        reasons=tuple(reasons),
    )


def leaving_order(workers: Iterable[ObservedWorker]) -> Sequence[ObservedWorker]:
    """Returns the workers that may leave, in the order in which they do; never a protected one.

    First those that boot, the latest first; then idle ones; then those whose work is youngest, because they have the
    least to lose if draining is cut short. Of equals, the latest started.
    """
    return sorted(
        (worker for worker in workers if not worker.is_protected),
        key=lambda worker: (
            worker.state is not WorkerState.BOOTING,
            worker.busy > 0,
            -(worker.work_started_ms or 0) if worker.busy else 0,
            -worker.started_ms,
            worker.id,
        ),
    )


def _why_hold(observation: Observation, policy: Policy, now_ms: int) -> str | None:
    if observation.store_error is not None:
        return f"the store could not be read ({observation.store_error})"
    if observation.provider_error is not None:
        return f"the provider failed ({observation.provider_error})"
    if observation.at_ms is None:
        return "there are no figures"
    age_ms = now_ms - observation.at_ms
    if age_ms > policy.stale_ms:
        return f"the figures are {age_ms / 1000:g} s old"
    return None


def _is_broken(worker: ObservedWorker, observation: Observation, policy: Policy, now_ms: int) -> bool:
    if worker.state is WorkerState.FAILED:
        return True
    if worker.state is WorkerState.BOOTING:
        return now_ms - worker.started_ms > policy.boot_timeout_ms
    if worker.heartbeat_ms is None:
        return False
    last_ms = max(worker.heartbeat_ms, observation.readable_since_ms or 0)
    return now_ms - last_ms > policy.lost_ms


def _why_broken(worker: ObservedWorker) -> str:
    match worker.state:
        case WorkerState.BOOTING:
            return f"{worker.id} did not register in time"
        case WorkerState.FAILED:
            return f"{worker.id} failed"
        case _:
            return f"{worker.id} sends no heartbeat"


def _within_bounds(count: int, policy: Policy) -> int:
    return min(max(count, policy.min_workers), policy.max_workers)


def _needed_lately(observation: Observation, policy: DrainTime, now_ms: int) -> int:
    """The most workers needed at any time within the cool-down."""
    since = now_ms - policy.down_cooldown_ms
    return max((past.needed for past in observation.history if past.at_ms > since), default=0)
