"""The policy `thresholds`: the rules of the original script over the number of pending jobs."""

from __future__ import annotations

from rota.core.autoscaling.observation import Observation
from rota.core.autoscaling.policy_settings import Thresholds


def change_by_thresholds(observation: Observation, policy: Thresholds, have: int) -> tuple[int, str]:
    """Returns the number of workers wanted, given that there are `have`, booting ones included, and the reason."""
    total = sum(queue.high + queue.normal for queue in observation.queues)
    if total > policy.scale_up_above and have < policy.max_workers:
        count = have + min(total - policy.scale_up_above, policy.max_workers - have)
        return count, f"{total} jobs are pending, more than {policy.scale_up_above}: {have} → {count} workers."
    if total < policy.scale_down_below and have > policy.min_workers:
        count = have - min(have - policy.min_workers, policy.scale_down_below - total)
        return count, f"{total} jobs are pending, fewer than {policy.scale_down_below}: {have} → {count} workers."
    return have, f"{total} jobs are pending: {have} workers stay."
