"""The Grafana dashboards as reviewable code. `python -m deploy.dashboards` writes their JSON.

A test compares the committed JSON with the output of this module, and runs every query against a real Prometheus.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).parent / "grafana" / "dashboards"
WIDTH: Final = 24
SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """A panel of a dashboard: `queries` maps a legend to PromQL."""

    title: str
    queries: Mapping[str, str]
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 8
    height: int = 8
    note: str = ""
    #: Value -> colour from there on, for single numbers.
    steps: Sequence[tuple[float | None, str]] = ((None, "green"),)


def stat(title: str, query: str, *, unit: str = "short", steps: Sequence[tuple[float | None, str]] = ()) -> Panel:
    """Returns a panel with a single number."""
    return Panel(
        title=title, queries={"": query}, unit=unit, kind="stat", width=4, height=4, steps=steps or ((None, "blue"),)
    )


def _quantile(share: float, metric: str, by: str) -> str:
    buckets = f'max by (job, queue, task, le) (rate({metric}_bucket{{queue=~"$queue"}}[5m]))'
    return f"histogram_quantile({share}, sum by ({by}, le) ({buckets}))"


BAD_ABOVE_0: Final = ((None, "green"), (1.0, "red"))
GOOD_AT_1: Final = ((None, "red"), (1.0, "green"))

OVERVIEW: Final = [
    stat("Store", "min(rota_store_up)", steps=GOOD_AT_1),
    stat("Waiting", "sum(rota:queue_waiting:sum)"),
    stat("Processing", 'sum(rota:queue_jobs:max{state="processing"})'),
    stat("Dead letters", 'sum(rota:queue_jobs:max{state="failed"})', steps=BAD_ABOVE_0),
    stat("Live workers", 'sum(max by (job, state) (rota_workers{state=~"active|waiting|draining"}))'),
    stat("Busy slots", "max(rota:slots_busy:ratio)", unit="percentunit"),
    Panel(
        title="Jobs in and out",
        unit="ops",
        width=12,
        queries={
            "enqueued": "sum(rota:jobs_enqueued:rate5m)",
            "{{outcome}}": "sum by (outcome) (rota:jobs_ended:rate5m)",
        },
    ),
    Panel(
        title="Jobs by state",
        width=12,
        queries={
            "{{state}}": 'sum by (state) (rota:queue_jobs:max{state!~"completed|cancelled"})',
        },
    ),
    Panel(
        title="Longest wait by queue",
        unit="s",
        queries={"{{queue}}": "topk(10, rota:queue_oldest_age_seconds:max)"},
        note="How long the next job to start has been due.",
    ),
    Panel(
        title="Wait from due to start (p95)", unit="s", queries={"{{queue}}": "topk(10, rota:job_wait_seconds:p95_5m)"}
    ),
    Panel(
        title="Failed for good, by queue",
        unit="percentunit",
        queries={"{{queue}}": "topk(10, rota:failure_ratio:rate5m)"},
    ),
    Panel(title="Time to drain pending jobs", unit="s", queries={"{{queue}}": "topk(10, rota:drain_seconds)"}),
    Panel(title="Retries", unit="ops", queries={"{{queue}}": "rota:retries:rate5m"}),
    Panel(title="Jobs that lost their worker, in 15 minutes", queries={"{{queue}}": "rota:leases_expired:increase15m"}),
    Panel(
        title="Memory of the store",
        unit="bytes",
        queries={
            "used": "max(rota_store_memory_bytes)",
            "limit": "max(rota_store_memory_limit_bytes) > 0",
        },
    ),
    Panel(title="Round trip to the store", unit="s", queries={"{{instance}}": "rota_store_roundtrip_seconds"}),
    Panel(title="Connections of the store", queries={"connections": "max(rota_store_clients)"}),
    Panel(title="Workflows", queries={"{{state}}": "max by (state) (rota_workflows)"}),
]

QUEUE: Final = [
    stat("Pending", 'sum(rota:queue_jobs:max{queue=~"$queue",state="pending"})'),
    stat("Processing", 'sum(rota:queue_jobs:max{queue=~"$queue",state="processing"})'),
    stat("Dead letters", 'sum(rota:queue_jobs:max{queue=~"$queue",state="failed"})', steps=BAD_ABOVE_0),
    stat("Longest wait", 'max(rota:queue_oldest_age_seconds:max{queue=~"$queue"})', unit="s"),
    stat("Workers", 'min(max by (job, queue) (rota_queue_workers{queue=~"$queue"}))', steps=GOOD_AT_1),
    stat("Paused", 'max(rota_queue_paused{queue=~"$queue"})', steps=BAD_ABOVE_0),
    Panel(
        title="Jobs by state",
        width=12,
        queries={
            "{{queue}} {{state}}": 'rota:queue_jobs:max{queue=~"$queue",state!~"completed|cancelled"}',
        },
    ),
    Panel(
        title="Jobs in and out",
        unit="ops",
        width=12,
        queries={
            "{{queue}} enqueued": 'rota:jobs_enqueued:rate5m{queue=~"$queue"}',
            "{{queue}} {{outcome}}": 'rota:jobs_ended:rate5m{queue=~"$queue"}',
        },
    ),
    Panel(
        title="Attempts by task and outcome",
        unit="ops",
        width=12,
        queries={
            "{{task}} {{outcome}}": 'rota:attempts:rate5m{queue=~"$queue"}',
        },
    ),
    Panel(
        title="Duration of attempts",
        unit="s",
        width=12,
        queries={
            "p50 {{task}}": _quantile(0.5, "rota_job_run_seconds", "task"),
            "p95 {{task}}": _quantile(0.95, "rota_job_run_seconds", "task"),
            "p99 {{task}}": _quantile(0.99, "rota_job_run_seconds", "task"),
        },
    ),
    Panel(
        title="Wait from due to start",
        unit="s",
        width=12,
        queries={
            "p50 {{queue}}": _quantile(0.5, "rota_job_wait_seconds", "queue"),
            "p95 {{queue}}": _quantile(0.95, "rota_job_wait_seconds", "queue"),
            "p99 {{queue}}": _quantile(0.99, "rota_job_wait_seconds", "queue"),
        },
    ),
    Panel(
        title="Retries by task",
        unit="ops",
        width=12,
        queries={
            "{{task}}": 'sum by (task) (max by (job, queue, task) (rate(rota_retries_total{queue=~"$queue"}[5m])))',
        },
    ),
    Panel(
        title="Locks",
        queries={
            "{{queue}} held": 'max by (queue) (rota_queue_locks{queue=~"$queue"})',
            "{{queue}} waited for": 'max by (queue) (rota_queue_lock_waiting{queue=~"$queue"})',
        },
    ),
    Panel(
        title="Schedules",
        queries={
            "{{queue}} {{state}}": 'max by (queue, state) (rota_schedules{queue=~"$queue"})',
        },
    ),
    Panel(
        title="Late ticks",
        unit="s",
        queries={
            "{{queue}}": 'max by (queue) (rota_schedule_lag_seconds{queue=~"$queue"})',
        },
    ),
    Panel(
        title="Outcomes not delivered to dependents",
        queries={
            "{{queue}}": 'max by (queue) (rota_queue_outbox{queue=~"$queue"})',
        },
    ),
    Panel(
        title="Cancelled, still stopping",
        queries={
            "{{queue}}": 'max by (queue) (rota_queue_stopping{queue=~"$queue"})',
        },
    ),
    Panel(
        title="Redriven",
        unit="ops",
        queries={
            "{{queue}}": 'max by (queue) (rate(rota_redriven_total{queue=~"$queue"}[5m]))',
        },
    ),
]

WORKERS: Final = [
    stat("Live", 'sum(max by (job, state) (rota_workers{state=~"active|waiting|draining"}))'),
    stat("Dead", 'max(rota_workers{state="dead"})', steps=BAD_ABOVE_0),
    stat("Slots", "sum(rota_worker_capacity)"),
    stat("In flight", "sum(rota_worker_in_flight)"),
    stat("Runners", "sum(rota_worker_runners)"),
    stat("Unhealthy", "count(min by (instance) (rota_worker_healthy) == 0) or vector(0)", steps=BAD_ABOVE_0),
    Panel(
        title="In flight, by worker",
        queries={
            "{{instance}}": "rota_worker_in_flight",
            "slots {{instance}}": "rota_worker_capacity",
        },
    ),
    Panel(
        title="Claims",
        unit="ops",
        queries={
            "{{instance}}": "sum by (instance) (rate(rota_worker_claims_total[5m]))",
        },
    ),
    Panel(title="Claimed ahead of free slots", queries={"{{instance}}": "rota_worker_ahead"}),
    Panel(
        title="Attempts by outcome",
        unit="ops",
        queries={
            "{{outcome}}": "sum by (outcome) (rota:attempts:rate5m)",
        },
    ),
    Panel(title="Slowest tasks (p95)", unit="s", queries={"{{task}}": "topk(10, rota:job_run_seconds:p95_5m)"}),
    Panel(title="Lag of event loops", unit="s", queries={"{{instance}} {{loop}}": "rota_worker_loop_lag_seconds"}),
    Panel(
        title="CPU",
        unit="percentunit",
        queries={
            "{{instance}} {{process}}": "sum by (instance, process) (rate(rota_worker_cpu_seconds_total[5m]))",
        },
    ),
    Panel(
        title="Memory",
        unit="bytes",
        queries={
            "{{instance}} {{process}}": "sum by (instance, process) (rota_worker_memory_bytes)",
        },
    ),
    Panel(
        title="Runners that ended, in 15 minutes",
        queries={
            "{{instance}} {{kind}} {{how}}": "increase(rota_worker_runner_ends_total[15m])",
        },
    ),
    Panel(
        title="Health",
        kind="table",
        width=24,
        queries={
            "": "min by (instance, check) (rota_worker_healthy)",
        },
    ),
    stat("Autoscaler", "max(rota_autoscaler_up)", steps=GOOD_AT_1),
    stat("Paused", "max(rota_autoscaler_paused)", steps=BAD_ABOVE_0),
    stat("Last round holds", "max(rota_autoscaler_hold)", steps=BAD_ABOVE_0),
    stat("Since the last round", "min(rota_autoscaler_last_round_seconds)", unit="s"),
    stat("Workers wanted", 'max(rota_autoscaler_workers{state="wanted"})'),
    stat("Workers running", 'max(rota_autoscaler_workers{state="running"})'),
    Panel(
        title="Autoscaler: workers",
        width=12,
        queries={
            "{{state}}": "max by (state) (rota_autoscaler_workers)",
            "limit {{bound}}": "max by (bound) (rota_autoscaler_limit_workers)",
        },
        note="Wanted: what the autoscaler has decided. Booting workers have been requested and have not registered.",
    ),
    Panel(
        title="Autoscaler: longest wait and target",
        unit="s",
        width=12,
        queries={
            "longest wait": "max(rota_autoscaler_oldest_wait_seconds)",
            "target": "max(rota_autoscaler_target_wait_seconds)",
        },
        note="How long the next job had been due in the latest planning round.",
    ),
    Panel(
        title="Autoscaler: backlog",
        width=12,
        queries={
            "waiting": "sum(rota:queue_waiting:sum)",
            "processing": 'sum(rota:queue_jobs:max{state="processing"})',
        },
    ),
    Panel(
        title="Autoscaler: decisions that changed something, in 15 minutes",
        width=12,
        queries={"decisions": "max(increase(rota_autoscaler_decisions_total[15m]))"},
    ),
]

DASHBOARDS: Final = {
    "rota-overview": ("Rota: overview", OVERVIEW, False),
    "rota-queue": ("Rota: queue", QUEUE, True),
    "rota-workers": ("Rota: workers", WORKERS, False),
}


def dashboard(uid: str) -> dict[str, Any]:
    """Returns the JSON model of a dashboard."""
    title, panels, has_queue = DASHBOARDS[uid]
    return {
        "uid": uid,
        "title": title,
        "tags": ["rota"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": _variables(has_queue=has_queue)},
        "links": [{"type": "dashboards", "tags": ["rota"], "title": "Rota", "asDropdown": True}],
        "panels": _placed(panels),
    }


def _variables(*, has_queue: bool) -> list[dict[str, Any]]:
    source = {"name": "datasource", "label": "Source", "type": "datasource", "query": "prometheus"}
    if not has_queue:
        return [source]
    queue = {
        "name": "queue",
        "label": "Queue",
        "type": "query",
        "datasource": SOURCE,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "refresh": 2,
        "sort": 1,
        "current": {"text": "All", "value": "$__all"},
        "query": {"query": "label_values(rota_queue_jobs, queue)", "refId": "queues"},
    }
    return [source, queue]


def _placed(panels: Sequence[Panel]) -> list[dict[str, Any]]:
    """Places panels side by side, from left to right, row by row."""
    placed: list[dict[str, Any]] = []
    x, y, tallest = 0, 0, 0
    for number, panel in enumerate(panels, start=1):
        if x + panel.width > WIDTH:
            x, y, tallest = 0, y + tallest, 0
        place = {"x": x, "y": y, "w": panel.width, "h": panel.height}
        placed.append({"id": number, "gridPos": place, **_panel(panel)})
        x, tallest = x + panel.width, max(tallest, panel.height)
    return placed


def _panel(panel: Panel) -> dict[str, Any]:
    is_table = panel.kind == "table"
    targets = [
        {
            "refId": chr(ord("A") + place),
            "datasource": SOURCE,
            "expr": expr,
            "legendFormat": legend or "__auto",
            "range": panel.kind == "timeseries",
            "instant": panel.kind != "timeseries",
            "format": "table" if is_table else "time_series",
        }
        for place, (legend, expr) in enumerate(panel.queries.items())
    ]
    steps = [{"value": value, "color": color} for value, color in panel.steps]
    defaults = {"unit": panel.unit, "min": 0, "thresholds": {"mode": "absolute", "steps": steps}}
    return {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.note,
        "datasource": SOURCE,
        "targets": targets,
        "fieldConfig": {"defaults": defaults, "overrides": []},
    }


def written(uid: str) -> str:
    """Returns the text of a dashboard's file."""
    return json.dumps(dashboard(uid), indent=2, ensure_ascii=False) + "\n"


def main() -> int:
    """Writes all dashboards."""
    for uid in DASHBOARDS:
        (FOLDER / f"{uid}.json").write_text(written(uid), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
