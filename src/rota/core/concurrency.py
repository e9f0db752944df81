"""How many slots a worker should have when asked to decide for itself, and how many jobs to claim. Pure rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MOST: Final = 1_000
#: Above this much lag of a runner's loop, handlers get in each other's way.
HIGH_LAG_MS: Final = 100
LOW_LAG_MS: Final = 30
FREE_CPU: Final = 0.75
FULL_CPU: Final = 0.95
#: With fewer slots than this, so many jobs may be claimed ahead all the same.
MIN_AHEAD: Final = 16
#: Handlers that started together end together, so that in one cycle of claims far more may land than on average.
UNEVEN: Final = 4


@dataclass(frozen=True, slots=True)
class Load:
    """What was seen since the last decision."""

    slots: int
    busy: int
    has_backlog: bool
    cpu: float  # share of the machine's cores that this worker used, 0 … 1
    lag_ms: int  # the worst of its loops


def next_slots(load: Load) -> int:
    """Grows by a quarter while all slots are busy, jobs wait and CPU is free; shrinks by a fifth when loops lag."""
    if load.lag_ms > HIGH_LAG_MS or (load.cpu > FULL_CPU and load.lag_ms > LOW_LAG_MS):
        return max(1, load.slots - max(1, load.slots // 5))
    if load.busy >= load.slots and load.has_backlog and load.cpu < FREE_CPU and load.lag_ms < LOW_LAG_MS:
        return min(MOST, load.slots + max(1, load.slots // 4))
    return load.slots


def ahead(landed: int, elapsed_s: float, cycle_s: float, slots: int) -> int:
    """How many jobs to claim beyond the free slots, so that there is one for each slot that becomes free meanwhile.

    As many as will land until the next claim is answered, going by those that landed in the last `elapsed_s`; UNEVEN
    times that, because they come in bursts; and within bounds, because the next ones may take longer. Where handlers
    take far longer than a cycle of claims, that is none.
    """
    return min(max(slots, MIN_AHEAD), int(UNEVEN * landed * cycle_s / elapsed_s)) if landed else 0
