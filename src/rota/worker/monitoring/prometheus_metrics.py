"""Prometheus metrics of one worker.

Collected if a metrics port is configured. They end with the process.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from typing import TYPE_CHECKING, Final

from rota.core.prometheus_text import Family, Histogram, render
from rota.store.report_encoding import CancelConfirmed, Cancelled, Completed, Failed, Lost, Report, Returned, Snoozed
from rota.worker.runners.measure_and_kill_process_trees import cpu_seconds, rss_bytes
from rota.worker.running_jobs import RunningJob

if TYPE_CHECKING:
    from rota.worker.run_loops_and_drain import Supervisor

LAG_EVERY_S: Final = 0.5
_OUTCOMES: Final[dict[type, str]] = {
    Completed: "completed",
    Snoozed: "snoozed",
    Returned: "returned",
    CancelConfirmed: "returned",  # the handler was stopped; `cancelled` are those that cancelled themselves
    Cancelled: "cancelled",
    Lost: "lost",
}


class WorkerMetrics:
    """Counts claims and attempts, and measures the lag of the supervisor's event loop."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor
        self._claims: Counter[str] = Counter()
        self._attempts = Histogram(
            "rota_worker_attempt_seconds", "Attempts that have ended here: how long each took, and its outcome."
        )
        self._lag_s = 0.0

    def job_claimed(self, queue: str) -> None:
        """Counts a claimed job."""
        self._claims[queue] += 1

    def attempt_ended(self, job: RunningJob, report: Report) -> None:
        """Counts an attempt that has ended, with its duration."""
        self._attempts.observe(
            time.monotonic() - job.started_at if job.started_at else 0.0,
            queue=job.job.queue,
            task=job.task,
            outcome=_outcome(report),
        )

    async def run(self) -> None:
        """Runs until cancelled: measures the lag of the loop."""
        loop = asyncio.get_running_loop()
        while True:
            before = loop.time()
            await asyncio.sleep(LAG_EVERY_S)
            self._lag_s = max(0.0, loop.time() - before - LAG_EVERY_S)

    def render(self, problems: dict[str, str]) -> str:
        """The text of a scrape. `problems`: the results of the health checks."""
        return render(
            [
                self._info(),
                *self._gauges(problems),
                self._counter("rota_worker_claims_total", "Jobs claimed.", self._claims, "queue"),
                self._attempts.family(),
                *self._processes(),
            ]
        )

    def _info(self) -> Family:
        info = Family("rota_worker_info", "gauge", "Always 1; what the worker is called, and its state, in labels.")
        info.add(1, worker=self._supervisor.id, state=self._supervisor.state, app=self._supervisor.config.app)
        return info

    def _gauges(self, problems: dict[str, str]) -> list[Family]:
        worker = self._supervisor
        slots = _gauge("rota_worker_capacity", "Slots.", worker.running.slots)
        busy = _gauge("rota_worker_in_flight", "Attempts under way.", worker.running.busy)
        ahead = _gauge("rota_worker_ahead", "Jobs claimed that wait for a slot.", len(worker.running.waiting))
        healthy = Family("rota_worker_healthy", "gauge", "1 where a health check is content.")
        for check, problem in problems.items():
            healthy.add(int(not problem), check=check)
        lag = Family("rota_worker_loop_lag_seconds", "gauge", "How late an event loop is; of the runners, the latest.")
        lag.add(self._lag_s, loop="supervisor")
        lag.add(max((runner.lag_ms for runner in worker.pool.runners), default=0) / 1000, loop="runner")
        return [slots, busy, ahead, healthy, lag]

    def _processes(self) -> list[Family]:
        worker = self._supervisor
        runners = [runner for runner in worker.pool.runners if runner.pid]
        count = Family("rota_worker_runners", "gauge", "Runner processes.")
        for kind in ("loop", "process"):
            count.add(sum(runner.kind == kind and runner.is_ready for runner in runners), kind=kind)
        ends = Family("rota_worker_runner_ends_total", "counter", "Runners that are gone: died, or were renewed.")
        for kind in ("loop", "process"):
            for how in ("died", "renewed"):
                ends.add(worker.pool.exits[kind, how], kind=kind, how=how)
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
