"""`make simulate`: every trace under every scaler; writes the results and the plots of `docs/autoscaling.md`.

Two minutes of CPU time for each offset of the seeds. The policy was tuned with offset 0 only; the other shows whether
it fits other workloads of the same kinds.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any, Final

from benchmarks.autoscaling import oracle, plots, traces
from benchmarks.autoscaling.report import RESULTS
from benchmarks.autoscaling.scalers import KedaStyle, drain_time, thresholds
from benchmarks.autoscaling.simulator import Outcome, Scaler, simulate
from benchmarks.autoscaling.traces import Trace

SCALERS: Final[dict[str, Callable[[Trace], Scaler]]] = {
    "drain-time": drain_time,
    "thresholds": thresholds,
    "keda-style": KedaStyle,
}
#: The seeds that the policy was tuned with, and others.
OFFSETS: Final = (0, 1000)


def measured(trace: Trace) -> dict[str, Any]:
    """Returns the figures of one trace under every scaler and the oracle."""
    outcomes = {name: simulate(trace, scaler(trace)) for name, scaler in SCALERS.items()}
    outcomes["oracle"] = oracle.best_outcome(trace)
    found: dict[str, Any] = {
        "trace": trace.name,
        "title": trace.title,
        "jobs": len(trace.jobs),
        "target_s": trace.target_wait,
        "boot_s": trace.real_boot or trace.boot,
        "scalers": {name: _figures(outcome, trace) for name, outcome in outcomes.items()},
    }
    if trace.name in plots.TIMELINES:
        found["timeline"] = {
            name: [(round(sample.at), sample.workers) for sample in outcome.samples if sample.at <= trace.length]
            for name, outcome in outcomes.items()
        }
    return found


def _figures(outcome: Outcome, trace: Trace) -> dict[str, float]:
    return {
        "within": outcome.share_within(trace.target_wait),
        "p99_s": round(outcome.percentile(0.99), 1),
        "worker_hours": round(outcome.worker_hours, 3),
        "launches": outcome.launches,
    }


def _measured_at(place: tuple[int, int]) -> dict[str, Any]:
    offset, index = place
    return measured(traces.MAKERS[index](offset))


def main() -> int:
    """Simulates everything. Returns the exit code."""
    results: dict[str, list[dict[str, Any]]] = {}
    with ProcessPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        for offset in OFFSETS:
            rows = results.setdefault(str(offset), [])
            for row in pool.map(_measured_at, [(offset, index) for index in range(len(traces.MAKERS))]):
                own, best = row["scalers"]["drain-time"], row["scalers"]["oracle"]
                print(
                    f"{row['trace']:<24} {own['within']:7.2%} within {row['target_s']:.0f} s, "
                    f"{own['worker_hours'] / best['worker_hours']:.2f} × the oracle's worker-hours",
                    flush=True,
                )
                rows.append(row)
    plots.write(results["0"])
    for rows in results.values():
        for row in rows:
            row.pop("timeline", None)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
