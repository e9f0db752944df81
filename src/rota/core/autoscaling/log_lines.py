"""The log lines of the autoscaler, in the wording of the original script."""

from __future__ import annotations

from collections.abc import Sequence

from rota.core.autoscaling.decide_launches_and_drains import Decision
from rota.core.autoscaling.observation import Observation


def queue_length_line(observation: Observation) -> str:
    """Returns `Queue Length: 75 (High Priority: 50, Normal: 25)`: the pending jobs of all served queues."""
    high = sum(queue.high for queue in observation.queues)
    normal = sum(queue.normal for queue in observation.queues)
    return f"Queue Length: {high + normal} (High Priority: {high}, Normal: {normal})"


def scaling_lines(decision: Decision) -> list[str]:
    """Returns what the decision changes: `Scaling up by 3 instances...`; none if it changes nothing."""
    lines: list[str] = []
    if decision.launch:
        lines.append(f"Scaling up by {_instances(decision.launch)}...")
    if decision.drain:
        lines.append(f"Scaling down by {_instances(len(decision.drain))}...")
    if decision.replace:
        lines.append(f"Replacing {_instances(len(decision.replace))}: {', '.join(decision.replace)}")
    return lines


def launched_line(ids: Sequence[str]) -> str:
    """Returns `Launched instances: i-0abcd1234, i-0efgh5678`, after the provider has launched them."""
    return f"Launched instances: {', '.join(ids)}"


def terminated_line(ids: Sequence[str]) -> str:
    """Returns `Terminated instances: i-0abcd1234`, after these have drained and the provider has removed them."""
    return f"Terminated instances: {', '.join(ids)}"


def _instances(count: int) -> str:
    return f"{count} instance" if count == 1 else f"{count} instances"
