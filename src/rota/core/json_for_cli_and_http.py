"""Serializes progress, history and workflows to the JSON values that the command line and the HTTP API share."""

from __future__ import annotations

from typing import Any

from rota.core.format_iso_time import iso_time, iso_time_or_none
from rota.core.job_record import HistoryEntry, Progress
from rota.core.workflow_record_and_decisions import WorkflowInfo, WorkflowRecord


def progress_json(progress: Progress) -> dict[str, Any]:
    """Serializes the progress of an attempt."""
    return {
        "percent": progress.percent,
        "done": progress.done,
        "total": progress.total,
        "note": progress.note,
        "per_second": progress.per_second,
        "seconds_left": progress.seconds_left,
        "at": iso_time(progress.at),
    }


def history_json(entry: HistoryEntry) -> dict[str, Any]:
    """Serializes one entry of a job's history."""
    return {
        "at": iso_time(entry.at),
        "verb": entry.verb,
        "state": entry.state or None,
        "worker": entry.worker or None,
        "attempt": entry.attempt or None,
        "note": entry.note or None,
    }


def workflow_summary_json(workflow: WorkflowRecord | WorkflowInfo) -> dict[str, Any]:
    """Serializes a workflow without its steps."""
    return {
        "id": workflow.id,
        "name": workflow.name,
        "state": workflow.state,
        "done": workflow.done,
        "total": len(workflow.steps) if isinstance(workflow, WorkflowRecord) else workflow.total,
        "created_at": iso_time(workflow.created_at),
        "ended_at": iso_time_or_none(workflow.ended_at),
        "cause": workflow.cause or None,
    }
