"""Generated history for the rules of `rota.core.health`: weeks of a healthy system, in steps of five minutes.

Deterministic: the same seed makes the same weeks. Each queue is simulated as a fluid: jobs arrive, a fixed capacity
serves them, and what is left waits.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from rota.core.health.situation import QueueSituation, Situation
from rota.core.health.usual_values import Usual, compared_hours, usual_values
from rota.core.metric_series import BUCKETS, HOUR_MS, MINUTE_MS, Counts, Times, add_counts

STEP_MS = 5 * MINUTE_MS
STEPS_PER_HOUR = HOUR_MS // STEP_MS
STEPS_PER_DAY = 24 * STEPS_PER_HOUR
#: A Monday.
BEGIN_MS = 1_788_739_200_000


def times_of(durations: Sequence[float], weight: int = 1) -> Times:
    """The histogram of durations in ms, each counted `weight` times."""
    buckets = [0] * BUCKETS
    for one in durations:
        buckets[min(int(one).bit_length(), BUCKETS - 1)] += weight
    return Times(len(durations) * weight, round(sum(durations)) * weight, tuple(buckets))


@dataclass
class SimulatedQueue:
    """One queue with one task: its arrivals, its capacity, its run times and its failures."""

    name: str
    #: Step number -> expected arrivals.
    arrivals: Callable[[int], float]
    slots: int
    run_ms: float
    failure_rate: float = 0.01
    backlog: float = 0.0
    #: Hour -> its counts.
    hours: dict[int, Counts] = field(default_factory=dict[int, Counts])
    latest: Counts = field(default_factory=Counts)
    oldest_wait_ms: int | None = None

    def advance(self, step: int, chance: random.Random) -> None:
        """Simulates one step."""
        expected = self.arrivals(step)
        arrived = max(0, round(chance.gauss(expected, math.sqrt(expected)))) if expected else 0
        runs_ms = [chance.lognormvariate(math.log(self.run_ms), 0.6) for _ in range(40)]
        mean = sum(runs_ms) / len(runs_ms)
        capacity = self.slots * STEP_MS / mean
        served = min(self.backlog + arrived, capacity)
        wait_ms = self.backlog / capacity * STEP_MS
        self.backlog += arrived - served
        waited_until = self.backlog / capacity * STEP_MS
        count = round(served)
        failed = sum(chance.random() < self.failure_rate for _ in range(min(count, 1_000)))
        waits = [wait_ms + chance.random() * max(5.0, waited_until - wait_ms) for _ in range(20)]
        self.latest = Counts(
            enqueued=arrived,
            started=count,
            completed=count - failed,
            failed=failed,
            retried=failed,
            wait=times_of(waits, max(1, count // 20)) if count else Times(),
            run=times_of(runs_ms, max(1, count // 40)) if count >= 40 else times_of(runs_ms[:count]),
        )
        self.oldest_wait_ms = round(waited_until) if self.backlog >= 1 else None
        hour = (BEGIN_MS + step * STEP_MS) // HOUR_MS
        self.hours[hour] = add_counts([self.hours.get(hour, Counts()), self.latest])

    def situation(self, usual: Usual | None) -> QueueSituation:
        """What a server measures after the latest step."""
        seconds = STEP_MS / 1000
        ended = self.latest.completed + self.latest.failed
        is_busy = self.backlog >= 1
        return QueueSituation(
            name=self.name,
            pending=int(self.backlog),
            oldest_wait_ms=self.oldest_wait_ms,
            arrivals_per_second=self.latest.enqueued / seconds,
            services_per_second=ended / seconds,
            workers=2,
            slots=self.slots,
            busy=self.slots if is_busy else min(self.slots, ended),
            recent=self.latest,
            recent_by_task={self.name: self.latest},
            usual=usual,
            usual_by_task={} if usual is None else {self.name: usual},
        )


def _daily(step: int) -> float:
    """From 0.3 at night to 1 in the afternoon."""
    return 0.65 - 0.35 * math.cos(2 * math.pi * ((step % STEPS_PER_DAY) / STEPS_PER_DAY - 1 / 12))


def _at(hour: float, day: int | None = None) -> Callable[[int], bool]:
    """True in the one step of a day, or of a weekday, that begins at an hour."""

    def is_then(step: int) -> bool:
        is_day = day is None or step // STEPS_PER_DAY % 7 == day
        return is_day and step % STEPS_PER_DAY == round(hour * STEPS_PER_HOUR)

    return is_then


def healthy_queues() -> list[SimulatedQueue]:
    """Queues of a shop: steady mail, a nightly batch, a weekly batch, failing webhooks, a rare job."""
    nightly, weekly, hourly = _at(2), _at(4, day=6), _at(0)
    return [
        SimulatedQueue("mail", lambda step: 600 * _daily(step), slots=8, run_ms=120),
        SimulatedQueue("reports", lambda step: 4_000.0 * nightly(step) + 3, slots=4, run_ms=1_500),
        SimulatedQueue("invoices", lambda step: 9_000.0 * weekly(step) + 20 * _daily(step), slots=6, run_ms=900),
        SimulatedQueue("webhooks", lambda step: 300 * _daily(step), slots=10, run_ms=400, failure_rate=0.06),
        SimulatedQueue("rare", lambda step: 2.0 * hourly(step) + 0.2, slots=2, run_ms=8_000),
        SimulatedQueue("idle", lambda step: 0.0, slots=1, run_ms=100),
    ]


def situations(queues: Sequence[SimulatedQueue], *, days: int, judged: int, seed: int) -> Iterator[Situation]:
    """Simulates whole days, and yields the situation after each step of the last `judged` days."""
    chance = random.Random(seed)
    first = (days - judged) * STEPS_PER_DAY
    usual: dict[str, Usual | None] = {}
    for step in range(days * STEPS_PER_DAY):
        for queue in queues:
            queue.advance(step, chance)
        if step < first:
            continue
        now = BEGIN_MS + (step + 1) * STEP_MS
        if step % STEPS_PER_HOUR == STEPS_PER_HOUR - 1 or not usual:
            hour = now // HOUR_MS
            wanted = compared_hours(hour)
            for queue in queues:
                known = {one: queue.hours[one] for one in wanted if one in queue.hours}
                usual[queue.name] = usual_values(hour, known)
        yield Situation(at=now, queues=[queue.situation(usual[queue.name]) for queue in queues])
