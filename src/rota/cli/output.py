"""How answers look: aligned text, tables, live screens, JSON. With rich where it is installed and a person looks."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final, Self

import click

#: How a word looks, for the columns that hold such words.
TONES: Final = {
    "scheduled": "magenta",
    "blocked": "yellow",
    "pending": "blue",
    "processing": "cyan",
    "completed": "green",
    "failed": "red",
    "cancelled": "dim",
    "running": "cyan",
    "waiting": "blue",
    "undoing": "yellow",
    "undone": "dim",
    "parked": "red",
    "paused": "yellow",
    "orphaned": "red",
    "ALIVE": "green",
    "DEAD": "red",
    "OK": "green",
    "WARN": "yellow",
    "FAIL": "red",
}
#: Columns that stand to the right, being numbers.
NUMERIC: Final = frozenset(
    {
        "pending",
        "scheduled",
        "blocked",
        "processing",
        "completed",
        "failed",
        "cancelled",
        "attempt",
        "slots",
        "in/s",
        "out/s",
        "pid",
        "fired",
        "dropped",
        "skipped",
    }
)
NOTHING: Final = "–"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text under the names of their columns."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""


def document(value: Any) -> None:
    """One JSON document, and nothing else, on stdout."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def json_line(value: Any) -> None:
    """One line of JSON of a stream, sent at once."""
    click.echo(json.dumps(value, ensure_ascii=False))
    sys.stdout.flush()


def text(line: str = "") -> None:
    """A line for a person."""
    click.echo(clean(line))


def note(line: str) -> None:
    """A remark beside the data, on stderr."""
    click.echo(clean(line), err=True)


def table(shown: Table) -> None:
    """A table for a person."""
    if is_rich():
        from rich.console import Console

        Console().print(_rich_table(shown))
    else:
        click.echo(plain(shown))


def fields(pairs: Iterable[tuple[str, str]]) -> None:
    """Names and values, one below the other; what has no value is left out. Further lines are indented."""
    given = [(name, value) for name, value in pairs if value]
    width = max((len(name) for name, _ in given), default=0)
    for name, value in given:
        first, *rest = clean(value).split("\n")
        click.echo(f"{name:<{width}}  {first}")
        for line in rest:
            click.echo(f"{'':<{width}}  {line}")


def plain(shown: Table) -> str:
    """Aligned columns."""
    rows = [[_one_line(cell) for cell in row] for row in shown.rows]
    widths = [max(map(len, column)) for column in zip(shown.columns, *rows, strict=True)]
    lines = [shown.title] if shown.title else []
    for row in (shown.columns, *rows):
        cells = [
            f"{cell:>{width}}" if name in NUMERIC else f"{cell:<{width}}"
            for cell, width, name in zip(row, widths, shown.columns, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def clean(line: str) -> str:
    """Without the control characters that would let a job's data steer the terminal of whoever looks at it."""
    return "".join(c if c.isprintable() or c in "\n\t" else repr(c)[1:-1] for c in line)


def when(ms: int | None, now: int) -> str:
    """A time for people: how far away it is, and exactly when, by the clock on the wall here."""
    if ms is None:
        return ""
    exact = datetime.fromtimestamp(ms / 1000, UTC).astimezone().isoformat(sep=" ", timespec="milliseconds")
    return f"{distance(ms, now)} ({exact})"


def distance(ms: int | None, now: int) -> str:
    """How far away a time is: “3 min 5 s ago”, “in 4.2 s”."""
    from rota.core.explain import span

    if ms is None:
        return NOTHING
    return f"{span(now - ms)} ago" if ms <= now else f"in {span(ms - now)}"


def is_rich() -> bool:
    """True where a person looks and rich is installed."""
    if not sys.stdout.isatty():
        return False
    try:
        import rich  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ImportError:
        return False
    return True


class Screen:
    """Tables that are shown again and again: in place on a terminal, else one after the other."""

    def __init__(self) -> None:
        self._live: Any = None
        self._is_first = True

    def __enter__(self) -> Self:
        if is_rich():
            from rich.live import Live

            self._live = Live(auto_refresh=False)
            self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.__exit__(kind, error, trace)

    def show(self, *tables: Table) -> None:
        """Replaces what was shown before."""
        if self._live is not None:
            from rich.console import Group

            self._live.update(Group(*map(_rich_table, tables)), refresh=True)
            return
        if sys.stdout.isatty():
            click.clear()
        elif not self._is_first:
            click.echo()
        self._is_first = False
        click.echo("\n\n".join(map(plain, tables)))
        sys.stdout.flush()


def _rich_table(shown: Table) -> Any:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as RichTable
    from rich.text import Text

    made = RichTable(box=SIMPLE_HEAD, title=shown.title or None, title_justify="left", pad_edge=False)
    for place, name in enumerate(shown.columns):
        made.add_column(name, justify="right" if name in NUMERIC else "left", no_wrap=place == 0, overflow="fold")
    for row in shown.rows:
        made.add_row(*(Text(_one_line(cell), style=TONES.get(cell, "")) for cell in row))
    return made


def _one_line(cell: str) -> str:
    return clean(cell).replace("\n", " ").replace("\t", " ")
