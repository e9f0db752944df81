"""What the benchmarks say follows from what was measured. How fast anything is, no test asks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from benchmarks import docs_sections, guarantee_costs, plots
from benchmarks.peer import Peer, peers
from benchmarks.peer_interface import SLOTS
from benchmarks.report import GROWTH, Comparison, goals_table, number, peers_table, plain
from rota.store.redis import script_compiler

ROOT = Path(__file__).parents[2]


def row(peer: str, repetition: int, measure: str, **figures: float) -> dict[str, Any]:
    return {"peer": peer, "repetition": repetition, "measure": measure, "figures": figures}


@pytest.mark.parametrize("peer", peers().values(), ids=lambda peer: peer.name)
def test_a_peer_says_what_it_is_and_pins_what_it_needs(peer: Peer) -> None:
    assert set(peer.about) == {"title", "guarantee", "setup", "packages"}
    assert str(peer.about["guarantee"]).startswith(("at least once", "at most once"))
    assert peer.packages or peer.name == "rota"
    assert all("==" in package or "@" in package for package in peer.packages)


def test_a_comparison_shows_the_median_with_the_least_and_the_greatest() -> None:
    rows = [row("rota", n, "drain", drain_per_s=rate) for n, rate in enumerate((300, 100, 200))]

    table = peers_table(Comparison(rows), (("drain", "drain_per_s"), ("two", "two_per_s")))

    assert list(table) == [("", "drain"), ("Rota", "200 (100–300)")]


def test_a_goal_is_compared_with_the_best_peer_that_delivers_at_least_once() -> None:
    rows = [
        row("rota", 1, "latency", latency_p50_ms=1.0),
        row("huey", 1, "latency", latency_p50_ms=0.5),
        row("taskiq", 1, "latency", latency_p50_ms=2.0),
        row("celery", 1, "latency", latency_p50_ms=4.0),
    ]

    _, reached = goals_table(Comparison(rows))

    assert reached == ("enqueue to handler start, p50 ms", "1", "taskiq (streams): 2", "0.50 ×", "≤ 0.8 ×", "✓")


def test_the_life_of_a_job_is_its_enqueueing_and_its_draining_of_the_same_repetition() -> None:
    rows = [
        row("rota", 1, "drain", bulk_server_us=10, drain_server_us=20),
        row("rota", 1, "single", single_server_us=50),
        row("rota", 2, "drain", bulk_server_us=12, drain_server_us=20),
    ]

    found = Comparison(rows)

    assert (found.median("rota", "life_bulk_us"), found.median("rota", "life_single_us")) == (31, 70)


def test_handlers_are_counted_in_threads_and_in_processes(tmp_path: Path) -> None:
    (tmp_path / "job_counters").write_bytes(bytes(SLOTS * 8))
    code = """
import os, threading
from benchmarks.peer_interface import count_job
def many():
    for _ in range(1000): count_job()
child = os.fork()
threads = [threading.Thread(target=many) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
if child: os.waitpid(child, 0)
"""
    environment = {**os.environ, "BENCH_FOLDER": str(tmp_path), "PYTHONPATH": str(ROOT)}

    subprocess.run([sys.executable, "-c", code], env=environment, check=True)

    assert sum(memoryview((tmp_path / "job_counters").read_bytes()).cast("Q")) == 8000


def test_a_plot_has_a_line_for_each_figure_and_a_dot_for_each_point() -> None:
    points = [{"x": 10**n, "enqueue_server_us": 10 + n, "drain_server_us": 20} for n in range(3, 7)]

    drawing = ElementTree.fromstring(plots.draw(GROWTH["waiting"], points))

    found = [element.tag.rpartition("}")[2] for element in drawing]
    assert (found.count("polyline"), found.count("circle")) == (2, 8)


def test_the_plots_of_the_documentation_are_those_of_the_results() -> None:
    drawn = plots.drawn(docs_sections.results("growth"))

    # Those of the autoscaler are drawn by `make simulate`.
    files = [path for path in plots.FOLDER.glob("*.svg") if not path.stem.startswith("autoscaling-")]
    assert {path.stem: path.read_text(encoding="utf-8") for path in files} == drawn, (
        "run: .venv/bin/python -m docs.generate"
    )


@pytest.mark.parametrize(
    ("value", "text"), [(12345.6, "12,346"), (99.44, "99.4"), (1.234, "1.23"), (3.0, "3"), (None, "–")]
)
def test_a_figure_has_as_many_digits_as_count(value: float | None, text: str) -> None:
    assert number(value) == text


def test_a_table_for_the_terminal_has_its_figures_in_columns() -> None:
    assert plain([("", "a"), ("one", "10"), ("three", "5")]) == "        a\n---------\none    10\nthree   5"


@pytest.mark.parametrize("variant", guarantee_costs.VARIANTS)
def test_the_scripts_without_a_guarantee_differ_from_those_with_it(variant: str, tmp_path: Path) -> None:
    names = ("enqueue_fast", "claim", "complete")
    usual = [script_compiler.script(name).digest for name in names]
    try:
        guarantee_costs.use_scripts(guarantee_costs.copy_scripts(tmp_path / "lua", guarantee_costs.VARIANTS[variant]))
        changed = [script_compiler.script(name).digest for name in names]
    finally:
        guarantee_costs.use_scripts(guarantee_costs.LUA)

    assert (changed != usual) is (variant != "all")
