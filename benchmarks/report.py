"""Tables of what was measured: for the terminal, and for the documentation, whose figures nobody types."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.peer import peers

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


def markdown(table: Table, *, is_text: bool = False) -> str:
    """For a page: figures stand to the right, text to the left."""
    head, *rows = table
    lines = [f"| {' | '.join(head)} |", f"|---|{('---|' if is_text else '---:|') * (len(head) - 1)}"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows])


def number(value: float | None) -> str:
    """Three digits that count, or whole numbers with their thousands."""
    if value is None:
        return "–"
    if abs(value) >= 100 or value == int(value):
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
    ("server CPU to claim and complete by 100, for", "cost_drain_us", "µs", ""),
    ("– events", "cost_events_drain_us", "µs", ""),
    ("– counts and histograms", "cost_counts_drain_us", "µs", ""),
    ("– the index by task", "cost_index_drain_us", "µs", ""),
    ("– these three together", "cost_events_counts_index_drain_us", "µs", ""),
    ("   of server and worker CPU of a drain", "cost_share", "%", ""),
    ("– forgetting the oldest", "cost_retention_drain_us", "µs", ""),
    ("– calls that may be sent again", "cost_replay_drain_us", "µs", ""),
    ("server CPU to enqueue by 500, for", "cost_enqueue_us", "µs", ""),
    ("– events, counts and index", "cost_events_counts_index_enqueue_us", "µs", ""),
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
    if "cost_drain_us" in figures and "drain_server_us" in figures:
        drain_us = figures["drain_server_us"] + figures["drain_worker_us"]
        lives["cost_share"] = figures["cost_events_counts_index_drain_us"] / drain_us
    return lives


def where_tables(results: Mapping[str, Any]) -> dict[str, Table]:
    """Where the time goes while a worker drains no-op jobs."""
    where = results["figures"].get("where")
    if where is None:
        return {}
    commands: Mapping[str, Mapping[str, float]] = where["commands"]
    calls = {"evalsha", "eval", "evalsha_ro", "eval_ro"}
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


# --- side by side ------------------------------------------------------------------------------------------------

SPEED: Final = (
    ("drain, one process", "drain_per_s"),
    ("drain, two", "two_per_s"),
    ("10 ms sleeps, 100 in flight", "sleeps_per_s"),
    ("enqueue in bulk", "bulk_per_s"),
    ("1,000 at once", "together_per_s"),
    ("one by one", "single_per_s"),
)
WAITING: Final = (
    ("to handler start, p50 ms", "latency_p50_ms"),
    ("p99 ms", "latency_p99_ms"),
    ("idle: commands/s", "idle_commands_per_s"),
    ("idle: worker CPU ms/s", "idle_worker_ms_per_s"),
    ("idle: server CPU ms/s", "idle_server_ms_per_s"),
    ("5,000 behind many, of the rate behind 10,000", "backlog_share"),
)
COST: Final = (
    ("bytes waiting", "bytes_per_job"),
    ("server µs, in bulk", "life_bulk_us"),
    ("server µs, one by one", "life_single_us"),
    ("worker µs", "drain_worker_us"),
    ("worker µs, two processes", "two_worker_us"),
    ("client µs, in bulk", "bulk_client_us"),
    ("client µs, one by one", "single_client_us"),
)
SUMMARY: Final = (
    ("jobs/s, one worker process", "drain_per_s"),
    ("enqueued/s, in bulk", "bulk_per_s"),
    ("enqueue to start, p99 ms", "latency_p99_ms"),
    ("bytes per waiting job", "bytes_per_job"),
)
#: Title, figure, whom Rota is compared with, the goal, and whether more is better.
GOALS: Final = (
    ("drain no-op jobs, one worker process", "drain_per_s", "python", 10, True),
    ("drain no-op jobs, one worker process", "drain_per_s", "bullmq", 4, True),
    ("the same, two processes", "two_per_s", "bullmq", 4, True),
    ("10 ms sleeps, 100 in flight, of what is possible", "sleeps_share", "", 0.95, True),
    ("enqueue in bulk", "bulk_per_s", "bullmq", 6, True),
    ("1,000 single enqueues at once", "together_per_s", "safe", 6, True),
    ("enqueue one by one, awaited", "single_per_s", "any", 1, True),
    ("enqueue to handler start, p50 ms", "latency_p50_ms", "safe", 0.8, False),
    ("enqueue to handler start, p99 ms", "latency_p99_ms", "safe", 0.8, False),
    ("bytes per waiting job", "bytes_per_job", "safe", 1, False),
    ("server CPU per job, in bulk, µs", "life_bulk_us", "", 30, False),
    ("server CPU per job, one by one, µs", "life_single_us", "", 100, False),
    ("worker CPU per job, µs", "drain_worker_us", "", 25, False),
    ("one idle worker, commands/s", "idle_commands_per_s", "", 1, False),
    ("one idle worker, CPU ms/s", "idle_worker_ms_per_s", "", 1, False),
    ("first 5,000 jobs behind many, of the rate behind 10,000", "backlog_share", "", 0.98, True),
)


class Comparison:
    """What was measured of each peer, from the rows of the results file."""

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self.machine: Mapping[str, Any] = {}
        together: dict[tuple[str, int], dict[str, float]] = {}
        for row in rows:
            if "machine" in row:
                self.machine = row["machine"]
            else:
                together.setdefault((row["peer"], row["repetition"]), {}).update(row["figures"])
        self._values: dict[str, dict[str, list[float]]] = {}
        for (peer, _), figures in together.items():
            for name, value in with_lives(figures).items():
                self._values.setdefault(peer, {}).setdefault(name, []).append(value)
        known = peers()
        self.peers = [known[name] for name in known if name in self._values]

    def median(self, peer: str, figure: str) -> float | None:
        """Of all repetitions; None if it was not measured, or cannot be."""
        values = self._values[peer].get(figure)
        return statistics.median(values) if values else None

    def cell(self, peer: str, figure: str) -> str:
        """The median with the least and the greatest."""
        values = self._values[peer].get(figure)
        if not values:
            return "–"
        if len(values) == 1:
            return number(values[0])
        return f"{number(statistics.median(values))} ({number(min(values))}–{number(max(values))})"

    def repetitions(self) -> int:
        """How often everything was measured that is measured more than once."""
        return max((len(values) for figures in self._values.values() for values in figures.values()), default=0)

    def best(self, figure: str, among: str, *, is_more: bool) -> tuple[str, float] | None:
        """The best of some peers, by title: `python` or `safe` ones promise to run a job at least once."""
        found: list[tuple[float, str]] = []
        for peer in self.peers:
            is_safe = str(peer.about["guarantee"]).startswith("at least once")
            fits = {
                "any": True,
                "safe": is_safe,
                "python": is_safe and peer.is_python,
                "bullmq": peer.name == "bullmq",
            }[among]
            value = self.median(peer.name, figure)
            if peer.name != "rota" and fits and value is not None:
                found.append((value, peer.about["title"]))
        if not found:
            return None
        value, title = max(found) if is_more else min(found)
        return title, value


def comparison_tables(comparison: Comparison) -> dict[str, Table]:
    """All of them, by title."""
    if not comparison.peers:
        return {}
    tables = {
        "Goals": goals_table(comparison),
        "Jobs per second": peers_table(comparison, SPEED),
        "Waiting": peers_table(comparison, WAITING),
        "What a job costs": peers_table(comparison, COST),
    }
    return {title: table for title, table in tables.items() if len(table) > 1 and len(table[0]) > 1}


def peers_table(comparison: Comparison, columns: Sequence[tuple[str, str]]) -> Table:
    """A row for each peer."""
    columns = [
        (title, figure) for title, figure in columns if any(comparison.median(p.name, figure) for p in comparison.peers)
    ]
    rows = [("", *(title for title, _ in columns))]
    rows += [
        (peer.about["title"], *(comparison.cell(peer.name, figure) for _, figure in columns))
        for peer in comparison.peers
    ]
    return rows


def summary_table(comparison: Comparison, most: int = 6) -> Table:
    """The main figures, medians only, of the peers that drain fastest."""
    ranked = sorted(comparison.peers, key=lambda peer: comparison.median(peer.name, "drain_per_s") or 0, reverse=True)
    rows = [("", *(title for title, _ in SUMMARY))]
    rows += [
        (peer.about["title"], *(number(comparison.median(peer.name, figure)) for _, figure in SUMMARY))
        for peer in ranked[:most]
    ]
    return rows


def goals_table(comparison: Comparison) -> Table:
    """What was aimed at, and what was reached in the same run."""
    rows = [("", "Rota", "compared with", "ratio", "goal", "")]
    for title, figure, among, goal, is_more in GOALS:
        own = comparison.median("rota", figure) if any(peer.name == "rota" for peer in comparison.peers) else None
        if own is None:
            continue
        best = comparison.best(figure, among, is_more=is_more) if among else None
        if among and best is None:
            continue
        reached = own / best[1] if best else own
        mark = "✓" if (reached >= goal if is_more else reached <= goal) else "not reached"
        against = f"{best[0]}: {number(best[1])}" if best else ""
        ratio = f"{number(reached)} ×" if best else ""
        sign, unit = "≥" if is_more else "≤", " ×" if best else ""
        rows.append((title, number(own), against, ratio, f"{sign} {goal}{unit}", mark))
    return rows


def setups_table() -> Table:
    """How each peer was set up."""
    rows = [("", "delivers", "set up as", "version")]
    for peer in peers().values():
        version = peer.packages[0] if peer.packages else "this one"
        rows.append((peer.about["title"], peer.about["guarantee"], peer.about["setup"], version))
    return rows


# --- growth ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Chart:
    """What a plot shows: its lines are figures of each point, with their titles."""

    title: str
    x: str
    lines: Mapping[str, str]
    is_logarithmic: bool = True


_COST: Final = {"drain_server_us": "server, drained", "drain_worker_us": "worker"}
GROWTH: Final[Mapping[str, Chart]] = {
    "waiting": Chart(
        "CPU per job, µs, by how many wait", "waiting jobs", {"enqueue_server_us": "server, enqueued", **_COST}
    ),
    "processing": Chart(
        "CPU per job, µs, by how many others are being processed",
        "processing jobs",
        {**_COST, "heartbeat_server_ms_per_s": "server, heartbeats, ms/s"},
    ),
    "queues": Chart(
        "CPU per job, µs, by the queues of one worker",
        "queues",
        {"enqueue_server_us": "server, enqueued", **_COST, "idle_commands_per_s": "idle: commands/s"},
    ),
    "workers": Chart(
        "Load of idle workers",
        "idle workers",
        {"idle_server_ms_per_s": "server CPU, ms/s", "idle_commands_per_s": "commands/s"},
    ),
    "due": Chart("Jobs due at the same moment", "seconds after it", {"started": "started"}, is_logarithmic=False),
    "payloads": Chart(
        "Throughput by payload, MB/s",
        "bytes of payload",
        {"enqueue_mb_per_s": "enqueue in bulk", "drain_mb_per_s": "drain"},
    ),
}


def growth_table(chart: Chart, points: Sequence[Mapping[str, float]]) -> Table:
    """The figures of a plot; of one with very many points, those that say most."""
    rows = [(chart.x, *chart.lines.values())]
    if not chart.is_logarithmic:
        places = sorted({0, len(points) // 2, len(points) - 1})
        points = [points[place] for place in places]
    rows += [(number(point["x"]), *(number(point.get(figure)) for figure in chart.lines)) for point in points]
    return rows
