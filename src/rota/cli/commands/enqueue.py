"""`rota enqueue`: enqueues a job, checked against the application or against the tasks announced by workers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import click

from rota.cli import output
from rota.cli.audit import user
from rota.cli.common_options import Settings, common_options
from rota.cli.complete_names_from_store import complete_queue, complete_task
from rota.cli.connection import connected, run
from rota.cli.user_app import application
from rota.core.did_you_mean import did_you_mean

if TYPE_CHECKING:
    from rota.client.job import Job
    from rota.client.rota import Rota
    from rota.client.tasks import Task

_UNITS: Final = {"ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}


def duration(context: click.Context, parameter: click.Parameter, value: str | None) -> float | None:
    """Parses a duration: `90`, `1.5`, `250ms`, `5m`, `2h` or `1d`. Returns seconds."""
    if value is None:
        return None
    number = value.rstrip("abcdefghijklmnopqrstuvwxyz ")
    unit = value[len(number) :].strip() or "s"
    try:
        return float(number) * _UNITS[unit]
    except (ValueError, KeyError):
        raise click.BadParameter(f"{value!r} is not a duration: write seconds, or 250ms, 90s, 5m, 2h, 1d") from None


def time_(context: click.Context, parameter: click.Parameter, value: str | None) -> datetime | None:
    """Parses an ISO 8601 time; without a zone it is local time."""
    if value is None:
        return None
    try:
        return datetime.fromisoformat(value).astimezone()
    except (ValueError, OverflowError):
        raise click.BadParameter(
            f"{value!r} is not a time: write 2026-12-24T18:00, with Z or +01:00 for another time zone"
        ) from None


def json_object(context: click.Context, parameter: click.Parameter, value: str | None) -> dict[str, Any] | None:
    """Parses a JSON object."""
    import msgspec

    if value is None:
        return None
    try:
        return msgspec.json.decode(value, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise click.BadParameter(f"{value!r} is not a JSON object: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The job described on the command line."""

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
    "--app", metavar="MODULE:ROTA", help="Application that declares the task; arguments are checked against it."
)
@click.option("--kwargs", metavar="JSON", callback=json_object, default="{}", help="Named arguments, as a JSON object.")
@click.option("--id", help="Id of the job. Default: generated.")
@click.option("--queue", help="Queue of the job. Default: that of the task.", shell_complete=complete_queue)
@click.option("--priority", help="critical, high, medium, normal, low, or -100 to 100; lower runs first.")
@click.option("--delay", metavar="TIME", callback=duration, help="Earliest start, from now: 90, 250ms, 5m, 2h, 1d.")
@click.option("--at", "run_at", metavar="WHEN", callback=time_, help="Earliest start; local time without a zone.")
@click.option("--expires", metavar="TIME", callback=duration, help="Cancel the job unless it starts within this time.")
@click.option("--timeout", metavar="TIME", callback=duration, help="Stop an attempt after this time.")
@click.option(
    "--attempts", type=click.IntRange(1, 1_000_000), help="Failures after which the job becomes a dead letter."
)
@click.option("--at-most-once", is_flag=True, default=None, help="Never retry, not even after a crash.")
@click.option("--tag", "tags", multiple=True, help="A tag; repeatable.")
@click.option("--meta", metavar="JSON", callback=json_object, help="Metadata of the job, as a JSON object.")
@click.option(
    "--on-same-id",
    type=click.Choice(["update", "ignore", "reject"]),
    help="If the id has an unfinished run: update it (default), ignore this call, or reject it.",
)
@click.option("--lock", help="Do not run at the same time as another job of the queue with this lock.")
@click.option("--after", multiple=True, metavar="ID", help="Start after this job has succeeded; repeatable.")
@click.option("--wait", is_flag=True, help="Wait until the job ends, and print its result.")
@click.option("--wait-timeout", metavar="TIME", callback=duration, help="Wait at most this long; the job continues.")
@click.argument("task", shell_complete=complete_task)
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

    An argument that is valid JSON is passed as that value, any other as a string: 7 is a number, '"7"' and seven are
    strings. Write -- before arguments that begin with a dash.
    """
    request = Request(
        task=task,
        args=[_value(arg) for arg in args],
        kwargs=kwargs,
        options=_chosen(options),
        attempts=attempts,
        is_waiting=wait or wait_timeout is not None,
        wait_timeout=wait_timeout,
    )
    return run(_enqueue(settings, app, request))


def _value(argument: str) -> Any:
    import msgspec

    try:
        return msgspec.json.decode(argument)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return argument


def _chosen(options: dict[str, Any]) -> dict[str, Any]:
    """Returns the given options as `Task.using` takes them."""
    from rota.core.same_id_policy import Ignore, Reject, Update

    given = {name: value for name, value in options.items() if value is not None and value != ()}
    if "on_same_id" in given:
        kinds = {"update": Update, "ignore": Ignore, "reject": Reject}
        given["on_same_id"] = kinds[given["on_same_id"]]()
    if "priority" in given and given["priority"].removeprefix("-").isdecimal():
        given["priority"] = int(given["priority"])
    return given


async def _enqueue(settings: Settings, app: str | None, request: Request) -> int:
    import msgspec

    async with application(app, settings) if app else connected(settings) as rota:
        task = rota.tasks.get(request.task) if app else await _announced(rota, request)
        options = dict(request.options)
        if request.attempts is not None:  # the backoff stays that of the task
            options["retry"] = msgspec.structs.replace(task.options.retry, attempts=request.attempts)
        call = task.using(**options).call(*request.args, **request.kwargs)
        job = await rota.enqueue(call.attributed(f"{user()} (command line)"))
        enqueued = {"id": job.id, "queue": job.queue, "run": job.run, "task": task.name, "is_new": job.is_new}
        if request.is_waiting:
            return await _wait(settings, job, enqueued, request.wait_timeout)
    if settings.json:
        output.document(enqueued)
    else:
        output.text(job.id)
    return 0


async def _announced(rota: Rota, request: Request) -> Task[Any, Any, Any]:
    """Returns a task announced by workers, with their defaults, after checking the arguments against its schema."""
    from rota.errors import UnknownTask
    from rota.server.task_catalog import TaskCatalog

    catalog = TaskCatalog(rota)
    known = await catalog.find(request.task)
    if not known.source:
        announced = [one.task.name for one in await catalog.all()]
        names, hint = ", ".join(announced), did_you_mean(request.task, announced)
        raise UnknownTask(
            f"no worker has announced the task {request.task!r}{hint}; announced tasks: {names or 'none'}. "
            "Start a worker that has it, or name the application: --app module:rota"
        )
    if request.args and request.kwargs:
        raise click.UsageError("give either ARGS or --kwargs: both require --app, which has the parameter names")
    known.check(request.kwargs or request.args)
    return known.task


async def _wait(settings: Settings, job: Job[Any], enqueued: dict[str, Any], timeout: float | None) -> int:
    from rota.cli.to_json import job_json
    from rota.errors import JobCancelled, JobFailed

    if not settings.json:
        output.note(f"enqueued {job.id}")
    failure: JobFailed | JobCancelled | None = None
    result: Any = None
    try:
        result = await job.result(timeout)
    except (JobFailed, JobCancelled) as error:
        failure = error
    if settings.json:
        output.document({**enqueued, **job_json(await job.refresh())})
    elif failure is None:
        output.document(result)
    else:
        raise failure
    return 0 if failure is None else 1
