"""What a program gets: records as plain values, under names that stay as they are. Times are ISO 8601, states words."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from rota.core import shapes
from rota.core.job import JobRecord
from rota.core.picture import outcome_of
from rota.core.shapes import moment
from rota.core.workflow import Flow, Step
from rota.events import Event
from rota.schedules import ScheduleInfo
from rota.store.views import LogLine, QueueInfo, WorkerInfo


def job_shape(record: JobRecord) -> dict[str, Any]:
    """A run. `result` is there once it has completed and was read in full."""
    return {
        "id": record.ref.full_id,
        "queue": record.ref.queue,
        "run": record.ref.run,
        "task": record.task,
        "state": record.state.value,
        "arguments": value_of(record.arguments),
        "options": msgspec.to_builtins(record.options),
        "counts": msgspec.to_builtins(record.counts),
        "enqueued_at": moment(record.enqueued_at or None),
        "due_at": moment(record.due_at),
        "claimed_at": moment(record.claimed_at),
        "lease_until": moment(record.lease_until),
        "ended_at": moment(record.ended_at),
        "worker": record.worker or None,
        "reason": record.reason or None,
        "progress": shapes.progress_shape(record.progress) if record.progress else None,
        "error": msgspec.to_builtins(record.error) if record.error else None,
        "result": value_of(record.result) if record.result else None,
    }


def workflow_shape(flow: Flow) -> dict[str, Any]:
    """A workflow with its steps, in the order in which they were added."""
    return {
        **shapes.workflow_shape(flow),
        "on_failure": flow.on_failure,
        "resume": flow.resume or None,
        "limit": flow.limit or None,
        "steps": [_step_shape(flow, place, step) for place, step in enumerate(flow.steps)],
    }


def _step_shape(flow: Flow, place: int, step: Step) -> dict[str, Any]:
    undo = flow.undos.get(place)
    return {
        "name": step.name,
        "task": step.task,
        "job": None if step.items is not None else f"{step.queue}:{step.id}",
        "after": list(step.after),
        "state": outcome_of(flow, place),
        "attempts": flow.stand(place).attempts,
        "items": flow.lengths.get(place) if step.items is not None else None,
        "undo": None if step.undo is None else (undo.outcome if undo is not None else "none"),
    }


def log_shape(line: LogLine) -> dict[str, Any]:
    """A line that a handler logged."""
    return {"at": moment(line.at), "level": line.level, "text": line.text}


def queue_shape(info: QueueInfo) -> dict[str, Any]:
    """How a queue stands."""
    return msgspec.to_builtins(info)


def worker_shape(worker: WorkerInfo) -> dict[str, Any]:
    """A worker: what it said of itself, and when it was last heard of."""
    started_at = worker.info.get("started_at")
    return {
        **worker.info,
        "id": worker.id,
        "status": worker.status,
        "started_at": moment(started_at),
        "last_seen": moment(worker.last_seen),
        "silent_ms": worker.silent_ms,
    }


def schedule_shape(info: ScheduleInfo) -> dict[str, Any]:
    """A schedule. Times have the offset of its zone."""
    return {
        "schedule": info.id,
        "name": info.name,
        "queue": info.queue,
        "rule": msgspec.to_builtins(info.rule),
        "words": info.words,
        "task": info.task,
        "args": list(info.args),
        "kwargs": info.kwargs,
        **info.standing(),
    }


def event_shape(event: Event) -> dict[str, Any]:
    """One event. `id` is what `--after` takes."""
    return {"id": event.id, "queue": event.queue, "verb": event.verb, "runs": list(event.runs), "at": moment(event.at)}


def value_of(encoded: bytes) -> Any:
    """Stored JSON as a value; as text where it cannot be read, so that nothing is hidden."""
    try:
        return msgspec.json.decode(encoded)
    except ValueError:
        return encoded.decode(errors="replace")


def compact(value: Any) -> str:
    """A value in one line, as a person reads it."""
    return json.dumps(value, ensure_ascii=False)
