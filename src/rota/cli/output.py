"""Prints the output of commands: text, tables, live screens and JSON.

Uses rich if it is installed and stdout is a terminal.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

import click

from rota.core.printable_text import printable, printable_json
from rota.core.state_transitions import JobState

#: Word in a cell -> its style.
STYLES: Final = {
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
    "STOPPED": "dim",
    "OK": "green",
    "WARN": "yellow",
    "FAIL": "red",
}
#: Columns of numbers, aligned to the right.
NUMERIC: Final = frozenset(JobState) | {"attempt", "slots", "in/s", "out/s", "pid", "fired", "dropped", "skipped"}
NOTHING: Final = "–"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text with column names."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""


def document(value: Any) -> None:
    """Prints a JSON document to stdout."""
    click.echo(printable_json(json.dumps(value, indent=2, ensure_ascii=False)))


def json_line(value: Any) -> None:
    """Prints one line of JSON of a stream, and flushes it."""
    click.echo(printable_json(json.dumps(value, ensure_ascii=False)))
    sys.stdout.flush()


def text(line: str = "") -> None:
    """Prints a line of text."""
    click.echo(clean(line))


def note(line: str) -> None:
    """Prints a remark to stderr."""
    click.echo(clean(line), err=True)


def table(shown: Table) -> None:
    """Prints a table."""
    if is_rich():
        from rich.console import Console

        Console().print(_rich_table(shown))
    else:
        click.echo(plain(shown))


def fields(pairs: Iterable[tuple[str, str]]) -> None:
    """Prints names and values, one pair per line. Pairs without a value are omitted; further lines are indented."""
    given = [(name, value) for name, value in pairs if value]
    width = max((len(name) for name, _ in given), default=0)
    for name, value in given:
        first, *rest = clean(value).split("\n")
        click.echo(f"{name:<{width}}  {first}")
        for line in rest:
            click.echo(f"{'':<{width}}  {line}")


def plain(shown: Table) -> str:
    """Returns a table as aligned columns."""
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
    """Escapes control characters, so that the data of a job cannot control the terminal."""
    return printable(line)


def when(ms: int | None, now: int) -> str:
    """Returns a time as distance from now and as local time."""
    from rota.core.format_iso_time import utc_time

    if ms is None:
        return ""
    exact = utc_time(ms).astimezone().isoformat(sep=" ", timespec="milliseconds")
    return f"{distance(ms, now)} ({exact})"


def distance(ms: int | None, now: int) -> str:
    """Returns the distance of a time from now: “3 min 5 s ago”, “in 4.2 s”."""
    from rota.core.explain import format_duration

    if ms is None:
        return NOTHING
    return f"{format_duration(now - ms)} ago" if ms <= now else f"in {format_duration(ms - now)}"


def is_rich() -> bool:
    """True if stdout is a terminal and rich is installed."""
    if not sys.stdout.isatty():
        return False
    try:
        import rich  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ImportError:
        return False
    return True


class Screen:
    """Tables that are updated: in place on a terminal, else printed one after the other."""

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
        """Replaces the tables shown before."""
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
    from rich.console import Group
    from rich.table import Table as RichTable
    from rich.text import Text

    made = RichTable(box=SIMPLE_HEAD, pad_edge=False)
    for index, name in enumerate(shown.columns):
        made.add_column(name, justify="right" if name in NUMERIC else "left", no_wrap=index == 0, overflow="fold")
    for row in shown.rows:
        made.add_row(*(Text(_one_line(cell), style=STYLES.get(cell, "")) for cell in row))
    # Not the table's own title, which would be folded to the width of the table.
    return Group(Text(_one_line(shown.title), style="bold"), made) if shown.title else made


def _one_line(cell: str) -> str:
    return clean(cell).replace("\n", " ").replace("\t", " ")
