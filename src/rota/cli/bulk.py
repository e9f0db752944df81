"""`rota bulk`: cancel, delete, redrive or change every job that matches, in the background or while one looks."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rota.cli import output
from rota.cli.job import STATES, check_queue, yes_option
from rota.cli.settings import Settings, common_options, confirm, connected, run

if TYPE_CHECKING:
    from rota.store.operations import OperationInfo

F = TypeVar("F", bound=Callable[..., Any])


def _read_time(_context: Any, _parameter: Any, text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is no time: write it as 2026-12-24T18:00:00Z") from None
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
    """Which jobs are meant, and how it is done."""
    for option in (
        yes_option,
        click.option("--background", is_flag=True, help="Do not wait: workers carry it out."),
        click.option("--per-second", type=click.FloatRange(min=0, min_open=True), help="No faster than this."),
        click.option("--dry-run", is_flag=True, help="Only count the jobs that match."),
        click.option("--text", help="Anything in its id, task, arguments, error or worker."),
        click.option("--until", callback=_read_time, help="It ended (or was enqueued) before this time."),
        click.option("--since", callback=_read_time, help="It ended (or was enqueued) at this time or later."),
        click.option("--group", help="It belongs to this group of dead letters."),
        click.option("--error", help="The class of its last error."),
        click.option("--worker", help="The worker that runs it, or ran it last."),
        click.option("--field", "fields", multiple=True, callback=_read_fields, help="name=value of a declared field."),
        click.option("--tag", help="One of its tags."),
        click.option("--task", help="Its task."),
        click.option("--queue", help="Its queue."),
        click.option("--state", type=click.Choice(STATES, case_sensitive=False), help="The state that it is in."),
        common_options,
    ):
        command = option(command)
    return command


@click.group()
def command() -> None:
    """Do something to every job that matches. What is refused is reported, and changes nothing."""


@command.command()
@where_options
@click.option("--reason", default="", help="What the jobs' records shall say.")
@click.pass_obj
def cancel(settings: Settings, /, reason: str, **asked: Any) -> None:
    """Cancel jobs that wait or run."""
    run(_start(settings, "cancel", asked, reason=reason))


@command.command()
@where_options
@click.pass_obj
def delete(settings: Settings, /, **asked: Any) -> None:
    """Delete jobs and every trace of them."""
    run(_start(settings, "delete", asked))


@command.command()
@where_options
@click.pass_obj
def redrive(settings: Settings, /, **asked: Any) -> None:
    """Give dead letters another life."""
    run(_start(settings, "redrive", asked))


@command.command()
@where_options
@click.option("--priority", help="A name or a number from -100 to 100, lower first.")
@click.option("--delay", type=click.FloatRange(min=0), help="Start so many seconds from then.")
@click.pass_obj
def update(settings: Settings, /, priority: str | None, delay: float | None, **asked: Any) -> None:
    """Change the priority or the time of jobs that wait."""
    number = int(priority) if priority is not None and priority.lstrip("-").isdigit() else priority
    run(_start(settings, "update", asked, priority=number, delay=delay))


@command.command(name="list")
@common_options
@click.pass_obj
def list_(settings: Settings) -> None:
    """List operations, the newest first."""
    run(_list(settings))


@command.command()
@common_options
@click.argument("operation_id", metavar="ID")
@click.pass_obj
def show(settings: Settings, operation_id: str) -> None:
    """Show how far an operation has come, and what it could not do."""
    run(_show(settings, operation_id))


@command.command()
@common_options
@click.argument("operation_id", metavar="ID")
@click.pass_obj
def stop(settings: Settings, operation_id: str) -> None:
    """End an operation before its time. What is done stays done."""
    run(_stop(settings, operation_id))


async def _start(settings: Settings, verb: Any, asked: dict[str, Any], **arguments: Any) -> None:
    dry_run, background = asked.pop("dry_run"), asked.pop("background")
    per_second, yes = asked.pop("per_second"), asked.pop("yes")
    where = {name: value for name, value in asked.items() if value}
    async with connected(settings) as rota:
        await check_queue(rota, where.get("queue"))
        asked_for = " ".join(f"{name}={value}" for name, value in where.items())
        confirm(f"This will {verb} every job with {asked_for}.", yes=yes or dry_run or not where)
        info = await rota.operations.start(verb, where=where, dry_run=dry_run, per_second=per_second, **arguments)
        if not background:
            info = await rota.operations.run(info.id)
    _print(settings, info)


async def _list(settings: Settings) -> None:
    async with connected(settings) as rota:
        infos = await rota.operations.list()
    if settings.json:
        output.document([_shape(info) for info in infos])
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
        info = await rota.operations.get(operation_id)
    _print(settings, info)


def _print(settings: Settings, info: OperationInfo) -> None:
    if settings.json:
        output.document(_shape(info))
        return
    what = f"{info.verb}, dry run" if info.is_dry_run else info.verb
    output.text(f"{info.id}  {what}: {info.state}, {info.matched} matched, {info.done} done, {info.failed} failed")
    for failure in info.failures:
        output.text(f"  {failure.job}: {failure.why}")


def _shape(info: OperationInfo) -> dict[str, Any]:
    return {
        "id": info.id, "verb": info.verb, "state": info.state, "where": info.where, "arguments": info.arguments,
        "dry_run": info.is_dry_run, "per_second": info.per_second, "expected": info.expected, "matched": info.matched,
        "done": info.done, "failed": info.failed, "created_at": info.created_at, "ended_at": info.ended_at,
        "failures": [{"job": failure.job, "why": failure.why} for failure in info.failures],
    }  # fmt: skip
