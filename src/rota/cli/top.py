"""`rota top`: queues and workers, live."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from rota.cli import output
from rota.cli.settings import Settings, common_options, connected, run

if TYPE_CHECKING:
    from rota.client import Rota
    from rota.store.views import QueueInfo, WorkerInfo

#: Totals that say how many jobs came in, and how many went out.
IN: Final = ("run", "redriven")
OUT: Final = ("completed", "failed", "cancelled", "deleted")
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


@dataclass(frozen=True, slots=True)
class Look:
    """How things stood at one moment; `rates` has jobs per second, in and out, once there was a look before."""

    queues: Sequence[QueueInfo]
    workers: Sequence[WorkerInfo]
    rates: dict[str, tuple[float, float]]


@click.command()
@common_options
@click.option("--once", is_flag=True, help="Print it once: without rates, which need two looks.")
@click.option(
    "--interval", type=click.FloatRange(0.1, 3600), default=1.0, show_default=True, help="Seconds between looks."
)
@click.pass_obj
def command(settings: Settings, once: bool, interval: float) -> None:
    """Show queues and workers, live, until Ctrl-C. With --json: a line for every look."""
    run(_top(settings, once=once, interval=interval))


async def _top(settings: Settings, *, once: bool, interval: float) -> None:
    async with connected(settings) as rota:
        with output.Screen() as screen:
            async for look in _looks(rota, interval):
                if settings.json:
                    output.json_line(_shape(look))
                else:
                    screen.show(*_tables(look))
                if once:
                    return


async def _looks(rota: Rota, interval: float) -> AsyncIterator[Look]:
    import asyncio

    before: dict[str, QueueInfo] = {}
    looked_at = 0.0
    while True:
        queues = await rota.queues()
        workers = [worker for worker in await rota.workers() if worker.status == "ALIVE"]
        now = time.monotonic()
        rates = {info.name: _rate(before[info.name], info, now - looked_at) for info in queues if info.name in before}
        yield Look(queues, workers, rates)
        before, looked_at = {info.name: info for info in queues}, now
        await asyncio.sleep(interval)


def _rate(before: QueueInfo, after: QueueInfo, seconds: float) -> tuple[float, float]:
    def grown(totals: Sequence[str]) -> float:
        return sum(after.totals[name] - before.totals[name] for name in totals) / seconds

    return grown(IN), grown(OUT)


def _shape(look: Look) -> dict[str, Any]:
    from rota.cli.shapes import queue_shape, worker_shape

    queues: list[dict[str, Any]] = []
    for info in look.queues:
        in_per_second, out_per_second = look.rates.get(info.name, (None, None))
        queues.append({**queue_shape(info), "in_per_second": in_per_second, "out_per_second": out_per_second})
    return {"queues": queues, "workers": [worker_shape(worker) for worker in look.workers]}


def _tables(look: Look) -> tuple[output.Table, output.Table]:
    from rota.cli.workers import worker_table
    from rota.core.explain import span

    rows: list[tuple[str, ...]] = []
    for info in look.queues:
        rate = look.rates.get(info.name)
        rows.append(
            (
                info.name,
                "paused" if info.is_paused else "open",
                *(str(info.counts[state]) for state in COLUMNS[2:7]),
                *((f"{number:.1f}" for number in rate) if rate else (output.NOTHING, output.NOTHING)),
                output.NOTHING if info.oldest_pending_ms is None else span(info.oldest_pending_ms),
            )
        )
    return output.Table(COLUMNS, rows), worker_table(look.workers)
