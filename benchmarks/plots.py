"""Plots of how things grow, as SVG, drawn by hand: lines over a logarithmic or a plain axis are all that is needed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from xml.sax.saxutils import escape

from benchmarks.report import GROWTH, Chart

FOLDER: Final = Path(__file__).parent.parent / "docs" / "benchmarks"
WIDTH, HEIGHT = 720, 340
LEFT, RIGHT, TOP, BOTTOM = 64, 200, 40, 48
COLOURS: Final = ("#2563eb", "#dc2626", "#059669", "#9333ea")
Line = Sequence[tuple[float, float]]


def write(results: Mapping[str, Any]) -> None:
    """Draws every part that was measured, for the documentation."""
    for name, text in drawn(results).items():
        FOLDER.mkdir(exist_ok=True)
        (FOLDER / f"{name}.svg").write_text(text, encoding="utf-8")


def drawn(results: Mapping[str, Any]) -> dict[str, str]:
    """The plot of every part that was measured."""
    return {name: draw(chart, results[name]) for name, chart in GROWTH.items() if results.get(name)}


def draw(chart: Chart, points: Sequence[Mapping[str, float]]) -> str:
    """One plot."""
    lines: dict[str, Line] = {
        title: [(point["x"], point[figure]) for point in points if figure in point]
        for figure, title in chart.lines.items()
    }
    lines = {title: line for title, line in lines.items() if line}
    top = _ceiling(max(y for line in lines.values() for _, y in line))
    xs = [point["x"] for point in points]
    low, high = (min(xs), max(xs)) if chart.is_logarithmic else (min(0.0, *xs), max(xs))

    def across(x: float) -> float:
        if high == low:
            return LEFT
        share = math.log(x / low) / math.log(high / low) if chart.is_logarithmic else (x - low) / (high - low)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def down(y: float) -> float:
        return HEIGHT - BOTTOM - y / top * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="12" fill="#334155">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="22" font-size="14" font-weight="bold">{escape(chart.title)}</text>',
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 10}" text-anchor="middle">{escape(chart.x)}</text>',
    ]
    for step in range(5):
        y = top * step / 4
        parts.append(f'<path d="M{LEFT} {down(y):.1f}H{WIDTH - RIGHT}" stroke="#e2e8f0"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{down(y) + 4:.1f}" text-anchor="end">{_short(y)}</text>')
    ticks = sorted(set(xs)) if chart.is_logarithmic else [low + (high - low) * step / 5 for step in range(6)]
    parts += [
        f'<text x="{across(x):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{_short(x)}</text>' for x in ticks
    ]
    for place, (title, line) in enumerate(lines.items()):
        colour = COLOURS[place % len(COLOURS)]
        path = " ".join(f"{across(x):.1f},{down(y):.1f}" for x, y in line)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{across(x):.1f}" cy="{down(y):.1f}" r="3" fill="{colour}"/>' for x, y in line]
        parts.append(
            f'<text x="{WIDTH - RIGHT + 14}" y="{TOP + 14 + place * 20}" fill="{colour}">{escape(title)}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])


def _ceiling(value: float) -> float:
    """The next round number that leaves some room above."""
    size = 10 ** math.floor(math.log10(max(value, 1e-9)))
    return next(size * step for step in (1, 2, 4, 6, 8, 10, 20) if size * step >= value * 1.1)


def _short(value: float) -> str:
    for size, letter in ((1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:.3g}"
