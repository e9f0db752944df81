"""The plots of `docs/autoscaling.md`, as SVG: all traces at a glance, and the number of workers over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).parent.parent.parent / "docs" / "benchmarks"
#: Traces whose number of workers is drawn.
TIMELINES: Final = ("step", "cron-storm")
COLOURS: Final = {"drain-time": "#2563eb", "thresholds": "#dc2626", "keda-style": "#9333ea", "oracle": "#059669"}
WIDTH, HEIGHT = 720, 340
LEFT, RIGHT, TOP, BOTTOM = 64, 150, 40, 48
#: The axes of the overview end here; what is beyond is drawn at the edge.
MOST_HOURS: Final = 3.0
LEAST_WITHIN: Final = 0.9


def write(rows: Sequence[Mapping[str, Any]]) -> None:
    """Draws the overview and the timelines."""
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "autoscaling-overview.svg").write_text(overview(rows), encoding="utf-8")
    for row in rows:
        if row["trace"] in TIMELINES:
            path = FOLDER / f"autoscaling-{row['trace']}.svg"
            path.write_text(timeline(row["title"], row["timeline"]), encoding="utf-8")


def overview(rows: Sequence[Mapping[str, Any]]) -> str:
    """Each trace under each scaler as a point: worker-hours against the oracle's, and waits within the target."""

    def across(hours: float) -> float:
        return LEFT + (min(hours, MOST_HOURS) - 0.9) / (MOST_HOURS - 0.9) * (WIDTH - LEFT - RIGHT)

    def down(within: float) -> float:
        return TOP + (1 - max(within, LEAST_WITHIN)) / (1 - LEAST_WITHIN) * (HEIGHT - TOP - BOTTOM)

    parts = _opened("All traces: the goal is the top left corner")
    corner = (across(1.25), down(0.99))
    parts.append(
        f'<rect x="{LEFT}" y="{TOP}" width="{corner[0] - LEFT:.1f}" height="{corner[1] - TOP:.1f}" fill="#dcfce7"/>'
    )
    for within in (0.9, 0.92, 0.94, 0.96, 0.98, 1.0):
        parts.append(f'<path d="M{LEFT} {down(within):.1f}H{WIDTH - RIGHT}" stroke="#e2e8f0"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{down(within) + 4:.1f}" text-anchor="end">{within:.0%}</text>')
    for hours in (1.0, 1.25, 1.5, 2.0, 2.5, 3.0):
        parts.append(
            f'<text x="{across(hours):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{hours:g} ×</text>'
        )
    parts.append(_x_title("worker-hours against the oracle's; up: waits within the target"))
    for name, colour in COLOURS.items():
        for row in rows:
            own, best = row["scalers"][name], row["scalers"]["oracle"]
            x, y = across(own["worker_hours"] / best["worker_hours"]), down(own["within"])
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}" fill-opacity="0.6"/>')
    return "\n".join([*parts, *_legend(), "</svg>", ""])


def timeline(title: str, lines: Mapping[str, Sequence[tuple[int, int]]]) -> str:
    """The number of workers, booting ones included, over time."""
    last = max(at for line in lines.values() for at, _ in line)
    most = max(count for line in lines.values() for _, count in line) + 1

    def across(at: float) -> float:
        return LEFT + at / last * (WIDTH - LEFT - RIGHT)

    def down(count: float) -> float:
        return HEIGHT - BOTTOM - count / most * (HEIGHT - TOP - BOTTOM)

    parts = _opened(f"Workers: {title}")
    for count in range(0, most + 1, 2):
        parts.append(f'<path d="M{LEFT} {down(count):.1f}H{WIDTH - RIGHT}" stroke="#e2e8f0"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{down(count) + 4:.1f}" text-anchor="end">{count}</text>')
    for hour in range(int(last / 3600) + 1):
        parts.append(
            f'<text x="{across(hour * 3600):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{hour} h</text>'
        )
    for name in reversed(COLOURS):
        path, before = "", None
        for at, count in lines[name]:
            if count != before:
                path += (
                    f"M{across(at):.1f} {down(count):.1f}" if before is None else f"H{across(at):.1f}V{down(count):.1f}"
                )
                before = count
        path += f"H{across(last):.1f}"
        parts.append(f'<path d="{path}" fill="none" stroke="{COLOURS[name]}" stroke-width="1.5"/>')
    return "\n".join([*parts, *_legend(), "</svg>", ""])


def _opened(title: str) -> list[str]:
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="12" fill="#334155">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="22" font-size="14" font-weight="bold">{title}</text>',
    ]


def _x_title(text: str) -> str:
    return f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 10}" text-anchor="middle">{text}</text>'


def _legend() -> list[str]:
    return [
        f'<text x="{WIDTH - RIGHT + 14}" y="{TOP + 14 + place * 20}" fill="{colour}">{name}</text>'
        for place, (name, colour) in enumerate(COLOURS.items())
    ]
