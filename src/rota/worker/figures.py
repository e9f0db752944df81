"""What a worker counts of itself for Prometheus, where a port for that was asked for. It forgets when it ends."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from rota.core.exposition import Family, Histogram, render
from rota.store.reports import Cancelled, Claimed, Completed, Failed, Lost, Report, Returned, Snoozed
from rota.worker.flights import Flight
from rota.worker.pool import RunnerProcess
from rota.worker.processes import cpu_seconds, rss_bytes

if TYPE_CHECKING:
    from rota.worker.worker import Worker

LAG_EVERY_S: Final = 0.5
_OUTCOMES: Final[dict[type, str]] = {
    Completed: "completed",
    Snoozed: "snoozed",
    Returned: "returned",
    Cancelled: "cancelled",
    Lost: "lost",
}


class Figures:
    """Counts claims, attempts and deaths of runners, and measures how late the supervisor's loop is."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._claims: Counter[str] = Counter()
        self._deaths: Counter[tuple[str, str]] = Counter()
        self._attempts = Histogram(
            "rota_worker_attempt_seconds", "Attempts that have ended here: how long each took, and its outcome."
        )
        self._lag_s = 0.0

    # --- what it hears -----------------------------------------------------------------------------------------

    def counting(self, take: Callable[[Claimed], None]) -> Callable[[Claimed], None]:
        """`take`, with every job that it takes counted."""

        def counted(job: Claimed) -> None:
            self._claims[job.queue] += 1
            take(job)

        return counted

    def landed(self, flight: Flight, report: Report) -> None:
        """An attempt has ended."""
        self._attempts.observe(
            time.monotonic() - flight.started_at if flight.started_at else 0.0,
            queue=flight.job.queue,
            task=flight.task,
            outcome=_outcome(report),
        )

    def buried(self, runner: RunnerProcess) -> None:
        """A runner is gone."""
        how = "died" if not (runner.is_quitting or runner.is_retired) else "renewed"
        self._deaths[runner.kind, how] += 1

    async def run(self) -> None:
        """For ever: measures the lag of the loop."""
        loop = asyncio.get_running_loop()
        while True:
            before = loop.time()
            await asyncio.sleep(LAG_EVERY_S)
            self._lag_s = max(0.0, loop.time() - before - LAG_EVERY_S)

    # --- what it says ------------------------------------------------------------------------------------------

    def exposition(self, ailments: dict[str, str]) -> str:
        """The text of a scrape. `ailments`: what the health checks found."""
        return render(
            [
                self._info(),
                *self._standing(ailments),
                self._counter("rota_worker_claims_total", "Jobs claimed.", self._claims, "queue"),
                self._attempts.family(),
                *self._processes(),
            ]
        )

    def _info(self) -> Family:
        info = Family("rota_worker_info", "gauge", "Always 1; what the worker is called, and its state, in labels.")
        info.add(1, worker=self._worker.id, state=self._worker.state, app=self._worker.config.app)
        return info

    def _standing(self, ailments: dict[str, str]) -> list[Family]:
        worker = self._worker
        slots = _gauge("rota_worker_capacity", "Slots.", worker.slots)
        busy = _gauge("rota_worker_in_flight", "Attempts under way.", worker.flights.busy)
        ahead = _gauge("rota_worker_ahead", "Jobs claimed that wait for a slot.", len(worker.flights.waiting))
        healthy = Family("rota_worker_healthy", "gauge", "1 where a health check is content.")
        for check, wrong in ailments.items():
            healthy.add(int(not wrong), check=check)
        lag = Family("rota_worker_loop_lag_seconds", "gauge", "How late an event loop is; of the runners, the latest.")
        lag.add(self._lag_s, loop="supervisor")
        lag.add(max((runner.lag_ms for runner in worker.pool.runners), default=0) / 1000, loop="runner")
        return [slots, busy, ahead, healthy, lag]

    def _processes(self) -> list[Family]:
        worker = self._worker
        runners = [runner for runner in worker.pool.runners if runner.pid]
        count = Family("rota_worker_runners", "gauge", "Runner processes.")
        for kind in ("loop", "process"):
            count.add(sum(runner.kind == kind and runner.is_ready for runner in runners), kind=kind)
        ends = Family("rota_worker_runner_ends_total", "counter", "Runners that are gone: died, or were renewed.")
        for kind in ("loop", "process"):
            for how in ("died", "renewed"):
                ends.add(self._deaths[kind, how], kind=kind, how=how)
        cpu = Family("rota_worker_cpu_seconds_total", "counter", "CPU time of each process.")
        memory = Family("rota_worker_memory_bytes", "gauge", "Memory that each process has in use.")
        for process, pid in [("supervisor", os.getpid()), *((runner.kind, runner.pid) for runner in runners)]:
            cpu.add(cpu_seconds(pid), process=process, pid=str(pid))
            memory.add(rss_bytes(pid), process=process, pid=str(pid))
        return [count, ends, cpu, memory]

    @staticmethod
    def _counter(name: str, help: str, counts: Counter[str], label: str) -> Family:
        family = Family(name, "counter", help)
        for key, value in counts.items():
            family.add(value, **{label: key})
        return family


def _gauge(name: str, help: str, value: float) -> Family:
    family = Family(name, "gauge", help)
    family.add(value)
    return family


def _outcome(report: Report) -> str:
    if isinstance(report, Failed):
        return "failed" if report.next_attempt == "final" else "retried"
    return _OUTCOMES[type(report)]
