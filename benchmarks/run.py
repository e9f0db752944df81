"""`make bench`: measurements of Rota only, in under two minutes, with a profile.

Rates are this machine's. Compare CPU per job, bytes and shares, which depend less on what else the machine does.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import guarantee_costs, machine, measurements, rota_only
from benchmarks.measurements import Size
from benchmarks.report import alone_table, plain, where_tables

RESULTS = Path(__file__).parent / "results" / "rota.json"

PARTS: dict[str, Callable[[Size], dict[str, Any]]] = {
    **{
        name: (lambda size, measure=measure: measure(rota_only.ROTA, size))
        for name, measure in measurements.MEASURES.items()
    },
    "runners": rota_only.runners,
    "guarantees": rota_only.guarantees,
    "without": guarantee_costs.costs,
    "where": rota_only.where,
}


def main() -> None:
    """Prints the tables, and saves the results, from which the documentation is generated."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measures", default=",".join(PARTS), help=f"some of {', '.join(PARTS)}")
    parser.add_argument("--jobs", type=int, default=100_000, help="at most so many jobs for each measure")
    parser.add_argument("--seconds", type=float, default=2.5, help="at most so long for each drain")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--save", action="store_true", help=f"keep them in {RESULTS.relative_to(Path.cwd())}")
    options = parser.parse_args()
    size = Size(jobs=options.jobs, fill_s=options.seconds * 0.8, drain_s=options.seconds, backlog_s=12)
    began = time.monotonic()
    figures: dict[str, Any] = {}
    for name in options.measures.split(","):
        print(f"{name} …", file=sys.stderr, flush=True)
        try:
            found = PARTS[name](size)
        except RuntimeError as error:  # the others can still be measured
            print(f"{name} could not be measured: {error}", file=sys.stderr)
            continue
        figures |= {"where": found} if name == "where" else found
    results = {"machine": machine.description(), "seconds": round(time.monotonic() - began), "figures": figures}
    if options.save:
        RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if options.json:
        print(json.dumps(results, indent=2, ensure_ascii=False))
        return
    print(plain(alone_table(results)))
    for title, table in where_tables(results).items():
        print(f"\n{title}\n{plain(table)}")
    print(f"\nmeasured in {results['seconds']} s")


if __name__ == "__main__":
    machine.exit_on_terminate()
    main()
