"""`rota enqueue`: store a job from the command line, checked against the program or against what workers announced."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import click

from rota.cli import output
from rota.cli.apps import program
from rota.cli.settings import Settings, common_options, connected, run

if TYPE_CHECKING:
    from rota.client import Rota
    from rota.jobs import Job
    from rota.tasks import Task

_UNITS: Final = {"ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}


def duration(context: click.Context, parameter: click.Parameter, value: str | None) -> float | None:
    """Seconds, from `90`, `1.5`, `250ms`, `5m`, `2h` or `1d`."""
    if value is None:
        return None
    number = value.rstrip("abcdefghijklmnopqrstuvwxyz ")
    unit = value[len(number) :].strip() or "s"
    try:
        return float(number) * _UNITS[unit]
    except (ValueError, KeyError):
        raise click.BadParameter(f"{value!r} is no duration: write seconds, or 250ms, 90s, 5m, 2h, 1d") from None


def time_(context: click.Context, parameter: click.Parameter, value: str | None) -> datetime | None:
    """A time in ISO 8601; without a zone, by the clock on the wall here."""
    if value is None:
        return None
    try:
        return datetime.fromisoformat(value).astimezone()
    except (ValueError, OverflowError):
        raise click.BadParameter(
            f"{value!r} is no time: write 2026-12-24T18:00, with Z or +01:00 where another clock is meant"
        ) from None


def json_object(context: click.Context, parameter: click.Parameter, value: str | None) -> dict[str, Any] | None:
    """A JSON object."""
    import msgspec

    if value is None:
        return None
    try:
        return msgspec.json.decode(value, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise click.BadParameter(f"{value!r} is not a JSON object: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was asked for on the command line."""

    task: str
    args: list[Any]
    kwargs: dict[str, Any]
    options: dict[str, Any]
    attempts: int | None
    is_waiting: bool
    wait_timeout: float | None


@click.command()
@common_options
@click.option(
    "--app", metavar="MODULE:ROTA", help="The program that declares the task: arguments are checked against it."
)
@click.option("--kwargs", metavar="JSON", callback=json_object, default="{}", help="Named arguments, as a JSON object.")
@click.option("--id", help="An id of your choice; else one is made.")
@click.option("--queue", help="Another queue than the task's.")
@click.option("--priority", help="critical, high, medium, normal, low, or -100 to 100; lower first.")
@click.option(
    "--delay", metavar="TIME", callback=duration, help="Start no sooner than in that time: 90, 250ms, 5m, 2h, 1d."
)
@click.option(
    "--at", "run_at", metavar="WHEN", callback=time_, help="Start no sooner than that time; without a zone it is local."
)
@click.option("--expires", metavar="TIME", callback=duration, help="Cancel it unless it has started within that time.")
@click.option("--timeout", metavar="TIME", callback=duration, help="Stop an attempt after that time.")
@click.option("--attempts", type=click.IntRange(1, 1_000_000), help="Failures after which it is a dead letter.")
@click.option("--at-most-once", is_flag=True, default=None, help="One attempt, whatever happens.")
@click.option("--tag", "tags", multiple=True, help="A tag; may be given again.")
@click.option("--meta", metavar="JSON", callback=json_object, help="Anything to keep with the job, as a JSON object.")
@click.option(
    "--on-same-id",
    type=click.Choice(["update", "ignore", "reject"]),
    help="If the id has an unfinished run: change it (as it is unless told otherwise), return it, or refuse.",
)
@click.option("--lock", help="Never run at the same time as another job of the queue with this lock.")
@click.option("--after", multiple=True, metavar="ID", help="Start when that job has succeeded; may be given again.")
@click.option("--wait", is_flag=True, help="Wait for the end, and print the result.")
@click.option("--wait-timeout", metavar="TIME", callback=duration, help="Wait no longer than that; the job goes on.")
@click.argument("task")
@click.argument("args", nargs=-1)
@click.pass_obj
def command(
    settings: Settings,
    /,
    task: str,
    args: tuple[str, ...],
    app: str | None,
    kwargs: dict[str, Any],
    attempts: int | None,
    wait: bool,
    wait_timeout: float | None,
    **options: Any,
) -> int:
    """Enqueue a job that calls TASK with ARGS, and print its id.

    An argument that is JSON is passed as that value, any other as text: 7 is a number, '"7"' and seven are texts.
    Write -- before arguments that begin with a dash.
    """
    request = Request(
        task=task, args=[_value(arg) for arg in args], kwargs=kwargs, options=_chosen(options), attempts=attempts,
        is_waiting=wait or wait_timeout is not None, wait_timeout=wait_timeout,
    )  # fmt: skip
    return run(_enqueue(settings, app, request))


def _value(argument: str) -> Any:
    import msgspec

    try:
        return msgspec.json.decode(argument)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return argument


def _chosen(options: dict[str, Any]) -> dict[str, Any]:
    """The options given, as `Task.using` takes them."""
    from rota.core.same_id import Ignore, Reject, Update

    given = {name: value for name, value in options.items() if value is not None and value != ()}
    if "on_same_id" in given:
        kinds = {"update": Update, "ignore": Ignore, "reject": Reject}
        given["on_same_id"] = kinds[given["on_same_id"]]()
    if "priority" in given and given["priority"].removeprefix("-").isdecimal():
        given["priority"] = int(given["priority"])
    return given


async def _enqueue(settings: Settings, app: str | None, request: Request) -> int:
    import msgspec

    async with program(app, settings) if app else connected(settings) as rota:
        task = rota.tasks.get(request.task) if app else await _announced(rota, request)
        options = dict(request.options)
        if request.attempts is not None:  # the backoff stays the task's own
            options["retry"] = msgspec.structs.replace(task.options.retry, attempts=request.attempts)
        job = await task.using(**options).enqueue(*request.args, **request.kwargs)
        shape = {"id": job.id, "queue": job.queue, "run": job.run, "task": task.name, "is_new": job.is_new}
        if request.is_waiting:
            return await _wait(settings, job, shape, request.wait_timeout)
    if settings.json:
        output.document(shape)
    else:
        output.text(job.id)
    return 0


async def _announced(rota: Rota, request: Request) -> Task[Any, Any, Any]:
    """A stand-in for a task that only workers have: with their defaults, and checked against their schema."""
    from rota.errors import UnknownTask
    from rota.server.catalog import Catalog

    catalog = Catalog(rota)
    known = await catalog.find(request.task)
    if not known.source:
        names = ", ".join(one.task.name for one in await catalog.all())
        raise UnknownTask(
            f"no worker has announced a task called {request.task!r}; known are: {names or 'none'}. "
            "Start a worker that has it, or name the program: --app module:rota"
        )
    if request.args and request.kwargs:
        raise click.UsageError("give either ARGS or --kwargs: only with --app are the names of the parameters known")
    known.check(request.kwargs or request.args)
    return known.task


async def _wait(settings: Settings, job: Job[Any], shape: dict[str, Any], timeout: float | None) -> int:
    from rota.cli.shapes import job_shape
    from rota.errors import JobCancelled, JobFailed

    if not settings.json:
        output.note(f"enqueued {job.id}")
    trouble: JobFailed | JobCancelled | None = None
    result: Any = None
    try:
        result = await job.result(timeout)
    except (JobFailed, JobCancelled) as error:
        trouble = error
    if settings.json:
        output.document({**shape, **job_shape(await job.refresh())})
    elif trouble is None:
        output.document(result)
    else:
        raise trouble
    return 0 if trouble is None else 1
