"""The settings of the autoscaler: the policies `drain-time` and `thresholds`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import ClassVar, Final

from rota.errors import InvalidOption

#: A pool has at most this many workers.
MAX_WORKERS: Final = 10_000
#: Longest duration of a setting.
MAX_MS: Final = 24 * 3600 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What both policies share. Raises InvalidOption, with the option's name, if a value is out of bounds."""

    name: ClassVar[str] = ""

    min_workers: int = 0
    max_workers: int = 10
    #: How often the caller decides.
    interval_ms: int = 10_000
    #: From the request of a worker until it claims jobs: the usual duration.
    boot_ms: int = 60_000
    #: A machine that has not registered within this time is replaced.
    boot_timeout_ms: int = 300_000
    #: A running worker without a heartbeat for this long is replaced.
    lost_ms: int = 60_000
    #: Figures older than this are stale: the decision is to hold.
    stale_ms: int = 30_000

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int):
                raise InvalidOption(field.name, f"takes a whole number, not {value!r}")
            least = 1 if field.name in _POSITIVE else 0
            most = MAX_MS if field.name.endswith("_ms") else MAX_WORKERS
            if not least <= value <= most:
                raise InvalidOption(field.name, f"{value:,} is not between {least:,} and {most:,}")
        if self.max_workers < self.min_workers:
            raise InvalidOption(
                "max_workers", f"{self.max_workers:,} is below min_workers, which is {self.min_workers:,}"
            )
        if self.boot_timeout_ms < self.boot_ms:
            raise InvalidOption(
                "boot_timeout_ms",
                f"{self.boot_timeout_ms:,} ms is shorter than boot_ms: every machine would be replaced as it boots",
            )
        if self.stale_ms < self.interval_ms:
            raise InvalidOption("stale_ms", f"{self.stale_ms:,} ms is shorter than interval_ms: no round would act")

    @property
    def history_ms(self) -> int:
        """For how long the caller passes earlier decisions in `Observation.history`."""
        return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainTime(Policy):
    """Enough workers to start every job within the target wait. The default policy."""

    name: ClassVar[str] = "drain-time"

    #: Twice as often as `thresholds`, so that bursts are seen earlier.
    interval_ms: int = 5_000
    #: Jobs should start within this time after they became due.
    target_wait_ms: int = 60_000
    #: A worker leaves only if it was not needed for this long. Less than `interval_ms`: at the first decision.
    down_cooldown_ms: int = 5_000
    #: Slots of a new worker, as long as no worker has reported its slots.
    worker_slots: int = 1
    #: Duration of a job, as long as no job has ended.
    assumed_run_ms: int = 5_000

    def __post_init__(self) -> None:
        # Zero-argument super() does not work in a dataclass with slots: the decorator makes a new class.
        Policy.__post_init__(self)

    @property
    def history_ms(self) -> int:
        """See `Policy.history_ms`."""
        return self.down_cooldown_ms + self.interval_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds(Policy):
    """More workers above one queue length, fewer below another. The numbers are those of the original script."""

    name: ClassVar[str] = "thresholds"

    min_workers: int = 1
    #: More workers above this number of pending jobs, one for each job above it.
    scale_up_above: int = 50
    #: Fewer workers below this number of pending jobs, one for each job below it, and only idle ones.
    scale_down_below: int = 10

    def __post_init__(self) -> None:
        Policy.__post_init__(self)
        if self.scale_down_below > self.scale_up_above:
            raise InvalidOption(
                "scale_down_below",
                f"{self.scale_down_below:,} is above scale_up_above, which is {self.scale_up_above:,}",
            )


_POSITIVE: Final = frozenset({"max_workers", "interval_ms", "target_wait_ms", "worker_slots", "assumed_run_ms"})

#: The policies by name.
POLICIES: Final[Mapping[str, type[Policy]]] = {policy.name: policy for policy in (DrainTime, Thresholds)}
