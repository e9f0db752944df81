"""`rota top`: shows live queues and workers."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from rota.cli import output
from rota.cli.common_options import Settings, common_options
from rota.cli.connection import connected, run

if TYPE_CHECKING:
    from rota.cli.keys import Keys
    from rota.client.rota import Rota
    from rota.core.health.finding import Finding
    from rota.store.reads import QueueInfo, WorkerInfo

#: Totals that count arriving jobs.
IN: Final = ("run", "redriven")
UNFINISHED: Final = ("pending", "scheduled", "blocked", "processing")
COLUMNS: Final = (
    "queue",
    "claims",
    "pending",
    "scheduled",
    "blocked",
    "processing",
    "failed",
    "in/s",
    "out/s",
    "oldest wait",
)
#: Findings that are shown; the verdict counts all of them.
MAX_FINDINGS: Final = 8
SORTS: Final = tuple(column for column in COLUMNS if column != "claims")


@dataclass(frozen=True, slots=True)
class Sample:
    """Queues and workers at one time. `rates` are arriving and leaving jobs per second since the previous sample."""

    queues: Sequence[QueueInfo]
    workers: Sequence[WorkerInfo]
    rates: dict[str, tuple[float, float]]
    #: What is unusual, the worst first.
    found: Sequence[Finding]


@click.command()
@common_options
@click.option(
    "--sort", type=click.Choice(SORTS), default="queue", show_default=True, help="Column that orders the queues."
)
@click.option("--once", is_flag=True, help="Print one sample, without rates.")
@click.option(
    "--interval", type=click.FloatRange(0.1, 3600), default=1.0, show_default=True, help="Seconds between samples."
)
@click.pass_obj
def command(settings: Settings, sort: str, once: bool, interval: float) -> None:
    """Show live queues and workers until q or Ctrl-C; s sorts by the next column. With --json: one line per sample."""
    run(_top(settings, sort, once=once, interval=interval))


async def _top(settings: Settings, sort: str, *, once: bool, interval: float) -> None:
    from rota.cli.keys import Keys

    async with connected(settings) as rota:
        with Keys() as keys, output.Screen() as screen:
            async for sample in _samples(rota, interval, keys):
                if settings.json:
                    output.json_line(_sample_json(sample))
                else:
                    sort = SORTS[(SORTS.index(sort) + keys.take("s")) % len(SORTS)]
                    screen.show(*_tables(sample, sort, _title(rota.address, sample, sort, has_keys=keys.is_open)))
                if once or keys.take("q"):
                    return


async def _samples(rota: Rota, interval: float, keys: Keys) -> AsyncIterator[Sample]:
    from rota.monitoring.health_reader import HealthReader

    health = HealthReader(rota)
    before: dict[str, QueueInfo] = {}
    sampled_at = 0.0
    while True:
        queues = await rota.queues()
        now = time.monotonic()
        workers = [worker for worker in await rota.workers() if worker.status == "ALIVE"]
        rates = {info.name: _rate(before[info.name], info, now - sampled_at) for info in queues if info.name in before}
        yield Sample(queues, workers, rates, await health.findings())
        before, sampled_at = {info.name: info for info in queues}, now
        await keys.wait(interval)


def _rate(before: QueueInfo, after: QueueInfo, seconds: float) -> tuple[float, float]:
    """Jobs per second that arrived and left. A finished job that is deleted later has left only once."""
    arrived = sum(after.totals[name] - before.totals[name] for name in IN)
    more = sum(after.counts[state] - before.counts[state] for state in UNFINISHED)
    return max(0, arrived) / seconds, max(0, arrived - more) / seconds


def _sample_json(sample: Sample) -> dict[str, Any]:
    from rota.cli.to_json import finding_json, queue_json, worker_json
    from rota.core.health.verdict import verdict

    queues: list[dict[str, Any]] = []
    for info in sample.queues:
        in_per_second, out_per_second = sample.rates.get(info.name, (None, None))
        queues.append({**queue_json(info), "in_per_second": in_per_second, "out_per_second": out_per_second})
    line = verdict(sample.found)
    return {
        "verdict": {"level": line.level, "text": line.text},
        "attention": [finding_json(one) for one in sample.found],
        "queues": queues,
        "workers": [worker_json(worker) for worker in sample.workers],
    }


def _title(address: str, sample: Sample, sort: str, *, has_keys: bool) -> str:
    from rota.core.health.verdict import verdict

    arriving, leaving = (sum(rates) for rates in zip(*sample.rates.values(), strict=True)) if sample.rates else (0, 0)
    busy, slots = (sum(worker.info.get(name, 0) for worker in sample.workers) for name in ("busy", "slots"))
    rates = f"{arriving:.1f} in/s, {leaving:.1f} out/s, " if sample.rates else ""
    keys = f"  [q] quit  [s] sort: {sort}" if has_keys else ""
    return f"rota top  {address}  {verdict(sample.found).text}  {rates}{busy} of {slots} slots busy{keys}"


def _sort_key(sample: Sample, sort: str) -> Callable[[QueueInfo], tuple[float, str]]:
    """Numbers are sorted from the largest down, names upwards."""

    def key(info: QueueInfo) -> tuple[float, str]:
        arriving, leaving = sample.rates.get(info.name, (0.0, 0.0))
        values = {"queue": 0, "in/s": arriving, "out/s": leaving, "oldest wait": info.oldest_pending_ms or 0}
        return -(values[sort] if sort in values else info.counts[sort]), info.name

    return key


def _tables(sample: Sample, sort: str, title: str) -> list[output.Table]:
    from rota.cli.commands.workers import worker_table
    from rota.core.explain import format_duration

    rows: list[tuple[str, ...]] = []
    for info in sorted(sample.queues, key=_sort_key(sample, sort)):
        rate = sample.rates.get(info.name)
        rows.append(
            (
                info.name,
                "paused" if info.is_paused else "open",
                *(str(info.counts[state]) for state in COLUMNS[2:7]),
                *((f"{number:.1f}" for number in rate) if rate else (output.NOTHING, output.NOTHING)),
                output.NOTHING if info.oldest_pending_ms is None else format_duration(info.oldest_pending_ms),
            )
        )
    tables = [output.Table(COLUMNS, rows, title), worker_table(sample.workers)]
    if severe := [one for one in sample.found if one.level != "notice"]:
        shown = [(one.level, one.text, one.detail) for one in severe[:MAX_FINDINGS]]
        tables.append(output.Table(("level", "finding", "detail"), shown))
    return tables
