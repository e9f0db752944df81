"""The pool over time: the stored decisions of the planner, summed up per step for charts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

#: The planner stores at least one decision per minute and round. A gap of more than this means that none planned.
CARRIED_MS: Final = 180_000


class PoolSample(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a stored decision that charts show."""

    at: int
    wanted: int
    running: int = 0
    booting: int = 0
    draining: int = 0
    #: Pending jobs with a priority above normal, and the others; for how long the next one has been due.
    high: int = 0
    normal: int = 0
    oldest_wait_ms: int | None = None
    launch_count: int = 0
    drain_count: int = 0


class PoolStep(msgspec.Struct, frozen=True, kw_only=True):
    """One step: the greatest value of each figure, and the sum of what was launched and drained."""

    at: int
    wanted: int
    running: int
    booting: int
    draining: int
    backlog: int
    oldest_wait_ms: int | None
    launched: int
    drained: int


class PoolHistory(msgspec.Struct, frozen=True, kw_only=True):
    """The pool per step. A step in which no planner was at work is None."""

    since: int
    until: int
    step_ms: int
    steps: list[PoolStep | None]


def pool_history(samples: Iterable[PoolSample], *, since: int, until: int, step_ms: int) -> PoolHistory:
    """Sums up samples, in the order of their time, per step. The first step starts at or before `since`.

    A step without a decision repeats the latest one, if that is recent: a decision that changes nothing is stored
    once a minute. Older samples than `since` count for this only.
    """
    first = since // step_ms
    by_step: dict[int, list[PoolSample]] = {}
    before: PoolSample | None = None
    for sample in samples:
        if (number := sample.at // step_ms) < first:
            before = sample
        else:
            by_step.setdefault(number, []).append(sample)
    steps: list[PoolStep | None] = []
    for number in range(first, until // step_ms + 1):
        start = number * step_ms
        if found := by_step.get(number):
            steps.append(_summed(start, found))
            before = found[-1]
        elif before is not None and start - before.at <= CARRIED_MS:
            steps.append(_summed(start, [msgspec.structs.replace(before, launch_count=0, drain_count=0)]))
        else:
            steps.append(None)
    return PoolHistory(since=first * step_ms, until=until, step_ms=step_ms, steps=steps)


def _summed(at: int, samples: list[PoolSample]) -> PoolStep:
    waits = [sample.oldest_wait_ms for sample in samples if sample.oldest_wait_ms is not None]
    return PoolStep(
        at=at,
        wanted=max(sample.wanted for sample in samples),
        running=max(sample.running for sample in samples),
        booting=max(sample.booting for sample in samples),
        draining=max(sample.draining for sample in samples),
        backlog=max(sample.high + sample.normal for sample in samples),
        oldest_wait_ms=max(waits, default=None),
        launched=sum(sample.launch_count for sample in samples),
        drained=sum(sample.drain_count for sample in samples),
    )
