"""The parts of the README and of `docs/benchmarks.md` that are generated from the results, and the plots."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks import plots
from benchmarks.report import (
    COST,
    GROWTH,
    SPEED,
    WAITING,
    Comparison,
    Table,
    alone_table,
    goals_table,
    growth_table,
    markdown,
    number,
    peers_table,
    setups_table,
    summary_table,
    where_tables,
)

RESULTS: Final = Path(__file__).parent / "results"
NOTHING: Final = "Not measured yet."


def _comparison() -> Comparison:
    path = RESULTS / "peers.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return Comparison(json.loads(line) for line in lines)


def results(name: str) -> dict[str, Any]:
    """What is kept of a benchmark."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def _page(table: Table) -> str:
    return markdown(table) if len(table) > 1 else NOTHING


def _machine() -> str:
    comparison = _comparison()
    if not comparison.machine:
        return NOTHING
    about = comparison.machine
    allocator = about.get("allocator", "that of the C library")
    return (
        f"Measured on {about['date']}: {about['cpu']}, {about['cores']} cores, {about['memory_gb']} GB, "
        f"{about['system']}, Python {about['python']}; the server's allocator: {allocator}; "
        f"{comparison.repetitions()} repetitions."
    )


#: Figure -> how the front page of the documentation shows it.
HEADLINE: Final = {
    "drain_per_s": "**{}** jobs per second with one worker process",
    "latency_p99_ms": "**{} ms** from enqueue to start, 99th percentile",
    "bytes_per_job": "**{} bytes** of memory per waiting job",
    "idle_commands_per_s": "**{}** commands per second of an idle worker",
}


def _headline() -> str:
    comparison = _comparison()
    if not comparison.machine:
        return NOTHING
    return "\n".join(f"- {text.format(number(comparison.median('rota', name)))}" for name, text in HEADLINE.items())


def _where() -> str:
    measured = results("rota")
    tables = where_tables(measured) if measured else {}
    return "\n\n".join(markdown(table) for table in tables.values()) or NOTHING


def _growth() -> str:
    measured = results("growth")
    parts: list[str] = []
    for name, chart in GROWTH.items():
        if measured.get(name):
            parts += [f"![{chart.title}](benchmarks/{name}.svg)", markdown(growth_table(chart, measured[name]))]
    return "\n\n".join(parts) or NOTHING


def _alone() -> str:
    measured = results("rota")
    return _page(alone_table(measured)) if measured else NOTHING


PARTS: Final[Mapping[str, Callable[[], str]]] = {
    "bench-machine": _machine,
    "bench-headline": _headline,
    "bench-goals": lambda: _page(goals_table(_comparison())),
    "bench-summary": lambda: _page(summary_table(_comparison())),
    "bench-speed": lambda: _page(peers_table(_comparison(), SPEED)),
    "bench-waiting": lambda: _page(peers_table(_comparison(), WAITING)),
    "bench-cost": lambda: _page(peers_table(_comparison(), COST)),
    "bench-setups": lambda: markdown(setups_table(), is_text=True),
    "bench-alone": _alone,
    "bench-where": _where,
    "bench-growth": _growth,
}


def draw_plots() -> None:
    """Draws what was measured of growth."""
    plots.write(results("growth"))
