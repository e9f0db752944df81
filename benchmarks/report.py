"""Tables of what was measured: for the terminal, and for the documentation, whose figures nobody types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

Table = Sequence[Sequence[str]]


def plain(table: Table) -> str:
    """For a terminal."""
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    lines: list[str] = []
    for number, row in enumerate(table):
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        lines.append("  ".join(cells).rstrip())
        if number == 0:
            lines.append("-" * (sum(widths) + 2 * len(widths) - 2))
    return "\n".join(lines)


def markdown(table: Table) -> str:
    """For a page."""
    head, *rows = table
    lines = [f"| {' | '.join(head)} |", f"|---|{'---:|' * (len(head) - 1)}"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows])


def number(value: float | None) -> str:
    """Three digits that count, or whole numbers with their thousands."""
    if value is None:
        return "–"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def quantity(value: float, unit: str) -> str:
    """With its unit."""
    return f"{value * 100:.0f} %" if unit == "%" else f"{number(value)} {unit}"


#: Title, figure, unit, and whose CPU per job stands beside it (`<name>_server_us`, `<name>_worker_us`).
ALONE_ROWS: Final = (
    ("drain no-op jobs, one worker process", "drain_per_s", "/s", "drain"),
    ("drain no-op jobs, two worker processes", "two_per_s", "/s", "two"),
    ("10 ms sleeps, 100 in flight", "sleeps_per_s", "/s", "sleeps"),
    ("the same, of what is possible", "sleeps_share", "%", ""),
    ("enqueue in bulk", "bulk_per_s", "/s", "bulk"),
    ("1,000 single enqueues at once", "together_per_s", "/s", "together"),
    ("enqueue one by one, awaited", "single_per_s", "/s", "single"),
    ("enqueue to handler start, idle worker, p50", "latency_p50_ms", "ms", ""),
    ("enqueue to handler start, idle worker, p99", "latency_p99_ms", "ms", ""),
    ("server memory per waiting job", "bytes_per_job", "B", ""),
    ("server CPU per job, enqueued and drained in bulk", "life_bulk_us", "µs", ""),
    ("server CPU per job, enqueued one by one", "life_single_us", "µs", ""),
    ("worker CPU per job", "drain_worker_us", "µs", ""),
    ("one idle worker, commands", "idle_commands_per_s", "/s", ""),
    ("one idle worker, its CPU", "idle_worker_ms_per_s", "ms/s", ""),
    ("one idle worker, the server's CPU", "idle_server_ms_per_s", "ms/s", ""),
    ("first 5,000 jobs where 10,000 wait", "backlog_shallow_per_s", "/s", "backlog_shallow"),
    ("first 5,000 jobs where backlog_jobs wait", "backlog_deep_per_s", "/s", "backlog_deep"),
    ("the latter of the former", "backlog_share", "%", ""),
    ("handlers in threads", "threads_per_s", "/s", "threads"),
    ("handlers in a pool of processes", "processes_per_s", "/s", "processes"),
    ("drain, in turns with those below", "plain_per_s", "/s", "plain"),
    ("server with an AOF synced always", "synced_per_s", "/s", "synced"),
    ("of the rate in memory", "synced_share", "%", ""),
    ("results and history of all jobs kept", "kept_per_s", "/s", "kept"),
    ("of the plain rate", "kept_share", "%", ""),
    ("nothing kept", "forgotten_per_s", "/s", "forgotten"),
    ("of the plain rate", "forgotten_share", "%", ""),
)


def alone_table(results: Mapping[str, Any]) -> Table:
    """The measures of Rota alone, with the CPU that a job costs."""
    figures: dict[str, float] = with_lives(results["figures"])
    rows: list[tuple[str, ...]] = [("", "", "server µs/job", "client or worker µs/job")]
    for title, name, unit, whose in ALONE_ROWS:
        if name not in figures:
            continue
        title = title.replace("backlog_jobs", number(figures.get("backlog_jobs")))
        client = figures.get(f"{whose}_worker_us", figures.get(f"{whose}_client_us"))
        cpu = (number(figures[f"{whose}_server_us"]), number(client)) if whose else ("", "")
        rows.append((title, quantity(figures[name], unit), *cpu))
    return rows


def with_lives(figures: Mapping[str, float]) -> dict[str, float]:
    """What a job costs the server in its whole life, where both halves were measured."""
    lives = dict(figures)
    for way in ("bulk", "single"):
        if f"{way}_server_us" in figures and "drain_server_us" in figures:
            lives[f"life_{way}_us"] = figures[f"{way}_server_us"] + figures["drain_server_us"]
    return lives


def where_tables(results: Mapping[str, Any]) -> dict[str, Table]:
    """Where the time goes while a worker drains no-op jobs."""
    where = results["figures"].get("where")
    if where is None:
        return {}
    commands: Mapping[str, Mapping[str, float]] = where["commands"]
    calls = {"evalsha", "eval", "fcall"}
    outer = sum(row["us"] for name, row in commands.items() if name in calls)
    rest = where["server_us"] - outer
    server = [("server, CPU per job", "µs", "calls"), ("scripts, all in all", number(outer), "")]
    server += [
        (f"– {name}", number(row["us"]), number(row["calls"]))
        for name, row in sorted(commands.items(), key=lambda item: -item[1]["us"])
        if name not in calls
    ]
    # Scripts are timed by the wall: on a busy machine they seem to take more than all the CPU that was used.
    server.append(("sockets, protocol, all else", number(rest) if rest > 0 else "?", ""))
    worker = [("worker, CPU per job", "µs")]
    worker += [(name, number(us)) for name, us in list(where["modules"].items())[:25]]
    return {"Where the server's time goes": server, "Where the worker's time goes": worker}
