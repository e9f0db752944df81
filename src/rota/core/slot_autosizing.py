"""Automatic concurrency: how many slots a worker gets for its load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MAX_SLOTS: Final = 1_000
#: Above this lag of a runner's event loop, handlers delay each other.
HIGH_LAG_MS: Final = 100
LOW_LAG_MS: Final = 30
FREE_CPU: Final = 0.75
FULL_CPU: Final = 0.95


@dataclass(frozen=True, slots=True)
class WorkerLoad:
    """Load of a worker since the last decision."""

    slots: int
    busy: int
    has_backlog: bool
    cpu: float  # share of the machine's cores used by this worker, 0 … 1
    lag_ms: int  # worst lag among its event loops


def next_slots(load: WorkerLoad) -> int:
    """Returns the new number of slots.

    Grows by a quarter while all slots are busy, jobs wait and CPU is free; shrinks by a fifth when loops lag.
    """
    if load.lag_ms > HIGH_LAG_MS or (load.cpu > FULL_CPU and load.lag_ms > LOW_LAG_MS):
        return max(1, load.slots - max(1, load.slots // 5))
    if load.busy >= load.slots and load.has_backlog and load.cpu < FREE_CPU and load.lag_ms < LOW_LAG_MS:
        return min(MAX_SLOTS, load.slots + max(1, load.slots // 4))
    return load.slots
