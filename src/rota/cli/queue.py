"""`rota queue`: how the queues stand; pause, resume and purge one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from rota.cli import output
from rota.cli.job import check_queue, yes_option
from rota.cli.settings import Settings, common_options, confirm, connected, run
from rota.core.states import JobState

if TYPE_CHECKING:
    from rota.store.views import QueueInfo

queue_argument = click.argument("queue")


@click.group()
def command() -> None:
    """Look at queues, pause, resume and purge them."""


@command.command(name="list")
@common_options
@click.pass_obj
def list_(settings: Settings) -> None:
    """List the queues: jobs by state, and how long the oldest has waited."""
    run(_list(settings))


async def _list(settings: Settings) -> None:
    from rota.cli.shapes import queue_shape

    async with connected(settings) as rota:
        infos = await rota.queues()
    if settings.json:
        output.document({"queues": [queue_shape(info) for info in infos]})
    elif infos:
        output.table(queue_table(infos))
    else:
        output.note("no queue has been used yet")


def queue_table(infos: Sequence[QueueInfo]) -> output.Table:
    """The queues, and how many jobs are in each state."""
    from rota.core.explain import span

    rows = [
        (
            info.name,
            "paused" if info.is_paused else "open",
            *(str(info.counts[state.value]) for state in JobState),
            output.NOTHING if info.oldest_pending_ms is None else span(info.oldest_pending_ms),
        )
        for info in infos
    ]
    return output.Table(("queue", "claims", *(state.value for state in JobState), "oldest wait"), rows)


@command.command()
@common_options
@queue_argument
@click.pass_obj
def pause(settings: Settings, queue: str) -> None:
    """Stop claims of a queue, for every worker. Running handlers go on."""
    run(_set(settings, queue, is_paused=True))


@command.command()
@common_options
@queue_argument
@click.pass_obj
def resume(settings: Settings, queue: str) -> None:
    """Let claims of a queue go on, at once."""
    run(_set(settings, queue, is_paused=False))


async def _set(settings: Settings, queue: str, *, is_paused: bool) -> None:
    async with connected(settings) as rota:
        await check_queue(rota, queue)
        handle = rota.queue(queue)
        await (handle.pause() if is_paused else handle.resume())
    if settings.json:
        output.document({"queue": queue, "is_paused": is_paused})
    else:
        output.text(f"queue {queue} is paused" if is_paused else f"queue {queue} is open")


@command.command()
@common_options
@click.option("--dry-run", is_flag=True, help="Only say how many jobs it would delete.")
@yes_option
@queue_argument
@click.pass_obj
def purge(settings: Settings, queue: str, dry_run: bool, yes: bool) -> None:
    """Delete the jobs of a queue that wait: pending, scheduled and blocked ones."""
    run(_purge(settings, queue, dry_run=dry_run, yes=yes))


async def _purge(settings: Settings, queue: str, *, dry_run: bool, yes: bool) -> None:
    async with connected(settings) as rota:
        await check_queue(rota, queue)
        handle = rota.queue(queue)
        counts = await handle.counts()
        waiting = {state: counts[state] for state in ("pending", "scheduled", "blocked")}
        total = sum(waiting.values())
        listed = ", ".join(f"{count:,} {state}" for state, count in waiting.items())
        purged = 0
        if total and not dry_run:
            confirm(f"This deletes {total:,} waiting jobs of queue {queue} ({listed}).", yes=yes)
            purged = await handle.purge()
    if settings.json:
        output.document({"queue": queue, "waiting": total, "purged": purged, "is_dry_run": dry_run})
    elif dry_run:
        output.text(f"would delete {total:,} waiting jobs of queue {queue} ({listed})")
    else:
        output.text(f"deleted {purged:,} waiting jobs of queue {queue}")
