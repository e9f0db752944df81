"""Explains the state of a job in one sentence."""

from __future__ import annotations

from rota.core.job_record import JobRecord, Obstacle
from rota.core.state_transitions import JobState


def explain(
    record: JobRecord,
    now: int,
    *,
    is_paused: bool = False,
    has_workers: bool = True,
    handled_by: str = "",
    embedded: str = "",
) -> str:
    """Returns one sentence: the state, its reason, and what happens next.

    `embedded` is the folder of the embedded server, if the job is stored there.
    """
    sentence = _explain(record, now, is_paused=is_paused, has_workers=has_workers, handled_by=handled_by)
    if embedded and not has_workers and not is_paused and not record.state.is_finished:
        sentence += f"; no server is configured, so it is in the embedded server in {embedded}: set ROTA_URL to another"
    return f"{sentence} (part of workflow {record.options.workflow})" if record.options.workflow else sentence


def _explain(record: JobRecord, now: int, *, is_paused: bool, has_workers: bool, handled_by: str) -> str:
    match record.state:
        case JobState.SCHEDULED:
            wait = format_duration((record.due_at or now) - now)
            if record.counts.failures and record.error is not None:
                why = (
                    f"attempt {record.counts.attempt} failed ({record.error.type}: {_first_line(record.error.message)})"
                )
                count = f"failure {record.counts.failures} of {record.options.attempts}"
                return f"scheduled: {why}; {count}, next attempt in {wait}"
            if (record.due_at or now) <= now and (is_paused or not has_workers):
                overdue = format_duration(now - (record.due_at or now))
                return f"scheduled: due for {overdue}, but {_why_not_claimed(record, is_paused)}"
            return f"scheduled: starts in {wait}"
        case JobState.BLOCKED:
            return f"blocked: {_explain_obstacle(record.obstacle, now, record.options.workflow)}"
        case JobState.PENDING:
            waited = format_duration(now - (record.due_at or now))
            if is_paused or not has_workers:
                return f"pending for {waited}: {_why_not_claimed(record, is_paused)}"
            return f"pending for {waited}: may start as soon as a worker has a free slot"
        case JobState.PROCESSING:
            progress = f", {record.progress.percent} % done" if record.progress else ""
            running = format_duration(now - (record.claimed_at or now))
            if record.lease_until is not None and record.lease_until <= now:
                return f"processing: {_explain_lost_worker(record, now, has_workers)}"
            return f"processing: attempt {record.counts.attempt} on worker {record.worker} for {running}{progress}"
        case JobState.COMPLETED:
            took = format_duration((record.ended_at or now) - (record.claimed_at or now))
            ago = format_duration(now - (record.ended_at or now))
            return f"completed: attempt {record.counts.attempt} succeeded after {took}, {ago} ago"
        case JobState.FAILED:
            error = record.error
            why = f"{error.type}: {_first_line(error.message)}" if error else record.reason or "unknown"
            handled = f"; its failure handler is job {handled_by}" if handled_by else ""
            return f"failed: {why} (attempt {record.counts.attempt}); a dead letter, redrive it to try again{handled}"
        case JobState.CANCELLED:
            return f"cancelled {format_duration(now - (record.ended_at or now))} ago: {record.reason or 'by request'}"


def _explain_lost_worker(record: JobRecord, now: int, has_workers: bool) -> str:
    """The lease has ended: the worker died, or cannot reach the server."""
    silent = format_duration(now - (record.lease_until or now))
    lost = f"worker {record.worker} sends no heartbeats, its lease ended {silent} ago"
    recovery = (
        "record the job as failed, because it may run only once" if record.options.at_most_once else "run it again"
    )
    if has_workers:
        return f"{lost}; another worker will {recovery} within seconds"
    missing = f"no other worker serves queue {record.ref.queue}"
    return f"{lost}, and {missing}: start one, and it will {recovery} after about 5 s"


def format_count(count: int, noun: str) -> str:
    """Returns a number with its noun: “1 job”, “2,000 jobs”."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def format_duration(ms: int) -> str:
    """Returns a duration for display: 250 ms, 4.2 s, 3 min 5 s, 2 h 10 min, 5 d 3 h."""
    ms = max(0, ms)
    if ms < 1000:
        return f"{ms} ms"
    seconds = ms / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min"
    return f"{hours // 24} d {hours % 24} h"


def _explain_obstacle(obstacle: Obstacle | None, now: int, workflow: str) -> str:
    if obstacle is None:
        return "waits for another job"
    if obstacle.kind == "task_paused":
        return f"task {obstacle.task} is paused; resume it and the job starts"
    first = obstacle.jobs[0]
    if obstacle.kind == "same_id":
        return f"waits for {first}, the run of its id that is still processing"
    if obstacle.kind == "lock":
        if obstacle.since is None:
            return f"lock {obstacle.lock} goes to {first} first, which is about to start"
        return f"lock {obstacle.lock} is held by {first} for {format_duration(now - obstacle.since)}"
    others = obstacle.count - len(obstacle.jobs)
    named = ", ".join(_parent_name(name, workflow) for name in obstacle.jobs)
    return f"waits for {named}" + (f" and {others:,} more" if others else "")


def _parent_name(name: str, workflow: str) -> str:
    """Returns the name of a parent job; a description for parents that are no jobs, whose queue is "~"."""
    queue, _, rest = name.partition(":")
    if queue != "~":
        return name
    step = rest.removeprefix(workflow).removeprefix(".")
    return f"all items of step {step}" if step else "its workflow to start: as many as are allowed are running already"


def _why_not_claimed(record: JobRecord, is_paused: bool) -> str:
    if is_paused:
        return f"queue {record.ref.queue} is paused; resume it and the job starts"
    return f"no worker serves queue {record.ref.queue}; start one"


def _first_line(text: str) -> str:
    return text.partition("\n")[0][:200]
