"""`rota bulk`: cancels, deletes, redrives or updates all matching jobs, in the foreground or background."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rota.cli import output
from rota.cli.audit import audit
from rota.cli.commands.job import STATES, check_queue, yes_option
from rota.cli.common_options import Settings, common_options
from rota.cli.complete_names_from_store import complete_queue, complete_task
from rota.cli.confirmation import confirm
from rota.cli.connection import connected, run

if TYPE_CHECKING:
    from rota.store.bulk_operation_records import OperationInfo

F = TypeVar("F", bound=Callable[..., Any])


def _read_time(_context: Any, _parameter: Any, text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a time: write it as 2026-12-24T18:00:00Z") from None
    return when if when.utcoffset() is not None else when.astimezone()


def _read_fields(_context: Any, _parameter: Any, pairs: tuple[str, ...]) -> dict[str, str]:
    fields: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise click.BadParameter(f"{pair!r} is not name=value")
        fields[name] = value
    return fields


def where_options(command: F) -> F:
    """Adds the filters and options of a bulk operation."""
    for option in (
        yes_option,
        click.option("--background", is_flag=True, help="Return immediately; workers run the operation."),
        click.option("--per-second", type=click.FloatRange(min=0, min_open=True), help="Maximum rate."),
        click.option("--dry-run", is_flag=True, help="Only count the jobs that match."),
        click.option("--text", help="Only jobs with this text in their id, task, arguments, error or worker."),
        click.option("--until", callback=_read_time, help="Only jobs that ended (or were enqueued) before this time."),
        click.option(
            "--since", callback=_read_time, help="Only jobs that ended (or were enqueued) at this time or later."
        ),
        click.option("--group", help="Only dead letters of this group."),
        click.option("--error", help="Only jobs whose last error has this class."),
        click.option("--worker", help="Only jobs that this worker runs or ran last."),
        click.option(
            "--field", "fields", multiple=True, callback=_read_fields, help="name=value of an indexed parameter."
        ),
        click.option("--tag", help="Only jobs with this tag."),
        click.option("--task", help="Only jobs of this task.", shell_complete=complete_task),
        click.option("--queue", help="Only jobs of this queue.", shell_complete=complete_queue),
        click.option("--state", type=click.Choice(STATES, case_sensitive=False), help="Only jobs in this state."),
        common_options,
    ):
        command = option(command)
    return command


@click.group()
def command() -> None:
    """Cancel, delete, redrive or update all matching jobs. Jobs that cannot be changed are reported."""


@command.command()
@where_options
@click.option("--reason", default="", help="Stored with the jobs.")
@click.pass_obj
def cancel(settings: Settings, /, reason: str, **chosen: Any) -> None:
    """Cancel waiting and running jobs."""
    run(_start(settings, "cancel", chosen, reason=reason))


@command.command()
@where_options
@click.pass_obj
def delete(settings: Settings, /, **chosen: Any) -> None:
    """Delete jobs and everything stored with them."""
    run(_start(settings, "delete", chosen))


@command.command()
@where_options
@click.pass_obj
def redrive(settings: Settings, /, **chosen: Any) -> None:
    """Redrive dead letters."""
    run(_start(settings, "redrive", chosen))


@command.command()
@where_options
@click.option("--priority", help="A name, or a number from -100 to 100; lower runs first.")
@click.option("--delay", type=click.FloatRange(min=0), help="New delay in seconds.")
@click.pass_obj
def update(settings: Settings, /, priority: str | None, delay: float | None, **chosen: Any) -> None:
    """Change the priority or start time of waiting jobs."""
    number = int(priority) if priority is not None and priority.lstrip("-").isdigit() else priority
    run(_start(settings, "update", chosen, priority=number, delay=delay))


@command.command(name="list")
@common_options
@click.pass_obj
def list_(settings: Settings) -> None:
    """List operations, newest first."""
    run(_list(settings))


@command.command()
@common_options
@click.argument("operation_id", metavar="ID")
@click.pass_obj
def show(settings: Settings, operation_id: str) -> None:
    """Show the progress and the failures of an operation."""
    run(_show(settings, operation_id))


@command.command()
@common_options
@click.argument("operation_id", metavar="ID")
@click.pass_obj
def stop(settings: Settings, operation_id: str) -> None:
    """Stop an operation. Changes already made are kept."""
    run(_stop(settings, operation_id))


async def _start(settings: Settings, verb: Any, chosen: dict[str, Any], **arguments: Any) -> None:
    dry_run, background = chosen.pop("dry_run"), chosen.pop("background")
    per_second, yes = chosen.pop("per_second"), chosen.pop("yes")
    where = {name: value for name, value in chosen.items() if value}
    async with connected(settings) as rota:
        await check_queue(rota, where.get("queue"))
        filters = " ".join(f"{name}={value}" for name, value in where.items())
        confirm(f"This will {verb} every job with {filters}.", yes=yes or dry_run or not where)
        info = await rota.operations.start(verb, where=where, dry_run=dry_run, per_second=per_second, **arguments)
        if not dry_run:
            await audit(rota, verb, f"operation {info.id}", where=where, **arguments)
        if not background:
            info = await rota.operations.run(info.id)
    _print(settings, info)


async def _list(settings: Settings) -> None:
    async with connected(settings) as rota:
        infos = await rota.operations.list()
    if settings.json:
        output.document([_operation_json(info) for info in infos])
        return
    rows = [["ID", "VERB", "STATE", "MATCHED", "DONE", "FAILED"]]
    rows += [[i.id, i.verb, i.state, str(i.matched), str(i.done), str(i.failed)] for i in infos]
    for row in rows:
        output.text("  ".join(cell.ljust(16) for cell in row).rstrip())


async def _show(settings: Settings, operation_id: str) -> None:
    async with connected(settings) as rota:
        info = await rota.operations.get(operation_id)
    _print(settings, info)


async def _stop(settings: Settings, operation_id: str) -> None:
    async with connected(settings) as rota:
        await rota.operations.stop(operation_id)
        await audit(rota, "cancel", f"operation {operation_id}")
        info = await rota.operations.get(operation_id)
    _print(settings, info)


def _print(settings: Settings, info: OperationInfo) -> None:
    if settings.json:
        output.document(_operation_json(info))
        return
    action = f"{info.verb}, dry run" if info.is_dry_run else info.verb
    output.text(f"{info.id}  {action}: {info.state}, {info.matched} matched, {info.done} done, {info.failed} failed")
    for failure in info.failures:
        output.text(f"  {failure.job}: {failure.reason}")


def _operation_json(info: OperationInfo) -> dict[str, Any]:
    return {
        "id": info.id,
        "verb": info.verb,
        "state": info.state,
        "where": info.where,
        "arguments": info.arguments,
        "dry_run": info.is_dry_run,
        "per_second": info.per_second,
        "expected": info.expected,
        "matched": info.matched,
        "done": info.done,
        "failed": info.failed,
        "created_at": info.created_at,
        "ended_at": info.ended_at,
        "failures": [{"job": failure.job, "why": failure.reason} for failure in info.failures],
    }
