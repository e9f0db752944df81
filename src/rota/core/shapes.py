"""Records as plain values, as the command line and the HTTP API both say them. Times are ISO 8601 in UTC."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from rota.core.job import HistoryEntry, Progress
from rota.core.workflow import Flow, WorkflowInfo


def moment(ms: int | None) -> str | None:
    """A time of the store's, where there is one."""
    return None if ms is None else exact_moment(ms)


def exact_moment(ms: int) -> str:
    """A time of the store's."""
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def progress_shape(progress: Progress) -> dict[str, Any]:
    """How far an attempt has come."""
    return {
        "percent": progress.percent,
        "done": progress.done,
        "total": progress.total,
        "note": progress.note,
        "per_second": progress.per_second,
        "seconds_left": progress.seconds_left,
        "at": exact_moment(progress.at),
    }


def history_shape(entry: HistoryEntry) -> dict[str, Any]:
    """A change of state."""
    return {
        "at": exact_moment(entry.at),
        "verb": entry.verb,
        "state": entry.state or None,
        "worker": entry.worker or None,
        "attempt": entry.attempt or None,
        "note": entry.note or None,
    }


def workflow_shape(flow: Flow | WorkflowInfo) -> dict[str, Any]:
    """How a workflow stands, in a line."""
    return {
        "id": flow.id,
        "name": flow.name,
        "state": flow.state,
        "done": flow.done,
        "total": len(flow.steps) if isinstance(flow, Flow) else flow.total,
        "created_at": exact_moment(flow.created_at),
        "ended_at": moment(flow.ended_at),
        "cause": flow.cause or None,
    }
