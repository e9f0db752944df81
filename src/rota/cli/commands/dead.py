"""`rota dead`: lists, shows, redrives and deletes dead letters."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rota.cli import output
from rota.cli.audit import audit
from rota.cli.commands.job import (
    check_queue,
    delete_job,
    job_id_argument,
    print_page,
    redrive_job,
    show_job,
    yes_option,
)
from rota.cli.common_options import Settings, common_options
from rota.cli.complete_names_from_store import complete_job_id, complete_queue, complete_task
from rota.cli.confirmation import confirm
from rota.cli.connection import connected, run

if TYPE_CHECKING:
    from rota.client.rota import Rota

F = TypeVar("F", bound=Callable[..., Any])


def filter_options(command: F) -> F:
    """Adds the filters of dead letters."""
    for option in (
        click.option("--text", help="Only jobs with this text in their id, task, arguments, error or worker."),
        click.option("--error", help="Only jobs whose error has this class."),
        click.option("--task", help="Only jobs of this task.", shell_complete=complete_task),
        click.option("--queue", help="Only jobs of this queue.", shell_complete=complete_queue),
    ):
        command = option(command)
    return command


def many_options(command: F) -> F:
    """Adds the options of a command that acts on one dead letter, or on all that match a filter."""
    for option in (
        click.argument("job_id", metavar="[ID]", required=False, shell_complete=complete_job_id),
        yes_option,
        click.option("--dry-run", is_flag=True, help="Only count the jobs."),
        click.option("--limit", type=click.IntRange(min=1), help="Maximum number of jobs, latest first."),
        click.option("--all", "all_", is_flag=True, help="Act on all dead letters; required without a filter."),
    ):
        command = option(command)
    return filter_options(command)


@click.group()
def command() -> None:
    """Show, redrive and delete dead letters."""


@command.command(name="list")
@common_options
@filter_options
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True)
@click.option("--cursor", help="Cursor printed by the previous page.")
@click.pass_obj
def list_(settings: Settings, /, limit: int, cursor: str | None, **filters: str | None) -> None:
    """List dead letters, latest first, page by page."""
    run(_list(settings, limit, cursor, **filters))


async def _list(settings: Settings, limit: int, cursor: str | None, **filters: str | None) -> None:
    from rota.client.session import session_of

    async with connected(settings) as rota:
        await check_queue(rota, filters["queue"])
        page = await rota.dead.list(**filters, cursor=cursor, limit=limit)
        now = await session_of(rota).views.now()
    print_page(settings, page, now)


@command.command()
@common_options
@job_id_argument
@click.pass_obj
def show(settings: Settings, job_id: str) -> None:
    """Show a dead letter: its error with traceback, counts and history."""
    run(show_job(settings, job_id, only_dead=True))


@command.command()
@common_options
@many_options
@click.option("--per-second", type=click.FloatRange(min=0, min_open=True), help="Maximum rate.")
@click.pass_obj
def redrive(settings: Settings, /, job_id: str | None, per_second: float | None, **choice: Any) -> None:
    """Redrive one dead letter, or all that match a filter."""
    if job_id is not None:
        _check_alone(choice)
        run(_redrive_one(settings, job_id, dry_run=choice["dry_run"]))
    else:
        run(_act(settings, "redrive", choice, per_second=per_second))


@command.command()
@common_options
@many_options
@click.pass_obj
def delete(settings: Settings, /, job_id: str | None, **choice: Any) -> None:
    """Delete one dead letter, or all that match a filter."""
    if job_id is not None:
        _check_alone(choice)
        run(_delete_one(settings, job_id, dry_run=choice["dry_run"], yes=choice["yes"]))
    else:
        run(_act(settings, "delete", choice))


def _check_alone(choice: dict[str, Any]) -> None:
    given = [name for name in ("queue", "task", "error", "text", "limit", "all_") if choice[name]]
    if given:
        raise click.UsageError("give an ID or a filter, not both")


async def _redrive_one(settings: Settings, job_id: str, *, dry_run: bool) -> None:
    await (show_job(settings, job_id, only_dead=True) if dry_run else redrive_job(settings, job_id))


async def _delete_one(settings: Settings, job_id: str, *, dry_run: bool, yes: bool) -> None:
    if dry_run:
        await show_job(settings, job_id, only_dead=True)
    else:
        await delete_job(settings, job_id, yes=yes, only_dead=True)


async def _act(settings: Settings, verb: str, choice: dict[str, Any], *, per_second: float | None = None) -> None:
    filters: dict[str, str | None] = {name: choice[name] for name in ("queue", "task", "error", "text")}
    if not any(filters.values()) and not choice["all_"]:
        raise click.UsageError(
            "no dead letters chosen: give an ID, a filter (--queue, --task, --error, --text), or --all"
        )
    async with connected(settings) as rota:
        await check_queue(rota, filters["queue"])
        found = await _count(rota, choice["limit"], filters)
        changed = 0
        if found and not choice["dry_run"]:
            confirm(f"This {verb}s {found:,} dead letters{_where(filters)}.", yes=choice["yes"])
            # At most the confirmed number, even if more jobs have failed since.
            if verb == "redrive":
                changed = await rota.dead.redrive(**filters, limit=found, per_second=per_second)
            else:
                changed = await rota.dead.delete(**filters, limit=found)
            chosen = {name: value for name, value in filters.items() if value is not None}
            await audit(rota, verb, "dead letters", where=chosen or None, jobs=changed)
    past = {"redrive": "redriven", "delete": "deleted"}[verb]
    if settings.json:
        output.document({"found": found, past: changed, "is_dry_run": choice["dry_run"]})
    elif choice["dry_run"]:
        output.text(f"would {verb} {found:,} dead letters{_where(filters)}")
    else:
        output.text(f"{past} {changed:,} dead letters")


async def _count(rota: Rota, limit: int | None, filters: dict[str, str | None]) -> int:
    """Returns the number of matching jobs. Without a filter on the records, it is read from the counts."""
    found = 0
    if filters["task"] or filters["error"] or filters["text"]:
        cursor: str | None = None
        while True:
            page = await rota.dead.list(**filters, cursor=cursor, limit=1000)
            found, cursor = found + len(page.jobs), page.cursor
            if cursor is None or (limit is not None and found >= limit):
                break
    elif filters["queue"]:
        found = (await rota.queue(filters["queue"]).counts())["failed"]
    else:
        found = sum(info.counts["failed"] for info in await rota.queues())
    return found if limit is None else min(found, limit)


def _where(filters: dict[str, str | None]) -> str:
    given = ", ".join(f"{name} {value!r}" for name, value in filters.items() if value)
    return f" with {given}" if given else ""
