"""Workloads: when jobs fall due, how long they run, and what goes wrong meanwhile. Each is drawn from a seed."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

MINUTE: Final = 60.0
HOUR: Final = 3600.0


class SimulatedJob(NamedTuple):
    """One job. Times are seconds since the start of the trace."""

    due: float
    run: float
    queue: int = 0
    is_high: bool = False
    #: When it was enqueued; before `due` for a scheduled job.
    enqueued: float = -1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A workload with its surroundings. Times are seconds."""

    name: str
    #: What it shows, for the report.
    title: str
    jobs: Sequence[SimulatedJob]
    length: float
    target_wait: float = 60.0
    max_workers: int = 10
    slots: int = 4
    #: The boot time that the policy is configured with, and the one that a machine takes (mean, spread by ±20 %).
    boot: float = 30.0
    real_boot: float | None = None
    #: Share of machines that never register.
    broken_boots: float = 0.0
    #: Mean time until a worker dies without notice; until a spot machine is reclaimed with two minutes' notice.
    mean_life: float | None = None
    mean_spot_life: float | None = None
    #: Spans in which the store cannot be read; in which the provider refuses every call.
    outages: Sequence[tuple[float, float]] = field(default=())
    throttled: Sequence[tuple[float, float]] = field(default=())
    seed: int = 0


Rate = Callable[[float], float]
RunTime = Callable[[random.Random], float]


def exponential(mean: float) -> RunTime:
    """Run times with an exponential distribution, at least 50 ms."""
    return lambda rng: max(0.05, rng.expovariate(1 / mean))


def lognormal(mean: float, sigma: float) -> RunTime:
    """Run times with a log-normal distribution."""
    mu = math.log(mean) - sigma * sigma / 2
    return lambda rng: max(0.05, rng.lognormvariate(mu, sigma))


def pareto(mean: float, alpha: float, most: float) -> RunTime:
    """Run times with a heavy tail, cut off at `most`."""
    least = mean * (alpha - 1) / alpha
    return lambda rng: min(most, least * rng.paretovariate(alpha))


def arrivals(rng: random.Random, rate: Rate, length: float, peak: float) -> list[float]:
    """Times of a Poisson process with a rate that changes: jobs per second at a time, at most `peak`."""
    times: list[float] = []
    now = 0.0
    while (now := now + rng.expovariate(peak)) < length:
        if rng.random() * peak < rate(now):
            times.append(now)
    return times


def poisson_jobs(
    rng: random.Random, rate: Rate, length: float, peak: float, run: RunTime, high: float = 0.2
) -> list[SimulatedJob]:
    """Jobs that arrive at a changing rate."""
    return [SimulatedJob(at, run(rng), 0, rng.random() < high) for at in arrivals(rng, rate, length, peak)]


def _sorted(*parts: Sequence[SimulatedJob]) -> list[SimulatedJob]:
    return sorted((job for part in parts for job in part), key=lambda job: job.due)


def all_traces(offset: int = 0) -> list[Trace]:
    """Returns every trace. The same offset of the seeds makes the same traces.

    A worker of four slots does half a job of 8 s per second.
    """
    return [make(offset) for make in MAKERS]


def _steady(offset: int) -> Trace:
    rng = random.Random(1 + offset)
    jobs = poisson_jobs(rng, lambda _: 2.6, 3 * HOUR, 2.6, exponential(8))
    return Trace(name="steady", title="constant load of 5.2 workers", jobs=jobs, length=3 * HOUR, seed=1 + offset)


def _step(offset: int) -> Trace:
    rng = random.Random(2 + offset)

    def rate(t: float) -> float:
        return 3.2 if HOUR <= t < 2 * HOUR else 0.6

    jobs = poisson_jobs(rng, rate, 3 * HOUR, 3.2, exponential(8))
    return Trace(name="step", title="from 1.2 to 6.4 workers and back", jobs=jobs, length=3 * HOUR, seed=2 + offset)


def _step_from_zero(offset: int) -> Trace:
    rng = random.Random(3 + offset)

    def rate(t: float) -> float:
        return 2.5 if 30 * MINUTE <= t < 2 * HOUR else 0.0

    jobs = poisson_jobs(rng, rate, 2.5 * HOUR, 2.5, exponential(8))
    return Trace(
        name="step-from-zero", title="idle, then 5 workers, then idle", jobs=jobs, length=2.5 * HOUR, seed=3 + offset
    )


def _daily_wave(offset: int) -> Trace:
    rng = random.Random(4 + offset)

    def rate(t: float) -> float:
        return 1.2 - 1.1 * math.cos(2 * math.pi * t / (24 * HOUR))

    jobs = poisson_jobs(rng, rate, 24 * HOUR, 2.3, lognormal(14, 0.8))
    return Trace(name="daily-wave", title="a day, from 0.4 to 8 workers", jobs=jobs, length=24 * HOUR, seed=4 + offset)


def _office_hours(offset: int) -> Trace:
    rng = random.Random(5 + offset)

    def rate(t: float) -> float:
        hour = t / HOUR * 3  # a day in eight hours
        return 0.05 + 2.4 * math.exp(-(((hour - 10) / 2) ** 2)) + 2.0 * math.exp(-(((hour - 15.5) / 1.8) ** 2))

    jobs = poisson_jobs(rng, rate, 8 * HOUR, 4.0, lognormal(8, 1.0))
    return Trace(
        name="office-hours", title="two peaks a day, a day in 8 h", jobs=jobs, length=8 * HOUR, seed=5 + offset
    )


def _bursts(offset: int) -> Trace:
    rng = random.Random(6 + offset)
    base = poisson_jobs(rng, lambda _: 1.4, 4 * HOUR, 1.4, exponential(8))
    burst: list[SimulatedJob] = []
    now = 0.0
    while (now := now + rng.uniform(8, 25) * MINUTE) < 4 * HOUR:
        burst += [SimulatedJob(now + rng.uniform(0, 5), exponential(8)(rng)) for _ in range(rng.randint(60, 200))]
    return Trace(
        name="bursts",
        title="60 to 200 jobs at once over 2.8 workers",
        jobs=_sorted(base, burst),
        length=4 * HOUR,
        seed=6 + offset,
    )


def _bursts_from_zero(offset: int) -> Trace:
    rng = random.Random(7 + offset)
    jobs: list[SimulatedJob] = []
    now = 0.0
    while (now := now + rng.uniform(20, 40) * MINUTE) < 5.5 * HOUR:
        jobs += [SimulatedJob(now + rng.uniform(0, 20), exponential(8)(rng)) for _ in range(rng.randint(80, 160))]
    return Trace(
        name="bursts-from-zero",
        title="idle, with 80 to 160 jobs every 20 to 40 min",
        jobs=_sorted(jobs),
        length=6 * HOUR,
        seed=7 + offset,
    )


def _fast_boots(offset: int) -> Trace:
    return replace(
        _bursts_from_zero(offset),
        name="fast-boots",
        title="the same bursts with machines of 10 s boot time",
        boot=10.0,
    )


def _cron_storm(offset: int) -> Trace:
    rng = random.Random(8 + offset)
    base = poisson_jobs(rng, lambda _: 1.0, 4 * HOUR, 1.0, exponential(8))
    storm = [
        SimulatedJob(minute * MINUTE, exponential(6)(rng), 1, False, (minute - 10) * MINUTE)
        for minute in range(10, 240, 10)
        for _ in range(150)
    ]
    return Trace(
        name="cron-storm",
        title="150 scheduled jobs every 10 min over 2 workers",
        jobs=_sorted(base, storm),
        length=4 * HOUR,
        seed=8 + offset,
    )


def _hourly_batch(offset: int) -> Trace:
    rng = random.Random(9 + offset)
    base = poisson_jobs(rng, lambda _: 0.4, 6 * HOUR, 0.4, exponential(8))
    batch = [
        SimulatedJob(hour * HOUR, lognormal(20, 0.7)(rng), 1, False, hour * HOUR - 1800)
        for hour in range(1, 6)
        for _ in range(400)
    ]
    return Trace(
        name="hourly-batch",
        title="400 scheduled jobs of 20 s every hour, target 10 min",
        jobs=_sorted(base, batch),
        length=6 * HOUR,
        target_wait=600,
        seed=9 + offset,
    )


def _heavy_tail(offset: int) -> Trace:
    rng = random.Random(10 + offset)
    jobs = poisson_jobs(rng, lambda _: 1.3, 5 * HOUR, 1.3, pareto(14, 1.5, 900))
    return Trace(
        name="heavy-tail",
        title="run times from 5 s to 15 min (Pareto 1.5)",
        jobs=jobs,
        length=5 * HOUR,
        seed=10 + offset,
    )


def _two_kinds(offset: int) -> Trace:
    rng = random.Random(11 + offset)

    def run(rng: random.Random) -> float:
        return rng.uniform(90, 150) if rng.random() < 0.06 else rng.uniform(0.5, 1.5)

    def rate(t: float) -> float:
        return 1.6 - 1.0 * math.cos(2 * math.pi * t / (2 * HOUR))

    jobs = poisson_jobs(rng, rate, 4 * HOUR, 2.6, run)
    return Trace(
        name="two-kinds", title="jobs of 1 s, and 6 % of two minutes", jobs=jobs, length=4 * HOUR, seed=11 + offset
    )


def _dying_workers(offset: int) -> Trace:
    rng = random.Random(12 + offset)
    jobs = poisson_jobs(rng, lambda _: 2.2, 4 * HOUR, 2.2, exponential(8))
    return Trace(
        name="dying-workers",
        title="4.4 workers; each dies after 20 min on average",
        jobs=jobs,
        length=4 * HOUR,
        mean_life=20 * MINUTE,
        seed=12 + offset,
    )


def _slow_boots(offset: int) -> Trace:
    rng = random.Random(13 + offset)

    def rate(t: float) -> float:
        return 2.0 - 1.4 * math.cos(2 * math.pi * t / (3 * HOUR))

    jobs = poisson_jobs(rng, rate, 6 * HOUR, 3.4, exponential(8))
    return Trace(
        name="slow-boots",
        title="machines of 3 min boot time on a wave, target 5 min",
        jobs=jobs,
        length=6 * HOUR,
        boot=180,
        target_wait=300,
        seed=13 + offset,
    )


def _slower_than_configured(offset: int) -> Trace:
    rng = random.Random(14 + offset)

    def rate(t: float) -> float:
        return 1.8 - 1.2 * math.cos(2 * math.pi * t / (2 * HOUR))

    jobs = poisson_jobs(rng, rate, 4 * HOUR, 3.0, exponential(8))
    return Trace(
        name="slower-than-configured",
        title="boots take 75 s where 30 s are configured, target 2 min",
        jobs=jobs,
        length=4 * HOUR,
        real_boot=75,
        target_wait=120,
        seed=14 + offset,
    )


def _broken_boots(offset: int) -> Trace:
    rng = random.Random(15 + offset)

    def rate(t: float) -> float:
        return 1.8 - 1.2 * math.cos(2 * math.pi * t / (2 * HOUR))

    jobs = poisson_jobs(rng, rate, 4 * HOUR, 3.0, exponential(8))
    return Trace(
        name="broken-boots",
        title="one machine in five never registers",
        jobs=jobs,
        length=4 * HOUR,
        broken_boots=0.2,
        seed=15 + offset,
    )


def _outages(offset: int) -> Trace:
    rng = random.Random(16 + offset)

    def rate(t: float) -> float:
        return 1.8 - 1.2 * math.cos(2 * math.pi * t / (3 * HOUR))

    jobs = poisson_jobs(rng, rate, 6 * HOUR, 3.0, exponential(8))
    outages: list[tuple[float, float]] = []
    throttled: list[tuple[float, float]] = []
    now = 0.0
    while (now := now + rng.uniform(10, 25) * MINUTE) < 6 * HOUR:
        (outages if rng.random() < 0.7 else throttled).append((now, now + rng.uniform(20, 60)))
    return Trace(
        name="metric-outages",
        title="no figures for 20 to 60 s, every 10 to 25 min",
        jobs=jobs,
        length=6 * HOUR,
        outages=outages,
        throttled=throttled,
        seed=16 + offset,
    )


def _spot(offset: int) -> Trace:
    rng = random.Random(17 + offset)

    def rate(t: float) -> float:
        return 2.2 - 0.8 * math.cos(2 * math.pi * t / (2 * HOUR))

    jobs = poisson_jobs(rng, rate, 4 * HOUR, 3.0, exponential(8))
    return Trace(
        name="spot",
        title="machines are reclaimed after 30 min on average, with notice",
        jobs=jobs,
        length=4 * HOUR,
        mean_spot_life=30 * MINUTE,
        seed=17 + offset,
    )


def _ramp(offset: int) -> Trace:
    rng = random.Random(18 + offset)
    jobs = poisson_jobs(rng, lambda t: 4.2 * min(t, 3 * HOUR - t) / (1.5 * HOUR), 3 * HOUR, 4.2, exponential(8))
    return Trace(
        name="ramp", title="from 0 to 8.4 workers in 90 min, and back", jobs=jobs, length=3 * HOUR, seed=18 + offset
    )


def _sawtooth(offset: int) -> Trace:
    rng = random.Random(19 + offset)
    jobs = poisson_jobs(rng, lambda t: 0.5 + 3.0 * (t % (20 * MINUTE)) / (20 * MINUTE), 4 * HOUR, 3.5, exponential(8))
    return Trace(
        name="sawtooth",
        title="from 1 to 7 workers every 20 min, then back at once",
        jobs=jobs,
        length=4 * HOUR,
        seed=19 + offset,
    )


def _flash_crowd(offset: int) -> Trace:
    rng = random.Random(20 + offset)

    def rate(t: float) -> float:
        if t < HOUR:
            return 0.6
        if t < HOUR + 300:
            return 0.6 * math.exp((t - HOUR) / 300 * math.log(6))
        return 0.6 + 3.0 * math.exp(-(t - HOUR - 300) / 1500)

    jobs = poisson_jobs(rng, rate, 3 * HOUR, 3.7, exponential(8))
    return Trace(
        name="flash-crowd",
        title="six times the load within 5 min, then decay",
        jobs=jobs,
        length=3 * HOUR,
        seed=20 + offset,
    )


def _sparse(offset: int) -> Trace:
    rng = random.Random(21 + offset)
    jobs = poisson_jobs(rng, lambda _: 1 / 240, 24 * HOUR, 1 / 240, exponential(30))
    return Trace(
        name="sparse",
        title="one job of 30 s every 4 min on average",
        jobs=jobs,
        length=24 * HOUR,
        slots=1,
        seed=21 + offset,
    )


def _slower_jobs(offset: int) -> Trace:
    rng = random.Random(22 + offset)

    def job(at: float) -> SimulatedJob:
        is_slow = HOUR <= at < 2 * HOUR
        return SimulatedJob(at, exponential(18 if is_slow else 6)(rng), 0, rng.random() < 0.2)

    jobs = [job(at) for at in arrivals(rng, lambda _: 1.7, 3 * HOUR, 1.7)]
    return Trace(
        name="slower-jobs",
        title="jobs take three times as long for an hour",
        jobs=jobs,
        length=3 * HOUR,
        seed=22 + offset,
    )


def _many_queues(offset: int) -> Trace:
    rng = random.Random(23 + offset)
    jobs: list[SimulatedJob] = []
    for queue in range(20):
        mean = rng.choice((0.5, 2, 8, 30))
        peak = 2.4 / mean * rng.uniform(0.3, 1.0)
        phase = rng.uniform(0, 2 * math.pi)

        def rate(t: float, peak: float = peak, phase: float = phase) -> float:
            return peak * (0.5 - 0.5 * math.cos(2 * math.pi * t / HOUR + phase))

        jobs += [
            SimulatedJob(at, exponential(mean)(rng), queue, rng.random() < 0.2)
            for at in arrivals(rng, rate, 2 * HOUR, peak)
        ]
    return Trace(
        name="many-queues",
        title="20 queues, jobs of 0.5 to 30 s, waves of their own",
        jobs=_sorted(jobs),
        length=2 * HOUR,
        seed=23 + offset,
    )


def _long_jobs(offset: int) -> Trace:
    rng = random.Random(24 + offset)

    def rate(t: float) -> float:
        return (5.0 - 3.5 * math.cos(2 * math.pi * t / (6 * HOUR))) / 300

    jobs = poisson_jobs(rng, rate, 18 * HOUR, 8.5 / 300, lognormal(300, 0.4))
    return Trace(
        name="long-jobs",
        title="jobs of 5 min, one slot, target 10 min",
        jobs=jobs,
        length=18 * HOUR,
        slots=1,
        boot=60,
        target_wait=600,
        max_workers=15,
        seed=24 + offset,
    )


def _random_walk(offset: int) -> Trace:
    rng = random.Random(25 + offset)
    levels: list[float] = []
    level = 1.5
    for _ in range(int(6 * HOUR / 60)):
        level = min(3.6, max(0.2, level * math.exp(rng.gauss(0, 0.12))))
        levels.append(level)
    jobs = poisson_jobs(rng, lambda t: levels[min(len(levels) - 1, int(t / 60))], 6 * HOUR, 3.6, lognormal(8, 1.0))
    return Trace(
        name="random-walk",
        title="a load that changes by 12 % each minute",
        jobs=jobs,
        length=6 * HOUR,
        seed=25 + offset,
    )


def _large_pool(offset: int) -> Trace:
    rng = random.Random(26 + offset)

    def rate(t: float) -> float:
        return 6.0 - 4.0 * math.cos(2 * math.pi * t / (1.5 * HOUR))

    jobs = poisson_jobs(rng, rate, 3 * HOUR, 10.0, exponential(8))
    return Trace(
        name="large-pool",
        title="a wave from 4 to 20 workers",
        jobs=jobs,
        length=3 * HOUR,
        max_workers=30,
        seed=26 + offset,
    )


MAKERS: Final[tuple[Callable[[int], Trace], ...]] = (
    _steady,
    _step,
    _step_from_zero,
    _ramp,
    _sawtooth,
    _daily_wave,
    _office_hours,
    _random_walk,
    _flash_crowd,
    _bursts,
    _bursts_from_zero,
    _cron_storm,
    _hourly_batch,
    _heavy_tail,
    _two_kinds,
    _slower_jobs,
    _many_queues,
    _long_jobs,
    _large_pool,
    _sparse,
    _dying_workers,
    _slow_boots,
    _slower_than_configured,
    _broken_boots,
    _outages,
    _spot,
    _fast_boots,
)
