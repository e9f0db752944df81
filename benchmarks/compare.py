"""`make bench-peers`: Rota side by side with its peers.

Each measurement is taken of all peers in turn, then repeated, so that other load on the machine affects all of them.
Results are saved at once: another run continues with what is missing. `--again` discards the results of some peers.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.measurements import MEASURES, Size
from benchmarks.peer import Peer, peers
from benchmarks.report import Comparison, comparison_tables, plain

RESULTS = Path(__file__).parent / "results" / "peers.jsonl"
#: Counted once: nothing about it varies but the clock.
ONCE = ("idle", "backlog")
#: Fills half a million jobs, which takes some peers minutes: only where asked for.
UNASKED = ("backlog",)
SIZE = Size(jobs=100_000, fill_s=1.5, drain_s=3.0, enqueue_s=1.0, probes=150, probe_s=2.5, idle_s=8.0)


class Results:
    """The file of what has been measured, a line for each peer, measure and repetition."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.rows: list[dict[str, Any]] = []
        if path.exists():
            self.rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

    def forget(self, names: Collection[str], measures: Collection[str]) -> None:
        """Forgets what is known of some peers."""
        self.rows = [row for row in self.rows if row.get("peer") not in names or row["measure"] not in measures]
        self._write()

    def has(self, peer: str, measure: str, repetition: int) -> bool:
        """Whether that has been measured."""
        return any(
            (row.get("peer"), row.get("measure"), row.get("repetition")) == (peer, measure, repetition)
            for row in self.rows
        )

    def add(self, row: dict[str, Any]) -> None:
        """Keeps it."""
        self.rows.append(row)
        self._write()

    def _write(self) -> None:
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in self.rows)
        self._path.parent.mkdir(exist_ok=True)
        self._path.write_text(lines, encoding="utf-8")


def main() -> None:
    """Measures what is missing and prints the tables."""
    known = peers()
    usual = [name for name in MEASURES if name not in UNASKED]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(known), help=f"some of {', '.join(known)}")
    parser.add_argument("--measures", default=",".join(usual), help=f"some of {', '.join(MEASURES)}")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--again", action="store_true", help="forget what is known of these peers and measures first")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    chosen = [peer for peer in (known[name] for name in options.only.split(",")) if is_ready(peer)]
    measures = options.measures.split(",")
    results = Results(options.results)
    if options.again:
        results.forget([peer.name for peer in chosen], measures)
    wanted = [
        (repetition, measure, peer)
        for repetition in range(1, options.repeat + 1)
        for measure in measures
        for peer in chosen
        if (repetition == 1 or measure not in ONCE) and not results.has(peer.name, measure, repetition)
    ]
    if wanted:
        results.add({"machine": machine.description()})
    for place, (repetition, measure, peer) in enumerate(wanted, 1):
        print(f"{place}/{len(wanted)} {measure} {peer.name}", file=sys.stderr, flush=True)
        took(results, peer, measure, repetition)
    for title, table in comparison_tables(Comparison(results.rows)).items():
        print(f"\n{title}\n{plain(table)}")


def is_ready(peer: Peer) -> bool:
    """Creates the environment of a peer. If that fails, prints the error; the others are measured without it."""
    try:
        peer.prepare()
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"{peer.name} could not be installed: {error}", file=sys.stderr)
        return False
    return True


def took(results: Results, peer: Peer, measure: str, repetition: int) -> None:
    """Takes one measurement of one peer. If it fails, prints the error; the next run tries again."""
    began = time.monotonic()
    try:
        figures = MEASURES[measure](peer, SIZE)
    except Exception as error:  # a peer's failure must not end the others' measuring
        print(f"{peer.name}: {measure} could not be measured: {error}", file=sys.stderr)
        return
    results.add(
        {
            "peer": peer.name,
            "measure": measure,
            "repetition": repetition,
            "seconds": round(time.monotonic() - began, 1),
            "packages": peer.packages,
            "figures": {name: round(value, 4) for name, value in figures.items()},
        }
    )


if __name__ == "__main__":
    machine.exit_on_terminate()
    main()
