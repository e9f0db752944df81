"""The configuration of an autoscaler. Validated when it is created."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Final

from rota.core.autoscaling.policy_settings import POLICIES, DrainTime, Policy
from rota.core.ids import checked_queue
from rota.store.autoscaler_lease_decisions_and_demand import ScalingSettings

#: Provider -> from the request of a machine until its worker claims jobs, usually; and the time-out, ms.
BOOT_MS: Final[Mapping[str, tuple[int, int]]] = {
    "local": (3_000, 60_000),
    "kubernetes": (30_000, 300_000),
    "exec": (60_000, 300_000),
    "ec2": (90_000, 600_000),
    "asg": (90_000, 600_000),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoscalerConfig:
    """What `rota autoscale` was started with."""

    provider: str = "local"
    policy: Policy = DrainTime()  # noqa: RUF009  # immutable
    #: The queues whose demand counts; None for all.
    queues: tuple[str, ...] | None = None
    is_dry_run: bool = False

    def __post_init__(self) -> None:
        for queue in self.queues or ():
            checked_queue(queue)

    def with_settings(self, settings: ScalingSettings) -> AutoscalerConfig:
        """The configuration with the settings that operators have changed at run time."""
        changes = {
            name: value
            for name in ("min_workers", "max_workers", "target_wait_ms")
            if (value := getattr(settings, name)) is not None
        }
        policy = (
            self.policy if settings.policy in (None, self.policy.name) else _converted(self.policy, settings.policy)
        )
        known = {field.name for field in fields(policy)}
        changes = {name: value for name, value in changes.items() if name in known}
        # Both bounds may have been changed at different times: the one that limits the cost counts.
        most = changes.get("max_workers", policy.max_workers)
        changes["min_workers"] = min(changes.get("min_workers", policy.min_workers), most)
        is_dry_run = self.is_dry_run if settings.is_dry_run is None else settings.is_dry_run
        return replace(self, policy=replace(policy, **changes), is_dry_run=is_dry_run)


def make_policy(name: str, provider: str, given: Mapping[str, int | None]) -> Policy:
    """Returns the policy of that name with the values given, and the durations that are usual for the provider."""
    kind = POLICIES[name]
    boot_ms, boot_timeout_ms = BOOT_MS[provider]
    values = {"boot_ms": boot_ms, "boot_timeout_ms": boot_timeout_ms}
    known = {field.name for field in fields(kind)}
    values |= {option: value for option, value in given.items() if value is not None and option in known}
    values["boot_timeout_ms"] = max(values["boot_timeout_ms"], values["boot_ms"])
    values.setdefault("stale_ms", max(30_000, 2 * values.get("interval_ms", 0)))
    return kind(**values)


def _converted(policy: Policy, name: str | None) -> Policy:
    """The policy of another name with the values that both have."""
    kind = POLICIES[name or policy.name]
    return kind(**{field.name: getattr(policy, field.name) for field in fields(Policy)})
