"""`rota job`: look at one job or list many, watch it, read its log, cancel, redrive, delete it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from rota.cli import output
from rota.cli.settings import Settings, common_options, confirm, connected, run

if TYPE_CHECKING:
    from rota.client import Rota
    from rota.core.job import HistoryEntry, JobRecord
    from rota.store.views import Page, Snapshot

#: What is under way comes first, what is over last. Also the order of a listing of all states.
STATES: Final = ("processing", "pending", "scheduled", "blocked", "failed", "completed", "cancelled")
#: Records that one page of a listing over all states looks at, about.
EXAMINED: Final = 1_000

job_id_argument = click.argument("job_id", metavar="ID")
yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask.")


@click.group()
def command() -> None:
    """Look at jobs, and act on one.

    An ID is queue:id, queue:id@run for one run of it, or a bare id of the queue “default”.
    """


# --- show --------------------------------------------------------------------------------------------------------


@command.command()
@common_options
@click.option("--raw", is_flag=True, help="The operator's view: what the server holds, key by key.")
@job_id_argument
@click.pass_obj
def show(settings: Settings, job_id: str, raw: bool) -> None:
    """Show a job: where it is and why, counts, times, error, progress, history, result."""
    run(_show_raw(settings, job_id) if raw else show_job(settings, job_id))


async def show_job(settings: Settings, job_id: str, *, only_dead: bool = False) -> None:
    """Prints one job. With `only_dead` one that is no dead letter is refused."""
    from rota.cli.shapes import job_shape
    from rota.core.shapes import history_shape
    from rota.jobs import full_history

    async with connected(settings) as rota:
        snapshot = await read(rota, job_id)
        record = snapshot.record
        if only_dead:
            check_dead(record, "show")
        explanation = await rota.job(str(record.ref)).explain()
    history = full_history(snapshot)
    if settings.json:
        output.document(
            {**job_shape(record), "explanation": explanation, "history": [history_shape(entry) for entry in history]}
        )
        return
    output.text(f"{record.ref.full_id}  {record.task}")
    output.text(explanation)
    output.text()
    output.fields(_facts(record, snapshot.at))
    output.text()
    output.table(_history_table(history, snapshot.at))


async def _show_raw(settings: Settings, job_id: str) -> None:
    async with connected(settings) as rota:
        record = (await read(rota, job_id)).record
        held = await rota.views.raw(record.ref)
    if settings.json:
        output.document(held)
    else:
        output.fields((key, str(value)) for key, value in held.items())


async def read(rota: Rota, job_id: str) -> Snapshot:
    """A run as it is now. Raises JobNotFound."""
    from rota.core.job import JobRef
    from rota.errors import JobNotFound

    ref = JobRef.parse(job_id)
    snapshot = (await rota.views.read(ref.queue, [ref]))[0]
    if snapshot is None:
        raise JobNotFound(str(ref))
    return snapshot


def check_dead(record: JobRecord, verb: str) -> None:
    """Refuses a job that is no dead letter."""
    from rota.errors import WrongState

    if record.state != "failed":
        raise WrongState(record.ref.full_id, record.state.value, verb, f"it is no dead letter: use rota job {verb}")


def _facts(record: JobRecord, now: int) -> list[tuple[str, str]]:
    from rota.cli.shapes import compact, value_of

    counts, options, progress, error = record.counts, record.options, record.progress, record.error
    counted = {
        "failures": counts.failures,
        "stalls": counts.stalls,
        "snoozes": counts.snoozes,
        "handbacks": counts.handbacks,
    }
    facts = [
        ("state", record.state.value),
        ("run", record.ref.run or ""),
        ("arguments", compact(value_of(record.arguments))),
        ("priority", str(options.priority) if options.priority else ""),
        ("tags", ", ".join(options.tags)),
        ("meta", compact(options.meta) if options.meta else ""),
        ("attempt", f"{counts.attempt}" + "".join(f", {name} {count}" for name, count in counted.items() if count)),
        ("attempts", f"{options.attempts} at most, {_seconds(options.timeout_ms)} each"),
        ("enqueued", output.when(record.enqueued_at or None, now)),
        ("due", output.when(record.due_at, now)),
        ("claimed", output.when(record.claimed_at, now)),
        ("lease until", output.when(record.lease_until, now)),
        ("ended", output.when(record.ended_at, now)),
        ("worker", record.worker),
        ("reason", record.reason),
    ]
    if progress is not None:
        facts.append(("progress", describe_progress(record)))
    if error is not None:
        facts.append(("error", f"{error.type}: {error.message} ({error.kind})"))
        facts.append(("attributes", compact(error.attributes) if error.attributes else ""))
        facts.append(("traceback", error.traceback.rstrip()))
    if record.state == "completed":
        facts.append(("result", compact(value_of(record.result)) if record.result else "null"))
    return facts


def describe_progress(record: JobRecord) -> str:
    """`42 % (21 of 50), sending, 3.1/s, 9.4 s left`."""
    from rota.core.explain import span

    progress = record.progress
    if progress is None:
        return ""
    parts = [f"{progress.percent} % ({progress.done:g} of {progress.total:g})"]
    if progress.note:
        parts.append(progress.note)
    if progress.per_second is not None and record.state == "processing":
        parts.append(f"{progress.per_second:.3g}/s")
    if progress.seconds_left is not None and record.state == "processing":
        parts.append(f"{span(round(progress.seconds_left * 1000))} left")
    return ", ".join(parts)


def _seconds(ms: int | None) -> str:
    return "no timeout" if ms is None else f"{ms / 1000:g} s"


def _history_table(history: list[HistoryEntry], now: int) -> output.Table:
    rows = [
        (
            output.when(entry.at, now),
            entry.verb,
            entry.state or output.NOTHING,
            str(entry.attempt or output.NOTHING),
            entry.worker or output.NOTHING,
            entry.note,
        )
        for entry in history
    ]
    return output.Table(("time", "verb", "state", "attempt", "worker", "note"), rows)


# --- list --------------------------------------------------------------------------------------------------------


@command.command(name="list")
@common_options
@click.option(
    "--state", type=click.Choice(STATES, case_sensitive=False), help="Only jobs in this state; else all of them."
)
@click.option("--queue", help="Only jobs of this queue.")
@click.option("--task", help="Only jobs of this task.")
@click.option("--tag", help="Only jobs with this tag.")
@click.option("--text", help="Only jobs with this text in their id, task, arguments, error or worker.")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True)
@click.option("--cursor", help="Where the page before ended.")
@click.pass_obj
def list_(
    settings: Settings, /, state: str | None, limit: int, cursor: str | None, queue: str | None, **filters: str | None
) -> None:
    """List jobs, page by page.

    A page with filters looks at a bounded number of records and says at how many: it may be short, or empty, and
    still have a next one.
    """
    run(_list(settings, (state.lower(),) if state else STATES, limit, cursor, queue=queue, **filters))


async def _list(
    settings: Settings,
    states: tuple[str, ...],
    limit: int,
    cursor: str | None,
    *,
    queue: str | None,
    **filters: str | None,
) -> None:
    async with connected(settings) as rota:
        await check_queue(rota, queue)
        page = await _page(rota, states, limit, cursor, queue=queue, **filters)
        now = await rota.views.now()
    print_page(settings, page, now)


async def _page(rota: Rota, states: tuple[str, ...], limit: int, cursor: str | None, **filters: str | None) -> Page:
    """A page over several states, one after the other. Its cursor says in which one it ended."""
    from rota.errors import InvalidOption
    from rota.store.views import Page

    first, _, inner = (cursor or states[0]).partition("~")
    if first not in states or (cursor and "~" not in cursor):
        raise InvalidOption("cursor", f"{cursor!r} was not made by this listing")
    found: list[JobRecord] = []
    examined = 0
    left = states[states.index(first) :]
    for place, state in enumerate(left):
        wanted: dict[str, Any] = {"cursor": inner or None, "limit": limit - len(found), **filters}
        page = await rota.jobs(state, **wanted)
        found += page.jobs
        examined += page.examined
        if page.cursor is not None:
            return Page(found, f"{state}~{page.cursor}", examined)
        inner = ""
        if place + 1 < len(left) and (len(found) >= limit or examined >= EXAMINED):
            return Page(found, f"{left[place + 1]}~", examined)
    return Page(found, None, examined)


async def check_queue(rota: Rota, queue: str | None) -> None:
    """Refuses a queue that nobody ever used: most likely its name is misspelt."""
    from rota.core.job import checked_queue

    if queue is None:
        return
    known = await rota.views.queues()
    if checked_queue(queue).removesuffix("-fail") not in known:
        raise QueueNotFound(f"no queue is called {queue!r}; there are: {', '.join(known) or 'none yet'}")


class QueueNotFound(click.ClickException):
    """No job was ever put into such a queue."""

    exit_code = 3


def print_page(settings: Settings, page: Page, now: int) -> None:
    """A page of jobs, how to go on, and how many records were examined."""
    from rota.cli.shapes import job_shape

    if settings.json:
        output.document(
            {"jobs": [job_shape(job) for job in page.jobs], "cursor": page.cursor, "examined": page.examined}
        )
        return
    if page.jobs:
        rows = [
            (job.ref.full_id, job.task, job.state.value, str(job.counts.attempt), _time_of(job, now), _remark(job))
            for job in page.jobs
        ]
        output.table(output.Table(("id", "task", "state", "attempt", "when", "remark"), rows))
    output.note(
        f"{len(page.jobs)} jobs, {page.examined} examined"
        + (f"; next page: --cursor {page.cursor}" if page.cursor else "")
    )


def _time_of(job: JobRecord, now: int) -> str:
    if job.ended_at is not None:
        return f"ended {output.distance(job.ended_at, now)}"
    if job.state == "processing":
        return f"claimed {output.distance(job.claimed_at, now)}"
    return f"due {output.distance(job.due_at, now)}"


def _remark(job: JobRecord) -> str:
    if job.state == "processing":
        return describe_progress(job) or job.worker
    if job.error is not None and job.state != "completed":
        return f"{job.error.type}: {job.error.message}".partition("\n")[0][:100]
    return job.reason or ", ".join(job.options.tags)


# --- orders ------------------------------------------------------------------------------------------------------


@command.command()
@common_options
@click.option("--reason", default="", help="Kept with the job.")
@click.option("--only-waiting", is_flag=True, help="Leave it alone if it is being processed.")
@yes_option
@job_id_argument
@click.pass_obj
def cancel(settings: Settings, job_id: str, reason: str, only_waiting: bool, yes: bool) -> int:
    """Cancel a job: it never runs, or its handler is told to stop."""
    return run(_cancel(settings, job_id, reason, only_waiting=only_waiting, yes=yes))


async def _cancel(settings: Settings, job_id: str, reason: str, *, only_waiting: bool, yes: bool) -> int:
    from rota.errors import WrongState

    async with connected(settings) as rota:
        record = (await read(rota, job_id)).record
        if record.state.is_finished:
            raise WrongState(record.ref.full_id, record.state.value, "cancel", "it has ended")
        confirm(f"This cancels 1 job: {describe(record)}.", yes=yes)
        was = await rota.job(str(record.ref)).cancel(reason, only_waiting=only_waiting)
    is_left_alone = only_waiting and was.value == "processing"
    if is_left_alone:
        said = "is being processed, and was left alone"
    elif was.value == "processing":
        said = "is cancelled; its handler is told to stop"
    else:
        said = "is cancelled"
    state = "processing" if is_left_alone else "cancelled"
    _report(settings, record, {"state": state, "was": record.state.value}, said)
    return 1 if is_left_alone else 0


@command.command()
@common_options
@job_id_argument
@click.pass_obj
def redrive(settings: Settings, job_id: str) -> None:
    """Give a dead letter another life, with its counts reset."""
    run(redrive_job(settings, job_id))


async def redrive_job(settings: Settings, job_id: str) -> None:
    """Redrives one dead letter, and says so."""
    async with connected(settings) as rota:
        record = (await read(rota, job_id)).record
        await rota.job(str(record.ref)).redrive()
    _report(settings, record, {"state": "pending", "was": "failed"}, "is redriven")


@command.command()
@common_options
@yes_option
@job_id_argument
@click.pass_obj
def delete(settings: Settings, job_id: str, yes: bool) -> None:
    """Remove a job and every trace of it; a handler at work is told to stop."""
    run(delete_job(settings, job_id, yes=yes))


async def delete_job(settings: Settings, job_id: str, *, yes: bool, only_dead: bool = False) -> None:
    """Deletes one job, once somebody has said yes. With `only_dead` one that is no dead letter is refused."""
    async with connected(settings) as rota:
        record = (await read(rota, job_id)).record
        if only_dead:
            check_dead(record, "delete")
        confirm(f"This deletes 1 job: {describe(record)}.", yes=yes)
        await rota.job(str(record.ref)).delete()
    _report(settings, record, {"state": None, "was": record.state.value}, "is deleted")


def describe(record: JobRecord) -> str:
    """A job in a few words, for a question about it."""
    return f"{record.ref} ({record.task}, {record.state.value})"


def _report(settings: Settings, record: JobRecord, outcome: dict[str, Any], said: str) -> None:
    if settings.json:
        output.document({"id": record.ref.full_id, "queue": record.ref.queue, "run": record.ref.run, **outcome})
    else:
        output.text(f"{record.ref.full_id} {said}")


# --- watching ----------------------------------------------------------------------------------------------------


@command.command()
@common_options
@job_id_argument
@click.pass_obj
def watch(settings: Settings, job_id: str) -> int:
    """Watch a job until it ends; exit code 0 if it completed, else 1. With --json: a line for every change."""
    from rota.cli.watching import watch_job

    return run(watch_job(settings, job_id))


@command.command()
@common_options
@click.option("--follow", "-f", is_flag=True, help="Go on until the job ends.")
@job_id_argument
@click.pass_obj
def logs(settings: Settings, job_id: str, follow: bool) -> None:
    """Print what a job's handler logged. With --json: a line for every line."""
    from rota.cli.watching import print_log

    run(print_log(settings, job_id, follow=follow))
