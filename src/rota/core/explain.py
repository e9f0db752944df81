"""Says in a sentence why a job is where it is."""

from __future__ import annotations

from rota.core.job import JobRecord, Obstacle
from rota.core.states import JobState


def explain(
    record: JobRecord, now: int, *, is_paused: bool = False, has_workers: bool = True, handled_by: str = ""
) -> str:
    """One sentence for a person: the state, why, and what happens next."""
    said = _explain(record, now, is_paused=is_paused, has_workers=has_workers, handled_by=handled_by)
    return f"{said} (part of workflow {record.options.workflow})" if record.options.workflow else said


def _explain(record: JobRecord, now: int, *, is_paused: bool, has_workers: bool, handled_by: str) -> str:
    match record.state:
        case JobState.SCHEDULED:
            wait = span((record.due_at or now) - now)
            if record.counts.failures and record.error is not None:
                why = (
                    f"attempt {record.counts.attempt} failed ({record.error.type}: {_first_line(record.error.message)})"
                )
                count = f"failure {record.counts.failures} of {record.options.attempts}"
                return f"scheduled: {why}; {count}, next attempt in {wait}"
            if (record.due_at or now) <= now and (is_paused or not has_workers):
                return f"scheduled: due for {span(now - (record.due_at or now))}, but {_obstacle(record, is_paused)}"
            return f"scheduled: starts in {wait}"
        case JobState.BLOCKED:
            return f"blocked: {_block(record.obstacle, now, record.options.workflow)}"
        case JobState.PENDING:
            waited = span(now - (record.due_at or now))
            if is_paused or not has_workers:
                return f"pending for {waited}: {_obstacle(record, is_paused)}"
            return f"pending for {waited}: may start as soon as a worker has a free slot"
        case JobState.PROCESSING:
            progress = f", {record.progress.percent} % done" if record.progress else ""
            running = span(now - (record.claimed_at or now))
            return f"processing: attempt {record.counts.attempt} on worker {record.worker} for {running}{progress}"
        case JobState.COMPLETED:
            took = span((record.ended_at or now) - (record.claimed_at or now))
            ago = span(now - (record.ended_at or now))
            return f"completed: attempt {record.counts.attempt} succeeded after {took}, {ago} ago"
        case JobState.FAILED:
            error = record.error
            why = f"{error.type}: {_first_line(error.message)}" if error else record.reason or "unknown"
            handled = f"; its failure handler is job {handled_by}" if handled_by else ""
            return f"failed: {why} (attempt {record.counts.attempt}); a dead letter, redrive it to try again{handled}"
        case JobState.CANCELLED:
            return f"cancelled {span(now - (record.ended_at or now))} ago: {record.reason or 'by request'}"


def span(ms: int) -> str:
    """A duration as a person says it: 250 ms, 4.2 s, 3 min 5 s, 2 h 10 min, 5 d 3 h."""
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


def _block(obstacle: Obstacle | None, now: int, workflow: str) -> str:
    if obstacle is None:
        return "waits for another job"
    first = obstacle.jobs[0]
    if obstacle.kind == "same_id":
        return f"waits for {first}, the run of its id that is still at work"
    if obstacle.kind == "lock":
        if obstacle.since is None:
            return f"lock {obstacle.lock} is wanted by {first} first, which is about to start"
        return f"lock {obstacle.lock} is held by {first} for {span(now - obstacle.since)}"
    others = obstacle.count - len(obstacle.jobs)
    named = ", ".join(_called(name, workflow) for name in obstacle.jobs)
    return f"waits for {named}" + (f" and {others:,} more" if others else "")


def _called(name: str, workflow: str) -> str:
    """What a run comes after, for a person: a job by its name; what has no job of its own by what it is."""
    queue, _, rest = name.partition(":")
    if queue != "~":
        return name
    place = rest.removeprefix(workflow).removeprefix(".")
    return f"all items of step {place}" if place else "its workflow to get a place: as many as may advance already"


def _obstacle(record: JobRecord, is_paused: bool) -> str:
    if is_paused:
        return f"queue {record.ref.queue} is paused; resume it and the job starts"
    return f"no worker serves queue {record.ref.queue}; start one"


def _first_line(text: str) -> str:
    return text.partition("\n")[0][:200]
