"""`rota job`: shows, lists, watches, cancels, redrives and deletes jobs, and prints their logs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from rota.cli import output
from rota.cli.audit import audit
from rota.cli.common_options import Settings, common_options
from rota.cli.complete_names_from_store import complete_job_id, complete_queue, complete_task
from rota.cli.confirmation import confirm
from rota.cli.connection import connected, run
from rota.core.did_you_mean import did_you_mean

if TYPE_CHECKING:
    from rota.client.rota import Rota
    from rota.core.job_record import HistoryEntry, JobRecord
    from rota.store.reads import Page, Snapshot

#: All states in the order of a listing: running jobs first, finished ones last.
STATES: Final = ("processing", "pending", "scheduled", "blocked", "failed", "completed", "cancelled")
#: Approximate number of records that one page over all states reads.
EXAMINED: Final = 1_000

job_id_argument = click.argument("job_id", metavar="ID", shell_complete=complete_job_id)
yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")


@click.group()
def command() -> None:
    """Show, list, cancel, redrive and delete jobs.

    An ID is queue:id, queue:id@run for one run, or the bare id of a job in the queue “default”.
    """


@command.command()
@common_options
@click.option("--raw", is_flag=True, help="Show the stored data, key by key.")
@job_id_argument
@click.pass_obj
def show(settings: Settings, job_id: str, raw: bool) -> None:
    """Show a job: its state and the reason, counts, times, error, progress, history and result."""
    run(_show_raw(settings, job_id) if raw else show_job(settings, job_id))


async def show_job(settings: Settings, job_id: str, *, only_dead: bool = False) -> None:
    """Prints one job. With `only_dead`, refuses a job that is not a dead letter."""
    from rota.cli.to_json import job_json
    from rota.client.job import full_history
    from rota.core.json_for_cli_and_http import history_json

    async with connected(settings) as rota:
        snapshot = await read(rota, job_id)
        record = snapshot.record
        if only_dead:
            check_is_dead_letter(record, "show")
        explanation = await rota.job(str(record.ref)).explain()
    history = full_history(snapshot)
    if settings.json:
        output.document(
            {**job_json(record), "explanation": explanation, "history": [history_json(entry) for entry in history]}
        )
        return
    output.text(f"{record.ref.full_id}  {record.task}")
    output.text(explanation)
    output.text()
    output.fields(_facts(record, snapshot.at))
    output.text()
    output.table(_history_table(history, snapshot.at))


async def _show_raw(settings: Settings, job_id: str) -> None:
    from rota.client.session import session_of

    async with connected(settings) as rota:
        record = (await read(rota, job_id)).record
        stored = await session_of(rota).views.raw(record.ref)
    if settings.json:
        output.document(stored)
    else:
        output.fields((key, str(value)) for key, value in stored.items())


async def read(rota: Rota, job_id: str) -> Snapshot:
    """Returns the current snapshot of a run. Raises JobNotFound."""
    from rota.client.session import session_of
    from rota.core.ids import JobRef
    from rota.errors import JobNotFound

    ref = JobRef.parse(job_id)
    snapshot = (await session_of(rota).views.read_runs(ref.queue, [ref]))[0]
    if snapshot is None:
        raise JobNotFound(str(ref))
    return snapshot


def check_is_dead_letter(record: JobRecord, verb: str) -> None:
    """Refuses a job that is not a dead letter. Raises WrongState."""
    from rota.errors import WrongState

    if record.state != "failed":
        raise WrongState(record.ref.full_id, record.state.value, verb, f"it is not a dead letter: use rota job {verb}")


def _facts(record: JobRecord, now: int) -> list[tuple[str, str]]:
    from rota.cli.to_json import compact, value_of

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
    """Returns the progress of a job as `42 % (21 of 50), sending, 3.1/s, 9.4 s left`."""
    from rota.core.explain import format_duration

    progress = record.progress
    if progress is None:
        return ""
    parts = [f"{progress.percent} % ({progress.done:g} of {progress.total:g})"]
    if progress.note:
        parts.append(progress.note)
    if progress.per_second is not None and record.state == "processing":
        parts.append(f"{progress.per_second:.3g}/s")
    if progress.seconds_left is not None and record.state == "processing":
        parts.append(f"{format_duration(round(progress.seconds_left * 1000))} left")
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


@command.command(name="list")
@common_options
@click.option("--state", type=click.Choice(STATES, case_sensitive=False), help="Only jobs in this state.")
@click.option("--queue", help="Only jobs of this queue.", shell_complete=complete_queue)
@click.option("--task", help="Only jobs of this task.", shell_complete=complete_task)
@click.option("--tag", help="Only jobs with this tag.")
@click.option("--text", help="Only jobs with this text in their id, task, arguments, error or worker.")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True)
@click.option("--cursor", help="Cursor printed by the previous page.")
@click.pass_obj
def list_(
    settings: Settings, /, state: str | None, limit: int, cursor: str | None, queue: str | None, **filters: str | None
) -> None:
    """List jobs, page by page.

    A page with filters reads a bounded number of records, and prints how many: it may be short or empty and still
    have a next page.
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
    from rota.client.session import session_of

    async with connected(settings) as rota:
        await check_queue(rota, queue)
        page = await _page(rota, states, limit, cursor, queue=queue, **filters)
        now = await session_of(rota).views.now()
    print_page(settings, page, now)


async def _page(rota: Rota, states: tuple[str, ...], limit: int, cursor: str | None, **filters: str | None) -> Page:
    """Returns a page over several states, one after the other. Its cursor contains the state in which it ended."""
    from rota.errors import InvalidOption
    from rota.store.reads import Page

    first, _, inner = (cursor or states[0]).partition("~")
    if first not in states or (cursor and "~" not in cursor):
        raise InvalidOption("cursor", f"{cursor!r} is not a cursor of this listing")
    found: list[JobRecord] = []
    examined = 0
    left = states[states.index(first) :]
    for index, state in enumerate(left):
        wanted: dict[str, Any] = {"cursor": inner or None, "limit": limit - len(found), **filters}
        page = await rota.jobs(state, **wanted)
        found += page.jobs
        examined += page.examined
        if page.cursor is not None:
            return Page(found, f"{state}~{page.cursor}", examined)
        inner = ""
        if index + 1 < len(left) and (len(found) >= limit or examined >= EXAMINED):
            return Page(found, f"{left[index + 1]}~", examined)
    return Page(found, None, examined)


async def check_queue(rota: Rota, queue: str | None) -> None:
    """Refuses a queue that was never used: its name is probably misspelt. Raises QueueNotFound."""
    from rota.client.session import session_of
    from rota.core.ids import checked_queue

    if queue is None:
        return
    known = await session_of(rota).views.queues()
    if checked_queue(queue).removesuffix("-fail") not in known:
        hint = did_you_mean(queue, known)
        raise QueueNotFound(f"there is no queue {queue!r}{hint}; queues: {', '.join(known) or 'none yet'}")


class QueueNotFound(click.ClickException):
    """The queue was never used."""

    exit_code = 3


def print_page(settings: Settings, page: Page, now: int) -> None:
    """Prints a page of jobs, the cursor of the next page, and the number of records read."""
    from rota.cli.to_json import job_json
    from rota.core.explain import format_count

    if settings.json:
        output.document(
            {"jobs": [job_json(job) for job in page.jobs], "cursor": page.cursor, "examined": page.examined}
        )
        return
    if page.jobs:
        rows = [
            (job.ref.full_id, job.task, job.state.value, str(job.counts.attempt), _time_of(job, now), _remark(job))
            for job in page.jobs
        ]
        output.table(output.Table(("id", "task", "state", "attempt", "when", "remark"), rows))
    output.note(
        f"{format_count(len(page.jobs), 'job')}, {page.examined} examined"
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


@command.command()
@common_options
@click.option("--reason", default="", help="Stored with the job.")
@click.option("--only-waiting", is_flag=True, help="Do not cancel a job that is being processed.")
@yes_option
@job_id_argument
@click.pass_obj
def cancel(settings: Settings, job_id: str, reason: str, only_waiting: bool, yes: bool) -> int:
    """Cancel a job. A waiting job never runs; a running handler is stopped."""
    return run(_cancel(settings, job_id, reason, only_waiting=only_waiting, yes=yes))


async def _cancel(settings: Settings, job_id: str, reason: str, *, only_waiting: bool, yes: bool) -> int:
    from rota.core.state_transitions import CancelOutcome
    from rota.errors import WrongState

    async with connected(settings) as rota:
        record = (await read(rota, job_id)).record
        if record.state.is_finished:
            raise WrongState(record.ref.full_id, record.state.value, "cancel", "it has ended")
        confirm(f"This cancels 1 job: {describe(record)}.", yes=yes)
        outcome = await rota.job(str(record.ref)).cancel(reason, only_waiting=only_waiting)
        is_left_running = outcome is CancelOutcome.LEFT_RUNNING
        if not is_left_running:
            await audit(rota, "cancel", f"job {record.ref}", state="CANCELLED", reason=reason or None)
    if is_left_running:
        message = "is being processed and was not cancelled"
    elif outcome is CancelOutcome.STOPPING:
        message = "is cancelled; its handler is being stopped"
    else:
        message = "is cancelled"
    state = "processing" if is_left_running else "cancelled"
    _report(settings, record, {"state": state, "was": record.state.value}, message)
    return 1 if is_left_running else 0


@command.command()
@common_options
@job_id_argument
@click.pass_obj
def redrive(settings: Settings, job_id: str) -> None:
    """Redrive a dead letter, with its counts reset."""
    run(redrive_job(settings, job_id))


async def redrive_job(settings: Settings, job_id: str) -> None:
    """Redrives one dead letter, and prints the outcome."""
    async with connected(settings) as rota:
        record = (await read(rota, job_id)).record
        await rota.job(str(record.ref)).redrive()
        await audit(rota, "redrive", f"job {record.ref}")
    _report(settings, record, {"state": "pending", "was": "failed"}, "is redriven")


@command.command()
@common_options
@yes_option
@job_id_argument
@click.pass_obj
def delete(settings: Settings, job_id: str, yes: bool) -> None:
    """Delete a job and everything stored with it. A running handler is stopped."""
    run(delete_job(settings, job_id, yes=yes))


async def delete_job(settings: Settings, job_id: str, *, yes: bool, only_dead: bool = False) -> None:
    """Deletes one job after confirmation. With `only_dead`, refuses a job that is not a dead letter."""
    async with connected(settings) as rota:
        record = (await read(rota, job_id)).record
        if only_dead:
            check_is_dead_letter(record, "delete")
        confirm(f"This deletes 1 job: {describe(record)}.", yes=yes)
        await rota.job(str(record.ref)).delete()
        await audit(rota, "delete", f"job {record.ref}")
    _report(settings, record, {"state": None, "was": record.state.value}, "is deleted")


def describe(record: JobRecord) -> str:
    """Returns a short description of a job."""
    return f"{record.ref} ({record.task}, {record.state.value})"


def _report(settings: Settings, record: JobRecord, outcome: dict[str, Any], message: str) -> None:
    if settings.json:
        output.document({"id": record.ref.full_id, "queue": record.ref.queue, "run": record.ref.run, **outcome})
    else:
        output.text(f"{record.ref.full_id} {message}")


@command.command()
@common_options
@job_id_argument
@click.pass_obj
def watch(settings: Settings, job_id: str) -> int:
    """Watch a job until it ends. The exit code is 0 if it completed, else 1. With --json: one line per change."""
    from rota.cli.job_follower import watch_job

    return run(watch_job(settings, job_id))


@command.command()
@common_options
@click.option("--follow", "-f", is_flag=True, help="Continue until the job ends.")
@job_id_argument
@click.pass_obj
def logs(settings: Settings, job_id: str, follow: bool) -> None:
    """Print the log of a job. With --json: one JSON document per line."""
    from rota.cli.job_follower import print_log

    run(print_log(settings, job_id, follow=follow))
