"""`rota queue`: lists, pauses, resumes and purges queues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from rota.cli import output
from rota.cli.audit import audit, user
from rota.cli.commands.job import check_queue, yes_option
from rota.cli.common_options import Settings, common_options
from rota.cli.complete_names_from_store import complete_queue
from rota.cli.confirmation import confirm
from rota.cli.connection import connected, run
from rota.core.state_transitions import JobState

if TYPE_CHECKING:
    from rota.store.reads import QueueInfo

queue_argument = click.argument("queue", shell_complete=complete_queue)


@click.group()
def command() -> None:
    """List, pause, resume and purge queues."""


@command.command(name="list")
@common_options
@click.pass_obj
def list_(settings: Settings) -> None:
    """List the queues: jobs per state, and the longest waiting time."""
    run(_list(settings))


async def _list(settings: Settings) -> None:
    from rota.cli.to_json import queue_json

    async with connected(settings) as rota:
        infos = await rota.queues()
    if settings.json:
        output.document({"queues": [queue_json(info) for info in infos]})
    elif infos:
        output.table(queue_table(infos))
    else:
        output.note("no queue has been used yet")


def queue_table(infos: Sequence[QueueInfo]) -> output.Table:
    """Returns a table of queues with the number of jobs per state."""
    from rota.core.explain import format_duration

    rows = [
        (
            info.name,
            "paused" if info.is_paused else "open",
            *(str(info.counts[state.value]) for state in JobState),
            output.NOTHING if info.oldest_pending_ms is None else format_duration(info.oldest_pending_ms),
        )
        for info in infos
    ]
    return output.Table(("queue", "claims", *(state.value for state in JobState), "oldest wait"), rows)


@command.command()
@common_options
@queue_argument
@click.option("--note", default="", help="Why: shown until the queue is resumed.")
@click.pass_obj
def pause(settings: Settings, queue: str, note: str) -> None:
    """Pause a queue: no worker claims its jobs. Running jobs continue."""
    run(_set_paused(settings, queue, is_paused=True, note=note))


@command.command()
@common_options
@queue_argument
@click.pass_obj
def resume(settings: Settings, queue: str) -> None:
    """Resume a queue. Workers claim its jobs immediately."""
    run(_set_paused(settings, queue, is_paused=False))


async def _set_paused(settings: Settings, queue: str, *, is_paused: bool, note: str = "") -> None:
    async with connected(settings) as rota:
        await check_queue(rota, queue)
        handle = rota.queue(queue)
        await (handle.pause(note=note, by=user()) if is_paused else handle.resume())
        await audit(rota, "pause" if is_paused else "resume", f"queue {queue}", note=note or None)
    if settings.json:
        output.document({"queue": queue, "is_paused": is_paused})
    else:
        output.text(f"queue {queue} is paused" if is_paused else f"queue {queue} is open")


@command.command()
@common_options
@click.option("--dry-run", is_flag=True, help="Only count the jobs.")
@yes_option
@queue_argument
@click.pass_obj
def purge(settings: Settings, queue: str, dry_run: bool, yes: bool) -> None:
    """Delete the waiting jobs of a queue: pending, scheduled and blocked ones."""
    run(_purge(settings, queue, dry_run=dry_run, yes=yes))


async def _purge(settings: Settings, queue: str, *, dry_run: bool, yes: bool) -> None:
    from rota.core.explain import format_count

    async with connected(settings) as rota:
        await check_queue(rota, queue)
        handle = rota.queue(queue)
        counts = await handle.counts()
        waiting = {state: counts[state] for state in ("pending", "scheduled", "blocked")}
        total = sum(waiting.values())
        listed = ", ".join(f"{count:,} {state}" for state, count in waiting.items())
        purged = 0
        if total and not dry_run:
            confirm(f"This deletes {format_count(total, 'waiting job')} of queue {queue} ({listed}).", yes=yes)
            purged = await handle.purge()
            await audit(rota, "purge", f"queue {queue}", purged=purged)
    if settings.json:
        output.document({"queue": queue, "waiting": total, "purged": purged, "is_dry_run": dry_run})
    elif dry_run:
        output.text(f"would delete {format_count(total, 'waiting job')} of queue {queue} ({listed})")
    else:
        output.text(f"deleted {format_count(purged, 'waiting job')} of queue {queue}")
