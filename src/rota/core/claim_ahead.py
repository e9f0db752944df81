"""How many jobs a worker claims ahead, for slots that will be free when the reply comes."""

from __future__ import annotations

from typing import Final

#: Lower bound of the limit on jobs claimed ahead, for workers with fewer slots.
MIN_AHEAD: Final = 16
#: Handlers that started together end together, so one claim cycle can free far more slots than the average.
BURST_FACTOR: Final = 4


def jobs_to_claim_ahead(ended: int, elapsed_s: float, cycle_s: float, slots: int) -> int:
    """Returns how many jobs to claim beyond the free slots, one for each slot freed before the next claim's reply.

    Extrapolates the `ended` attempts of the last `elapsed_s` to one claim cycle, times BURST_FACTOR because attempts
    end in bursts. Bounded, because the next attempts may take longer. 0 where handlers take far longer than a cycle.
    """
    return min(max(slots, MIN_AHEAD), int(BURST_FACTOR * ended * cycle_s / elapsed_s)) if ended else 0
