"""The generated parts of `docs/autoscaling.md`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

RESULTS: Final = Path(__file__).parent.parent / "results" / "autoscaling.json"
GOAL_WITHIN: Final = 0.99
GOAL_HOURS: Final = 1.25
#: Worker-hours that differ by less count as equal.
SAME_HOURS: Final = 0.01
RIVALS: Final = ("thresholds", "keda-style")
Row = Mapping[str, Any]


def results(offset: int = 0) -> list[Row]:
    """Returns the results of `make simulate` for the seeds with this offset."""
    if not RESULTS.exists():
        return []
    found: dict[str, list[Row]] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return found[str(offset)]


def hours(row: Row, scaler: str = "drain-time") -> float:
    """Worker-hours against the oracle's."""
    return row["scalers"][scaler]["worker_hours"] / row["scalers"]["oracle"]["worker_hours"]


def is_reached(row: Row) -> bool:
    """True if `drain-time` keeps the target in 99 % of the waits with at most 1.25 times the oracle's worker-hours."""
    return row["scalers"]["drain-time"]["within"] >= GOAL_WITHIN and hours(row) <= GOAL_HOURS


def compared(row: Row, rival: str) -> tuple[int, int]:
    """Compares `drain-time` with another scaler: on wait, on worker-hours. 1 is ahead, 0 equal, -1 behind.

    Two scalers that both keep the target in 99 % of the waits are equal on wait.
    """
    own, other = (row["scalers"][name] for name in ("drain-time", rival))
    wait = (own["within"] > other["within"]) - (own["within"] < other["within"])
    if min(own["within"], other["within"]) >= GOAL_WITHIN:
        wait = 0
    ratio = other["worker_hours"] / own["worker_hours"] - 1
    return wait, 0 if abs(ratio) < SAME_HOURS else (ratio > 0) - (ratio < 0)


def behind_strictly(row: Row, rival: str) -> list[str]:
    """Returns the figures in which the other scaler is better by any amount, also where both keep the target."""
    own, other = (row["scalers"][name] for name in ("drain-time", rival))
    figures = {
        "wait": own["within"] < other["within"],
        "hours": own["worker_hours"] > other["worker_hours"],
    }
    return [figure for figure, is_behind in figures.items() if is_behind]


def _cell(row: Row, scaler: str) -> str:
    return f"{row['scalers'][scaler]['within']:.2%} · {hours(row, scaler):.2f} ×"


def _against(row: Row, rival: str) -> str:
    words = [
        f"{'ahead' if by > 0 else 'behind'} on {figure}"
        for figure, by in zip(("wait", "hours"), compared(row, rival), strict=True)
        if by
    ]
    return ", ".join(words) or "equal"


def _table() -> str:
    lines = [
        "| trace | target, boot | drain-time | thresholds | KEDA-style | oracle | goal |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in results():
        best = row["scalers"]["oracle"]
        lines.append(
            f"| **{row['trace']}**: {row['title']} | {row['target_s']:.0f} s, {row['boot_s']:.0f} s "
            f"| {_cell(row, 'drain-time')} | {_cell(row, 'thresholds')} | {_cell(row, 'keda-style')} "
            f"| {best['within']:.2%} · {best['worker_hours']:.1f} h "
            f"| {'reached' if is_reached(row) else '**missed**'} |"
        )
    return "\n".join(lines)


def _rivals() -> str:
    lines = ["| trace | against thresholds | against KEDA-style |", "|---|---|---|"]
    lines += [
        f"| {row['trace']} | {_against(row, 'thresholds')} | {_against(row, 'keda-style')} |" for row in results()
    ]
    return "\n".join(lines)


def _summary() -> str:
    parts = [f"With the seeds that the policy was tuned with: {_counted(results())}"]
    parts.append(f"With other seeds: {_counted(results(1000))}")
    return "\n\n".join(parts)


def _counted(rows: Sequence[Row]) -> str:
    missed = [
        f"{row['trace']} ({row['scalers']['drain-time']['within']:.2%} within the target, {hours(row):.2f} ×)"
        for row in rows
        if not is_reached(row)
    ]
    behind = [
        f"{row['trace']} ({rival}: {row['scalers'][rival]['within']:.1%} within the target, {hours(row, rival):.2f} × "
        f"against {hours(row):.2f} ×)"
        for row in rows
        for rival in RIVALS
        if min(compared(row, rival)) < 0
    ]
    pairs = [(row, rival) for row in rows for rival in RIVALS]
    strictly = [(row, rival) for row, rival in pairs if behind_strictly(row, rival)]
    on_wait = sum("wait" in behind_strictly(row, rival) for row, rival in strictly)
    on_hours = sum("hours" in behind_strictly(row, rival) for row, rival in strictly)
    ahead = sum(max(compared(row, rival)) > 0 for row, rival in pairs)
    mean = sum(hours(row) for row in rows) / len(rows) if rows else 0
    return (
        f"`drain-time` reaches both figures on {len(rows) - len(missed)} of {len(rows)} traces, with {mean:.2f} × "
        f"the oracle's worker-hours on average. Missed: {'; '.join(missed) or 'none'}. In {ahead} of {len(pairs)} "
        f"comparisons with another scaler it is ahead in a figure. Behind in a figure: "
        f"{'; '.join(behind) or 'nowhere'}. "
        f"Compared to the last digit, also where both keep the target, it is behind on wait in {on_wait} of "
        f"{len(pairs)} comparisons and on worker-hours in {on_hours}."
    )


PARTS: Final[Mapping[str, Callable[[], str]]] = {
    "simulation-summary": _summary,
    "simulation-table": _table,
    "simulation-rivals": _rivals,
}
