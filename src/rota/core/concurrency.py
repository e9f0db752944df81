"""How many slots a worker should have when asked to decide for itself (`--concurrency auto`). A pure rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MOST: Final = 1_000
#: Above this much lag of a runner's loop, handlers get in each other's way.
HIGH_LAG_MS: Final = 100
LOW_LAG_MS: Final = 30
FREE_CPU: Final = 0.75
FULL_CPU: Final = 0.95


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


def ahead(landed: int, elapsed_s: float, round_trip_s: float, slots: int) -> int:
    """How many jobs to claim beyond the free slots, so that there is one for each slot that becomes free meanwhile.

    As many as will land during a round trip, going by those that landed in the last `elapsed_s`; twice that, because
    they do not come evenly; no more than there are slots. Where handlers take longer than round trips, that is none.
    """
    return min(slots, int(2 * landed * round_trip_s / elapsed_s)) if landed else 0
