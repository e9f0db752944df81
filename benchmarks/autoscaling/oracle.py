"""The oracle: the cheapest plan of worker counts for a load that is known in advance.

Dynamic programming over steps of ten seconds. The state is the number of workers and the work that waits; the cost of
a plan is its worker-time plus the boot time of every launch; no work may wait longer than the target.
The plan is then run through the same simulator as every other scaler, with machines launched ahead of time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from benchmarks.autoscaling.simulator import Outcome, simulate, total_work
from benchmarks.autoscaling.traces import Trace
from rota.core.autoscaling.decide_launches_and_drains import Decision, leaving_order
from rota.core.autoscaling.observation import Observation, WorkerState

STEP: Final = 10.0
_INFINITE: Final = float("inf")


Table = list[list[bytes]]


class Planned:
    """Follows a plan: a table of step, workers and work that waits -> workers. Dead workers are replaced at once.

    The work that waits is what the plan expects, or what really waits, rounded down or up by `rounding`.
    """

    wakes_on_first_job = False
    history = 0.0
    is_oracle = True
    interval = STEP

    def __init__(
        self, trace: Trace, table: Table, work: Sequence[int], rounding: Callable[[float], int] | None
    ) -> None:
        self._unit = STEP * trace.slots
        self._table = table
        self._work = work
        self._rounding = rounding
        self._count = 0
        self._waiting = 0

    def decide(self, observation: Observation, now: float) -> Decision:
        """Returns the planned number; after the plan's end, one worker while jobs are left."""
        step = int(now / self.interval + 0.5)
        if step < len(self._table):
            rows = self._table[step]
            waiting = self._rounding(self.behind / self._unit) if self._rounding else self._waiting
            self._count = rows[self._count][min(waiting, len(rows[0]) - 1)]
            self._waiting = max(0, waiting + self._work[step] - self._count)
            count = self._count
        else:
            count = int(any(queue.high + queue.normal for queue in observation.queues))
        workers = [w for w in observation.workers if w.state in (WorkerState.BOOTING, WorkerState.RUNNING)]
        failed = tuple(w.id for w in observation.workers if w.state is WorkerState.FAILED)
        return Decision(
            count=count,
            needed=count,
            launch=max(0, count - len(workers)),
            drain=tuple(worker.id for worker in leaving_order(workers)[: max(0, len(workers) - count)]),
            replace=failed,
        )

    #: Slot-seconds that would have been done by now if every job had started at once; set by the simulator.
    behind: float = 0.0


def best_outcome(trace: Trace, share: float = 0.99) -> Outcome:
    """Returns the cheapest simulated plan that keeps this share of the waits within the target.

    Plans are made for several fractions of the target: jobs cannot be split as the plan splits them, so the plan for
    the whole target may miss it a little. If no plan keeps the share, the one that keeps most.
    """
    good: list[Outcome] = []
    outcomes: list[Outcome] = []
    for part in (1.0, 0.85, 0.7, 0.55, 0.4, 0.25):
        table, work = plan(trace, trace.target_wait * part)
        for rounding in (None, math.floor, math.ceil):
            outcome = simulate(trace, Planned(trace, table, work, rounding))
            outcomes.append(outcome)
            if outcome.share_within(trace.target_wait) >= share:
                good.append(outcome)
    if good:
        return min(good, key=lambda outcome: outcome.worker_hours)
    return max(outcomes, key=lambda outcome: outcome.share_within(trace.target_wait))


def plan(trace: Trace, target: float) -> tuple[Table, list[int]]:
    """Returns the cheapest number of workers for each step, number of workers before it, and work that waits.

    Work is counted in units of one worker and one step. A job's work falls due second by second as it would run if it
    started at once, so that the plan does not run one job on many slots.
    """
    steps = int(trace.length / STEP) + int(target / STEP) + 30
    work = _work_by_step(trace, steps, max(1, int(target / STEP / 3)))
    arrived = [0]
    for amount in work:
        arrived.append(arrived[-1] + amount)
    lag = max(1, int(target / STEP))
    most = trace.max_workers
    # What may wait at the end of a step: the work that fell due within the target.
    limits = _feasible([arrived[step + 1] - arrived[max(0, step + 1 - lag)] for step in range(steps)], work, most)
    boot = (trace.real_boot or trace.boot) / STEP
    value: list[list[float]] = [[0.0] for _ in range(most + 1)]  # after the last step nothing waits
    table: Table = []
    for step in reversed(range(steps)):
        before = limits[step - 1] if step else 0
        # By the number of workers that work in this step, and by what waits before it: the cost from here.
        cost = [_costs(count, value[count], before, work[step]) for count in range(most + 1)]
        value = [list(row) for row in cost]
        choice = [bytearray([count]) * (before + 1) for count in range(most + 1)]
        for count in range(most - 1, -1, -1):  # launching: one more, at the price of its boot
            row, chosen, above, above_chosen = value[count], choice[count], value[count + 1], choice[count + 1]
            for waiting in range(before + 1):
                if above[waiting] + boot < row[waiting]:
                    row[waiting], chosen[waiting] = above[waiting] + boot, above_chosen[waiting]
        best, best_count = list(cost[0]), bytearray(before + 1)
        for count in range(1, most + 1):  # draining: any smaller number
            row, chosen, own = value[count], choice[count], cost[count]
            for waiting in range(before + 1):
                if best[waiting] < row[waiting]:
                    row[waiting], chosen[waiting] = best[waiting], best_count[waiting]
                if own[waiting] < best[waiting]:
                    best[waiting], best_count[waiting] = own[waiting], count
        table.append([bytes(chosen) for chosen in choice])
    table.reverse()
    return table, work


def _costs(count: int, after: Sequence[float], before: int, arriving: int) -> list[float]:
    width = len(after)
    return [
        count + after[max(0, waiting + arriving - count)] if waiting + arriving - count < width else _INFINITE
        for waiting in range(before + 1)
    ]


def _work_by_step(trace: Trace, steps: int, patience: int) -> list[int]:
    """Work that falls due in each step, in whole units. Remainders are carried for at most `patience` steps."""
    amounts = [0.0] * (steps + 1)
    for job in trace.jobs:
        start, end = job.due, min(job.due + job.run, steps * STEP)
        while start < end:
            step = int(start / STEP)
            until = min(end, (step + 1) * STEP)
            amounts[step] += until - start
            start = until if until > start else end
    whole: list[int] = []
    rest = 0.0
    age = 0
    for amount in amounts[:steps]:
        rest += amount / STEP / trace.slots
        units = int(rest)
        rest -= units
        age = age + 1 if rest > 0 and not units else 0
        if age > patience and rest > 0.05:
            units, rest, age = units + 1, 0.0, 0
        whole.append(units)
    return whole


def _feasible(limits: list[int], work: list[int], most: int) -> list[int]:
    """Raises limits that not even the largest pool can keep, so that a plan exists."""
    waiting = 0
    relaxed: list[int] = []
    for limit, amount in zip(limits, work, strict=True):
        waiting = max(0, waiting + amount - most)
        relaxed.append(max(limit, waiting))
    relaxed[-1] = 0
    return relaxed


def least_worker_hours(trace: Trace) -> float:
    """The work alone, without boots and idle slots: no plan needs less."""
    return total_work(trace.jobs) / trace.slots / 3600
