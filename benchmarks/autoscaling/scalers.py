"""The scalers that are compared."""

from __future__ import annotations

import math
from collections import deque

from benchmarks.autoscaling.traces import Trace
from rota.core.autoscaling.decide_launches_and_drains import Decision, desired, leaving_order
from rota.core.autoscaling.observation import Observation, WorkerState
from rota.core.autoscaling.policy_settings import DrainTime, Policy, Thresholds


class PolicyScaler:
    """A policy of Rota, as the autoscaler calls it."""

    is_oracle = False
    behind = 0.0

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.interval = policy.interval_ms / 1000
        self.history = policy.history_ms / 1000
        self.wakes_on_first_job = isinstance(policy, DrainTime)

    def decide(self, observation: Observation, now: float) -> Decision:
        """Decides with the real function."""
        return desired(observation, self._policy, round(now * 1000))


def drain_time(trace: Trace) -> PolicyScaler:
    """The default policy, configured with what a user knows: target, boot time, slots and the maximum."""
    return PolicyScaler(
        DrainTime(
            max_workers=trace.max_workers,
            target_wait_ms=round(trace.target_wait * 1000),
            boot_ms=round(trace.boot * 1000),
            worker_slots=trace.slots,
        )
    )


def thresholds(trace: Trace) -> PolicyScaler:
    """The rules of the original script."""
    return PolicyScaler(Thresholds(max_workers=trace.max_workers))


class KedaStyle:
    """List length as KEDA and the Horizontal Pod Autoscaler use it, with their defaults.

    One worker for each five waiting jobs, polled every 30 s. The most of the last 300 s counts, so that the pool
    shrinks slowly. Leaving workers drain, which Kubernetes would not do by itself: it is measured as if it did.
    """

    interval = 30.0
    wakes_on_first_job = False
    history = 0.0
    is_oracle = False
    behind = 0.0
    jobs_per_worker = 5
    stabilization = 300.0

    def __init__(self, trace: Trace) -> None:
        self._max = trace.max_workers
        self._wanted: deque[tuple[float, int]] = deque()

    def decide(self, observation: Observation, now: float) -> Decision:
        """Decides."""
        workers = [w for w in observation.workers if w.state in (WorkerState.BOOTING, WorkerState.RUNNING)]
        failed = tuple(w.id for w in observation.workers if w.state is WorkerState.FAILED)
        if observation.at_ms is None or observation.provider_error is not None:
            return Decision(count=len(workers), needed=len(workers), is_hold=True)
        length = sum(queue.high + queue.normal for queue in observation.queues)
        wanted = min(self._max, math.ceil(length / self.jobs_per_worker))
        self._wanted.append((now, wanted))
        while self._wanted[0][0] <= now - self.stabilization:
            self._wanted.popleft()
        count = max(wanted, min(len(workers), max(most for _, most in self._wanted)))
        leaving = leaving_order(workers)[: max(0, len(workers) - count)]
        return Decision(
            count=count,
            needed=wanted,
            launch=max(0, count - len(workers)),
            drain=tuple(worker.id for worker in leaving),
            replace=failed,
        )
