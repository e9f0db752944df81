"""Serializes records as JSON for the option `--json`.

Field names are stable, times are ISO 8601, states are lower case.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from rota.client.events import Event
from rota.client.schedules import ScheduleInfo
from rota.core.encrypted_values import readable
from rota.core.format_iso_time import iso_time_or_none
from rota.core.health.finding import Finding
from rota.core.job_record import JobRecord
from rota.core.json_for_cli_and_http import progress_json, workflow_summary_json
from rota.core.workflow_record_and_decisions import StepRecord, WorkflowRecord
from rota.core.workflow_text import outcome_of
from rota.store.reads import LogLine, PausedTask, QueueInfo, WorkerInfo


def finding_json(finding: Finding) -> dict[str, Any]:
    """Returns an unusual condition."""
    return {**msgspec.to_builtins(finding), "text": finding.text}


def paused_task_json(one: PausedTask) -> dict[str, Any]:
    """Returns a task that is paused in a queue."""
    pause = {"by": one.pause.by, "at": iso_time_or_none(one.pause.at), "note": one.pause.note}
    return {"task": one.task, "queue": one.queue, **pause, "waiting": one.waiting, "is_resuming": one.is_resuming}


def job_json(record: JobRecord) -> dict[str, Any]:
    """Returns a run. `result` is set if it has completed and its record was read in full."""
    return {
        "id": record.ref.full_id,
        "queue": record.ref.queue,
        "run": record.ref.run,
        "task": record.task,
        "state": record.state.value,
        "arguments": value_of(record.arguments),
        "options": msgspec.to_builtins(record.options),
        "counts": msgspec.to_builtins(record.counts),
        "enqueued_at": iso_time_or_none(record.enqueued_at or None),
        "due_at": iso_time_or_none(record.due_at),
        "claimed_at": iso_time_or_none(record.claimed_at),
        "lease_until": iso_time_or_none(record.lease_until),
        "ended_at": iso_time_or_none(record.ended_at),
        "worker": record.worker or None,
        "reason": record.reason or None,
        "progress": progress_json(record.progress) if record.progress else None,
        "error": msgspec.to_builtins(record.error) if record.error else None,
        "result": value_of(record.result) if record.result else None,
    }


def workflow_json(workflow: WorkflowRecord) -> dict[str, Any]:
    """Returns a workflow with its steps, in the order in which they were added."""
    return {
        **workflow_summary_json(workflow),
        "on_failure": workflow.on_failure,
        "resume": workflow.resume or None,
        "limit": workflow.limit or None,
        "steps": [_step_json(workflow, index, step) for index, step in enumerate(workflow.steps)],
    }


def _step_json(workflow: WorkflowRecord, index: int, step: StepRecord) -> dict[str, Any]:
    undo = workflow.undo_states.get(index)
    return {
        "name": step.name,
        "task": step.task,
        "job": None if step.items is not None else f"{step.queue}:{step.id}",
        "after": list(step.after),
        "state": outcome_of(workflow, index),
        "attempts": workflow.step_state(index).attempts,
        "items": workflow.lengths.get(index) if step.items is not None else None,
        "undo": None if step.undo is None else (undo.outcome if undo is not None else "none"),
    }


def log_json(line: LogLine) -> dict[str, Any]:
    """Returns a log line."""
    return {"at": iso_time_or_none(line.at), "level": line.level, "text": line.text}


def queue_json(info: QueueInfo) -> dict[str, Any]:
    """Returns a queue with its counts."""
    return msgspec.to_builtins(info)


def worker_json(worker: WorkerInfo) -> dict[str, Any]:
    """Returns a worker: its last registration, and its age."""
    started_at = worker.info.get("started_at")
    return {
        **worker.info,
        "id": worker.id,
        "status": worker.status,
        "started_at": iso_time_or_none(started_at),
        "last_seen": iso_time_or_none(worker.last_seen),
        "silent_ms": worker.silent_ms,
    }


def schedule_json(info: ScheduleInfo) -> dict[str, Any]:
    """Returns a schedule. Times have the offset of its zone."""
    return {
        "schedule": info.id,
        "name": info.name,
        "queue": info.queue,
        "rule": msgspec.to_builtins(info.rule),
        "words": info.words,
        "task": info.task,
        "args": list(info.args),
        "kwargs": info.kwargs,
        **info.serialize(),
    }


def event_json(event: Event) -> dict[str, Any]:
    """Returns an event. `id` is the value for `--after`."""
    return {
        "id": event.id,
        "queue": event.queue,
        "verb": event.verb,
        "runs": list(event.runs),
        "at": iso_time_or_none(event.at),
    }


def value_of(encoded: bytes) -> Any:
    """Decodes stored JSON. Returns its text if it cannot be decoded."""
    try:
        return msgspec.json.decode(readable(encoded))
    except ValueError:
        return encoded.decode(errors="replace")


def compact(value: Any) -> str:
    """Returns a value as one line of JSON."""
    return json.dumps(value, ensure_ascii=False)
