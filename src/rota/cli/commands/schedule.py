"""`rota schedule`: lists, shows, pauses, resumes, runs and removes schedules."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import click

from rota.cli import output
from rota.cli.audit import audit
from rota.cli.commands.job import check_queue, yes_option
from rota.cli.common_options import Settings, common_options
from rota.cli.complete_names_from_store import complete_queue
from rota.cli.confirmation import confirm
from rota.cli.connection import connected, run

if TYPE_CHECKING:
    from rota.client.schedules import ScheduleInfo

name_argument = click.argument("name")


@click.group()
def command() -> None:
    """Show, pause, resume, run and remove schedules. NAME is `queue:name`, or the name alone if it is unique."""


@command.command(name="list")
@common_options
@click.option("--queue", help="Only schedules of this queue.", shell_complete=complete_queue)
@click.pass_obj
def list_(settings: Settings, queue: str | None) -> None:
    """List the schedules: rule, next run and last run."""
    run(_list(settings, queue))


async def _list(settings: Settings, queue: str | None) -> None:
    from rota.cli.to_json import schedule_json
    from rota.client.session import session_of

    async with connected(settings) as rota:
        await check_queue(rota, queue)
        infos = await rota.schedules.list(queue=queue)
        now = await session_of(rota).views.now()
    if settings.json:
        output.document({"schedules": [schedule_json(info) for info in infos]})
    elif infos:
        output.table(schedule_table(infos, now))
    else:
        output.note("there are no schedules" + (f" in queue {queue}" if queue else ""))


def schedule_table(infos: Sequence[ScheduleInfo], now: int) -> output.Table:
    """Returns a table of schedules."""
    rows = [
        (
            info.id,
            info.task,
            info.words,
            _state(info),
            output.distance(_ms(info.next_runs[0]), now) if info.next_runs else output.NOTHING,
            output.distance(_ms(info.last_run), now) if info.last_run else output.NOTHING,
            str(info.fired),
            str(info.dropped),
            str(info.skipped),
        )
        for info in infos
    ]
    return output.Table(("schedule", "task", "rule", "state", "next", "last", "fired", "dropped", "skipped"), rows)


@command.command()
@common_options
@name_argument
@click.pass_obj
def show(settings: Settings, name: str) -> None:
    """Show a schedule: rule, policies, job and next runs."""
    run(_show(settings, name))


async def _show(settings: Settings, name: str) -> None:
    from rota.cli.to_json import compact, schedule_json
    from rota.client.session import session_of

    async with connected(settings) as rota:
        info = await rota.schedules.get(name)
        now = await session_of(rota).views.now()
    if settings.json:
        output.document(schedule_json(info))
        return
    arguments = [compact(value) for value in info.args]
    arguments += [f"{key}={compact(value)}" for key, value in info.kwargs.items()]
    output.fields(
        [
            ("schedule", info.id),
            ("state", _state(info)),
            ("rule", info.words),
            ("", str(info.rule) if str(info.rule) != info.words else ""),
            ("task", f"{info.task}({', '.join(arguments)})"),
            ("misfire", info.misfire),
            ("overlap", info.overlap),
            ("version", f"{info.version}, {'declared in code' if info.is_declared else 'put at run time'}"),
            ("next runs", "\n".join(_when(moment, now) for moment in info.next_runs) or output.NOTHING),
            ("last run", _when(info.last_run, now) if info.last_run else output.NOTHING),
            ("last job", info.last_job or ""),
            ("ticks", f"{info.fired:,} fired, {info.dropped:,} missed and dropped, {info.skipped:,} skipped"),
        ]
    )
    if info.is_orphaned:
        output.note("No live worker declares this schedule: remove it if it is no longer needed.")


@command.command()
@common_options
@name_argument
@click.pass_obj
def pause(settings: Settings, name: str) -> None:
    """Pause a schedule. Ticks during the pause are not made up for."""
    run(_set_paused(settings, name, is_paused=True))


@command.command()
@common_options
@name_argument
@click.pass_obj
def resume(settings: Settings, name: str) -> None:
    """Resume a schedule from now on."""
    run(_set_paused(settings, name, is_paused=False))


async def _set_paused(settings: Settings, name: str, *, is_paused: bool) -> None:
    from rota.client.session import session_of

    async with connected(settings) as rota:
        await (rota.schedules.pause(name) if is_paused else rota.schedules.resume(name))
        info = await rota.schedules.get(name)
        await audit(rota, "pause" if is_paused else "resume", f"schedule {info.id}")
        now = await session_of(rota).views.now()
    if settings.json:
        output.document({"schedule": info.id, "is_paused": is_paused})
    elif is_paused or not info.next_runs:
        output.text(f"schedule {info.id} is {_state(info)}")
    else:
        output.text(f"schedule {info.id} is open; its next run is {_when(info.next_runs[0], now)}")


@command.command(name="run")
@common_options
@name_argument
@click.pass_obj
def run_(settings: Settings, name: str) -> None:
    """Enqueue one of a schedule's jobs now, even if it is paused. Prints the job's id."""
    run(_run(settings, name))


async def _run(settings: Settings, name: str) -> None:
    async with connected(settings) as rota:
        job = await rota.schedules.run_now(name)
        await audit(rota, "run", f"schedule {name}", job=job.id)
    if settings.json:
        output.document({"id": job.id, "run": job.run})
    else:
        output.text(job.id)


@command.command()
@common_options
@name_argument
@yes_option
@click.pass_obj
def remove(settings: Settings, name: str, yes: bool) -> None:
    """Remove a schedule. Its jobs are kept."""
    run(_remove(settings, name, yes=yes))


async def _remove(settings: Settings, name: str, *, yes: bool) -> None:
    async with connected(settings) as rota:
        info = await rota.schedules.get(name)
        is_recreated = info.is_declared and not info.is_orphaned
        hint = (
            " It is declared in code and will be created again by the next worker: pause it instead to stop it."
            if is_recreated
            else ""
        )
        confirm(f"This removes schedule {info.id} ({info.words}).{hint}", yes=yes)
        await rota.schedules.remove(info.id)
        await audit(rota, "remove", f"schedule {info.id}")
    if settings.json:
        output.document({"schedule": info.id, "removed": True})
    else:
        output.text(f"removed schedule {info.id}")


def _state(info: ScheduleInfo) -> str:
    if info.is_paused:
        return "paused"
    return "orphaned" if info.is_orphaned else "open"


def _ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def _when(moment: datetime, now: int) -> str:
    """Returns a time in its own zone, and its distance from now."""
    zone = f" {moment.tzinfo}" if moment.tzinfo is not None else ""
    return f"{moment:%Y-%m-%d %H:%M:%S %z}{zone} ({output.distance(_ms(moment), now)})"
