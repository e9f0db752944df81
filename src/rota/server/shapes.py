"""Records as the API shows them. Field by field as `schemas` declares; built by hand, as lists of them are long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import tzinfo
from typing import Any, Final

import msgspec

from rota.core.attempts import Attempt, attempts_of
from rota.core.history import Counted, Times
from rota.core.job import ErrorRecord, HistoryEntry, JobRecord, decode_run
from rota.core.picture import explain_flow
from rota.core.shapes import exact_moment, history_shape, moment, progress_shape, workflow_shape
from rota.core.states import JobState
from rota.core.workflow import OPEN, Flow, WorkflowInfo, compensations
from rota.relatives import Relative
from rota.schedules import ScheduleInfo
from rota.server.access import Identity
from rota.server.catalog import Catalog, KnownTask
from rota.server.leases import Held
from rota.server.masking import Mask
from rota.store.flows import place_of, undo_id
from rota.store.views import LockInfo, LogLine, QueueInfo, Snapshot, WorkerInfo
from rota.workflows import REDRIVABLE

#: Items of a step that did not succeed, of which so many are named.
BAD_ITEMS: Final = 20


class JobShapes:
    """Jobs, with what is hidden left out."""

    def __init__(self, mask: Mask, catalog: Catalog) -> None:
        self._mask = mask
        self._catalog = catalog

    def data(self, record: JobRecord) -> str:
        """Its arguments as JSON text."""
        return self._mask.text(record.arguments, positional=self._catalog.positional(record.task))

    def job(self, record: JobRecord) -> dict[str, Any]:
        """A job of a list."""
        options, counts, progress = record.options, record.counts, record.progress
        return {
            "jobId": record.ref.full_id,
            "run": record.ref.run,
            "status": record.state.value.upper(),
            "type": record.task,
            "queue": record.ref.queue,
            "data": self.data(record),
            "retries": str(counts.failures),
            "progress": str(_percent(record)),
            "created_at": str(record.enqueued_at),
            "priority": options.priority,
            "lock": options.lock or None,
            "tags": options.tags,
            "dependencies": [name.lstrip("?") for name in options.after],
            "workflow": options.workflow or None,
            "attempt": counts.attempt,
            "failures": counts.failures,
            "stalls": counts.stalls,
            "snoozes": counts.snoozes,
            "handbacks": counts.handbacks,
            "enqueued_at": exact_moment(record.enqueued_at),
            "due_at": moment(record.due_at),
            "claimed_at": moment(record.claimed_at),
            "ended_at": moment(record.ended_at),
            "lease_until": moment(record.lease_until),
            "worker": record.worker or None,
            "reason": record.reason or None,
            "error": _error(record.error) if record.error else None,
            "progress_detail": progress_shape(progress) if progress else None,
        }

    def detail(self, snapshot: Snapshot, explanation: str, lock: LockInfo | None, flow: Flow | None) -> dict[str, Any]:
        """A job of its own page, with its lock and its workflow as they are now."""
        record = snapshot.record
        options = record.options
        meta = self._mask.value(options.meta)
        expires_at = options.expires_at
        if options.expires_ms is not None:
            expires_at = record.enqueued_at + options.expires_ms
        return {
            **self.job(record),
            "error": self.error(record.error),
            "meta": meta,
            "meta_text": msgspec.json.encode(meta).decode(),
            "run_number": decode_run(record.ref.run or ""),
            "attempts": [attempt(one) for one in attempts_of(record, snapshot.history)],
            "lock_detail": _job_lock(record, lock),
            "step": _step_of(record, flow) if flow is not None else None,
            "handled_by": next((e.note for e in reversed(snapshot.history) if e.verb == "alert"), "") or None,
            "trace_id": options.trace_id or None,
            "limits": {
                "attempts": options.attempts,
                "timeout_ms": options.timeout_ms,
                "progress_timeout_ms": options.progress_timeout_ms,
                "max_stalls": options.max_stalls,
                "at_most_once": options.at_most_once,
                "expires_at": moment(expires_at),
            },
            "result": self.result_text(record),
            "obstacle": _obstacle(record),
            "explanation": explanation,
            "actions": actions_of(record, flow),
            "now": exact_moment(snapshot.at),
        }

    def result_text(self, record: JobRecord) -> str | None:
        """What the handler returned, as JSON text."""
        if record.state is not JobState.COMPLETED:
            return None
        return self._mask.text(record.result) if record.result else "null"

    def error(self, error: ErrorRecord | None) -> dict[str, Any] | None:
        """An error with all that was kept of it."""
        if error is None:
            return None
        attributes = self._mask.value(error.attributes)
        text = msgspec.json.encode(attributes).decode()
        return {**_error(error), "traceback": error.traceback, "attributes": attributes, "attributes_text": text}

    def schedule(self, info: ScheduleInfo, zone: tzinfo | None = None) -> dict[str, Any]:
        """A schedule, with its times in some zone."""
        arguments: Any = {**info.kwargs, "*": info.args} if info.args and info.kwargs else info.kwargs or info.args
        encoded = msgspec.json.encode(arguments)
        return {
            "id": info.id,
            "name": info.name,
            "queue": info.queue,
            "rule": msgspec.to_builtins(info.rule),
            "words": info.words,
            "type": info.task,
            "data": self._mask.text(encoded, positional=self._catalog.positional(info.task)),
            **info.standing(zone),
        }


def actions_of(record: JobRecord, flow: Flow | None = None) -> list[str]:
    """What the state of a job allows, and that of its workflow, where it has one that is known."""
    if record.state.is_waiting:
        return ["cancel", "update", "delete"]
    if record.state is JobState.PROCESSING:
        return ["cancel", "delete"]
    if record.state is not JobState.FAILED or (record.options.workflow and not _may_go_on(flow)):
        return ["delete"]
    return ["redrive", "update", "delete"]


def _may_go_on(flow: Flow | None) -> bool:
    return flow is not None and flow.state in REDRIVABLE


def attempt(one: Attempt) -> dict[str, Any]:
    """One execution of a job."""
    return {
        "attempt": one.number,
        "worker": one.worker,
        "started_at": exact_moment(one.started_at),
        "ended_at": moment(one.ended_at),
        "outcome": one.outcome,
        "note": one.note or None,
    }


def relative(one: Relative) -> dict[str, Any]:
    """A job that another comes after, or that waits for it."""
    record = one.record
    return {
        "jobId": one.ref.full_id,
        "run": one.ref.run,
        "status": record.state.value.upper() if record is not None else None,
        "type": record.task if record is not None else None,
        "may_fail": one.may_fail,
    }


def _job_lock(record: JobRecord, info: LockInfo | None) -> dict[str, Any] | None:
    if not record.options.lock or record.state.is_finished:
        return None
    if info is None:
        return {"name": record.options.lock, "holder": None, "since": None, "waiting": 0}
    return {"name": info.name, "holder": info.holder, "since": moment(info.since), "waiting": info.waiting}


def _step_of(record: JobRecord, flow: Flow) -> dict[str, Any] | None:
    place = place_of(flow, record.ref.id)
    if place is None:
        return None
    index, item, is_undo = place
    return {
        "workflow": flow.id,
        "name": flow.steps[index].name,
        "index": index,
        "item": item,
        "is_undo": is_undo,
    }


def log_line(line: LogLine) -> dict[str, Any]:
    """A line of a log."""
    return {"at": exact_moment(line.at), "level": line.level, "text": line.text}


def history_entry(entry: HistoryEntry) -> dict[str, Any]:
    """A change of state."""
    state = entry.state.upper() if entry.state else None
    return {**history_shape(entry), "state": state, "since": moment(entry.since or None)}


def stats(counts: Mapping[str, int]) -> dict[str, int]:
    """Jobs by state, every state named."""
    return {state.value.upper(): counts.get(state.value, 0) for state in JobState}


def queue(info: QueueInfo) -> dict[str, Any]:
    """How a queue stands."""
    totals = dict(info.totals)
    return {
        "name": info.name,
        "is_paused": info.is_paused,
        "stats": stats(info.counts),
        "totals": {
            "enqueued": totals["run"],
            **{name: totals[name] for name in ("completed", "failed", "cancelled", "redriven", "deleted")},
        },
        "oldest_pending_ms": info.oldest_pending_ms,
    }


def worker(found: WorkerInfo, identity: Identity, held: Sequence[Held], *, are_all: bool) -> dict[str, Any]:
    """A worker, and those of its jobs that the caller may see. It may hold more than these unless they `are_all`."""
    info = found.info
    queues = [name for name in info.get("queues", []) if identity.may_see(name)]
    slots = info.get("slots", 0)
    # What was claimed last may be ahead of a free slot.
    running = held[: slots or None]
    return {
        "id": found.id,
        "name": found.name,
        "status": found.status,
        "queue": ",".join(queues),
        "queues": queues,
        "last_seen": exact_moment(found.last_seen),
        "silent_ms": found.silent_ms,
        "state": info.get("state", ""),
        "host": info.get("host", ""),
        "pid": info.get("pid"),
        "slots": slots,
        "busy": len(running) if are_all else info.get("busy", 0),
        "finished": info.get("finished", 0),
        "running": [_running(one) for one in running if one.id and identity.may_see(one.lease.queue)],
        "cpu_seconds": info.get("cpu_seconds", 0.0),
        "rss_bytes": info.get("rss_bytes", 0),
        "started_at": moment(info.get("started_at")),
        "version": info.get("version", ""),
        "actions": ["drain"] if _may_be_drained(found, identity) else [],
    }


def _may_be_drained(found: WorkerInfo, identity: Identity) -> bool:
    """False where it leaves already, or serves queues that the caller may not see."""
    is_at_work = found.status == "ALIVE" and found.info.get("state") not in ("draining", "stopping", "stopped")
    return is_at_work and all(identity.may_see(queue) for queue in found.info.get("queues", []))


def _running(held: Held) -> dict[str, Any]:
    lease = held.lease
    return {
        "jobId": f"{lease.queue}:{held.id}",
        "run": lease.run,
        "type": held.task,
        "attempt": lease.attempt,
        "claimed_at": exact_moment(lease.claimed_at),
        "progress_detail": progress_shape(lease.progress) if lease.progress is not None else None,
    }


def lock(info: LockInfo) -> dict[str, Any]:
    """A lock."""
    return {
        "name": info.name,
        "queue": info.queue,
        "holder": info.holder,
        "since": moment(info.since),
        "waiting": info.waiting,
        "waiters": info.waiters,
    }


def task(known: KnownTask) -> dict[str, Any]:
    """A task."""
    options = known.task.options
    return {
        "name": known.task.name,
        "queue": known.task.queue,
        "doc": known.doc,
        "run_in": known.run_in,
        "json_schema": known.schema,
        "positional": known.positional,
        "index": known.task.index,
        "priority": options.priority,
        "attempts": options.attempts,
        "timeout_ms": options.timeout_ms,
        "max_stalls": options.max_stalls,
        "at_most_once": options.at_most_once,
    }


def workflow_info(flow: WorkflowInfo | Flow) -> dict[str, Any]:
    """How a workflow stands, in a line."""
    return {**workflow_shape(flow), "state": flow.state.upper()}


def workflow(flow: Flow, jobs: Mapping[str, Snapshot]) -> dict[str, Any]:
    """A workflow with its graph; `jobs` are those of its steps and compensations that are still kept, by full id."""
    actions: list[str] = []
    if not flow.is_over:
        actions = ["cancel", "resume"] if flow.state in ("failed", "parked") else ["cancel"]
    return {
        **workflow_info(flow),
        "on_failure": flow.on_failure,
        "resume": flow.resume or None,
        "limit": flow.limit or None,
        "explanation": explain_flow(flow),
        "steps": [_step(flow, place, jobs) for place in range(len(flow.steps))],
        "actions": actions,
    }


def job_ids(flow: Flow) -> list[str]:
    """The full ids of the jobs that are steps of a workflow, or undo one."""
    steps = [f"{step.queue}:{step.id}" for step in flow.steps if step.items is None]
    undos = [undo for place in range(len(flow.steps)) if (undo := _undo_job(flow, place))]
    return steps + undos if flow.is_compensating else steps


def _undo_job(flow: Flow, place: int) -> str:
    undo = flow.steps[place].undo
    return "" if undo is None else f"{undo.queue}:{undo_id(flow.id, place)}"


def _step(flow: Flow, place: int, jobs: Mapping[str, Snapshot]) -> dict[str, Any]:
    step, stand = flow.steps[place], flow.stand(place)
    is_list = step.items is not None
    job_id = None if is_list else f"{step.queue}:{step.id}"
    snapshot = jobs.get(job_id or "")
    record = snapshot.record if snapshot is not None else None
    items = flow.items.get(place, {})
    bad = sorted(item for item, one in items.items() if one.is_bad)
    return {
        "index": place,
        "name": step.name,
        "type": step.task,
        "queue": step.queue,
        "jobId": job_id,
        "after": step.after,
        "outcome": stand.outcome,
        "status": record.state.value.upper() if record else None,
        "attempts": stand.attempts,
        "items": flow.lengths.get(place) if is_list else None,
        "items_done": sum(one.outcome == "completed" for one in items.values()) if is_list else None,
        "bad_items": [f"{step.queue}:{step.id}.{item}" for item in bad[:BAD_ITEMS]],
        "enqueued_at": exact_moment(record.enqueued_at) if record else None,
        "started_at": moment(record.claimed_at) if record else None,
        "ended_at": moment(record.ended_at) if record else None,
        **_executed(flow, snapshot, "executions"),
        "undo": _undo(flow, place, jobs) if step.undo is not None else None,
    }


def _undo(flow: Flow, place: int, jobs: Mapping[str, Snapshot]) -> dict[str, Any]:
    is_wanted = flow.is_compensating and place in compensations(flow)
    job_id = _undo_job(flow, place)
    snapshot = jobs.get(job_id)
    return {
        "jobId": job_id,
        "state": flow.undos.get(place, OPEN).outcome if is_wanted else "none",
        "status": snapshot.record.state.value.upper() if snapshot is not None else None,
        **_executed(flow, snapshot, "attempts"),
    }


def _executed(flow: Flow, snapshot: Snapshot | None, name: str) -> dict[str, Any]:
    """What its job says of its executions, and whether it may be tried again."""
    if snapshot is None:
        return {name: [], "error": None, "actions": []}
    record = snapshot.record
    return {
        name: [attempt(one) for one in attempts_of(record, snapshot.history)],
        "error": _error(record.error) if record.error else None,
        "actions": ["redrive"] if "redrive" in actions_of(record, flow) else [],
    }


def counted(part: Counted) -> dict[str, Any]:
    """What happened in some span of time."""
    return {
        "enqueued": part.enqueued,
        "started": part.started,
        "completed": part.completed,
        "failed": part.failed,
        "retried": part.retried,
        "dead": part.dead,
        "cancelled": part.cancelled,
        "stalled": part.stalled,
        "failure_rate": part.failure_rate,
        "wait": _times(part.wait),
        "run": _times(part.run),
    }


def _times(times: Times) -> dict[str, Any]:
    return {
        "mean_ms": times.mean_ms,
        "p50_ms": times.p50_ms,
        "p95_ms": times.p95_ms,
        "p99_ms": times.p99_ms,
    }


def _percent(record: JobRecord) -> int:
    if record.state is JobState.COMPLETED:
        return 100
    return record.progress.percent if record.progress else 0


def _error(error: ErrorRecord) -> dict[str, Any]:
    return {"kind": error.kind, "type": error.type, "message": error.message}


def _obstacle(record: JobRecord) -> dict[str, Any] | None:
    obstacle = record.obstacle
    if obstacle is None:
        return None
    return {
        "kind": obstacle.kind,
        "jobs": obstacle.jobs,
        "count": obstacle.count,
        "lock": obstacle.lock or None,
        "since": moment(obstacle.since),
    }
