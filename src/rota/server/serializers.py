"""Records as JSON values for the HTTP API, with the fields that `schemas` declares.

Built by hand instead of through pydantic, because lists of them are long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import tzinfo
from typing import Any, Final

import msgspec

from rota.client.bulk_operations import MASKED, RedriveOutcome
from rota.client.dependency_listing import DependencyJob
from rota.client.redrive_jobs_and_workflow_steps import REDRIVABLE
from rota.client.schedules import ScheduleInfo
from rota.core.attempts_from_history import Attempt, attempts_of
from rota.core.format_iso_time import iso_time, iso_time_or_none
from rota.core.health.acknowledgement import Acknowledgement, FindingState
from rota.core.health.finding import Finding
from rota.core.ids import decode_run
from rota.core.job_record import ErrorRecord, HistoryEntry, JobRecord
from rota.core.json_for_cli_and_http import history_json, progress_json, workflow_summary_json
from rota.core.masking import Mask
from rota.core.metric_series import Counts, Times
from rota.core.state_transitions import JobState
from rota.core.workflow_record_and_decisions import NOT_ENDED, WorkflowInfo, WorkflowRecord, compensations
from rota.core.workflow_text import explain_workflow
from rota.monitoring.running_jobs_by_worker import RunningAttempt
from rota.server.auth.authentication import Identity
from rota.server.task_catalog import KnownTask, TaskCatalog
from rota.store.bulk_operation_records import OperationInfo
from rota.store.reads import LockInfo, LogLine, Page, Pause, PausedTask, QueueInfo, Snapshot, WorkerInfo
from rota.store.workflow_records import compensation_id, find_part

#: Maximum number of unsuccessful items that a step lists.
BAD_ITEMS: Final = 20
#: Bytes of the arguments that lists show.
PREVIEW_BYTES: Final = 2_000


class JobSerializer:
    """Serializes jobs and schedules, with masked values replaced."""

    def __init__(self, mask: Mask, catalog: TaskCatalog) -> None:
        self._mask = mask
        self._catalog = catalog

    def data(self, record: JobRecord, limit: int | None = None) -> str:
        """Returns the arguments of a job as JSON text, or their first `limit` bytes."""
        return self._mask.text(record.arguments, positional=self._catalog.positional(record.task), limit=limit)

    def preview(self, record: JobRecord) -> dict[str, Any]:
        """Returns a job as lists show it: long arguments are cut."""
        return self.job(record, PREVIEW_BYTES)

    def job(self, record: JobRecord, limit: int | None = None) -> dict[str, Any]:
        """Returns a job."""
        options, counts, progress = record.options, record.counts, record.progress
        return {
            "jobId": record.ref.full_id,
            "run": record.ref.run,
            "status": record.state.value.upper(),
            "type": record.task,
            "queue": record.ref.queue,
            "data": self.data(record, limit),
            "is_data_cut": limit is not None and len(record.arguments) > limit,
            "priority": options.priority,
            "lock": options.lock or None,
            "tags": options.tags,
            "dependencies": [name.lstrip("?") for name in options.after],
            "workflow": options.workflow or None,
            "attempt": counts.attempt,
            "failures": counts.failures,
            "stalls": counts.stalls,
            "crashes": counts.crashes,
            "snoozes": counts.snoozes,
            "handbacks": counts.handbacks,
            "enqueued_at": iso_time(record.enqueued_at),
            "due_at": iso_time_or_none(record.due_at),
            "claimed_at": iso_time_or_none(record.claimed_at),
            "ended_at": iso_time_or_none(record.ended_at),
            "lease_until": iso_time_or_none(record.lease_until),
            "worker": record.worker or None,
            "reason": record.reason or None,
            "error": _error_json(record.error) if record.error else None,
            "progress": progress_json(progress) if progress else None,
        }

    def page(self, page: Page, identity: Identity) -> dict[str, Any]:
        """Returns a page of jobs."""
        return {
            "jobs": [hide_other_queues(self.preview(record), identity) for record in page.jobs],
            "cursor": page.cursor,
            "examined": page.examined,
        }

    def detail(
        self, snapshot: Snapshot, explanation: str, lock: LockInfo | None, workflow: WorkflowRecord | None
    ) -> dict[str, Any]:
        """Returns a job with its attempts, its lock and its workflow step."""
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
            "attempts": [attempt_json(one) for one in attempts_of(record, snapshot.history)],
            "lock_detail": _job_lock_json(record, lock),
            "step": _step_of(record, workflow) if workflow is not None else None,
            "handled_by": next((e.note for e in reversed(snapshot.history) if e.verb == "failure_job"), "") or None,
            "trace_id": options.trace_id or None,
            "enqueued_by": options.enqueued_by or None,
            "limits": {
                "attempts": options.attempts,
                "timeout_ms": options.timeout_ms,
                "progress_timeout_ms": options.progress_timeout_ms,
                "max_stalls": options.max_stalls,
                "at_most_once": options.at_most_once,
                "expires_at": iso_time_or_none(expires_at),
            },
            "result": self.result_text(record),
            "obstacle": _obstacle_json(record),
            "explanation": explanation,
            "actions": actions_of(record, workflow),
            "now": iso_time(snapshot.at),
        }

    def result_text(self, record: JobRecord) -> str | None:
        """Returns the result of a job as JSON text; None if it has not completed."""
        if record.state is not JobState.COMPLETED:
            return None
        return self._mask.text(record.result) if record.result else "null"

    def error(self, error: ErrorRecord | None) -> dict[str, Any] | None:
        """Returns an error with traceback and attributes."""
        if error is None:
            return None
        attributes = self._mask.value(error.attributes)
        text = msgspec.json.encode(attributes).decode()
        return {**_error_json(error), "traceback": error.traceback, "attributes": attributes, "attributes_text": text}

    def schedule(self, info: ScheduleInfo, zone: tzinfo | None = None, limit: int | None = None) -> dict[str, Any]:
        """Returns a schedule with its times in a zone, by default its own, and `limit` bytes of its arguments."""
        arguments: Any = {**info.kwargs, "*": info.args} if info.args and info.kwargs else info.kwargs or info.args
        encoded = msgspec.json.encode(arguments)
        return {
            "id": info.id,
            "name": info.name,
            "queue": info.queue,
            "rule": msgspec.to_builtins(info.rule),
            "words": info.words,
            "type": info.task,
            "data": self._mask.text(encoded, positional=self._catalog.positional(info.task), limit=limit),
            "is_data_cut": limit is not None and len(encoded) > limit,
            **info.serialize(zone),
        }


def hide_other_queues(job: dict[str, Any], identity: Identity) -> dict[str, Any]:
    """Removes the jobs of queues that the caller may not see from what a job waits for."""

    def visible(job_ids: Sequence[str]) -> list[str]:
        return [job_id for job_id in job_ids if identity.may_see(job_id.rpartition(":")[0])]

    if not identity.queues:
        return job
    job["dependencies"] = visible(job["dependencies"])
    obstacle: dict[str, Any] | None = job.get("obstacle")
    if obstacle is not None and len(visible(obstacle["jobs"])) < len(obstacle["jobs"]):
        job["obstacle"] = {**obstacle, "jobs": visible(obstacle["jobs"])}
        job["explanation"] = "blocked: waits for jobs outside the scope of this token"
    return job


def actions_of(record: JobRecord, workflow: WorkflowRecord | None = None) -> list[str]:
    """Returns the actions that the states of a job and of its workflow allow."""
    if record.state.is_waiting:
        return ["cancel", "update", "delete"]
    if record.state is JobState.PROCESSING:
        return ["cancel", "delete"]
    if record.state is not JobState.FAILED or (record.options.workflow and not _is_redrivable(workflow)):
        return ["delete"]
    return ["redrive", "update", "delete"]


def _is_redrivable(workflow: WorkflowRecord | None) -> bool:
    return workflow is not None and workflow.state in REDRIVABLE


def attempt_json(one: Attempt) -> dict[str, Any]:
    """Returns one attempt of a job."""
    return {
        "attempt": one.number,
        "worker": one.worker,
        "started_at": iso_time(one.started_at),
        "ended_at": iso_time_or_none(one.ended_at),
        "outcome": one.outcome,
        "note": one.note or None,
    }


def related_job_json(one: DependencyJob) -> dict[str, Any]:
    """Returns a dependency or a dependent of a job."""
    record = one.record
    return {
        "jobId": one.ref.full_id,
        "run": one.ref.run,
        "status": record.state.value.upper() if record is not None else None,
        "type": record.task if record is not None else None,
        "may_fail": one.may_fail,
    }


def _job_lock_json(record: JobRecord, info: LockInfo | None) -> dict[str, Any] | None:
    if not record.options.lock or record.state.is_finished:
        return None
    if info is None:
        return {"name": record.options.lock, "holder": None, "since": None, "waiting": 0}
    return {"name": info.name, "holder": info.holder, "since": iso_time_or_none(info.since), "waiting": info.waiting}


def _step_of(record: JobRecord, workflow: WorkflowRecord) -> dict[str, Any] | None:
    part = find_part(workflow, record.ref.id)
    if part is None:
        return None
    index, item, is_undo = part
    return {
        "workflow": workflow.id,
        "name": workflow.steps[index].name,
        "index": index,
        "item": item,
        "is_undo": is_undo,
    }


def log_line_json(line: LogLine) -> dict[str, Any]:
    """Returns a log line."""
    return {"at": iso_time(line.at), "level": line.level, "text": line.text}


def history_entry_json(entry: HistoryEntry) -> dict[str, Any]:
    """Returns a state change."""
    state = entry.state.upper() if entry.state else None
    return {**history_json(entry), "state": state, "since": iso_time_or_none(entry.since or None)}


def stats_json(counts: Mapping[str, int]) -> dict[str, int]:
    """Returns the number of jobs per state, including empty ones."""
    return {state.value.upper(): counts.get(state.value, 0) for state in JobState}


def pause_json(pause: Pause | None) -> dict[str, Any] | None:
    """Returns a pause; None if there is none."""
    if pause is None:
        return None
    return {"by": pause.by or None, "at": iso_time_or_none(pause.at), "note": pause.note}


def paused_task_json(one: PausedTask) -> dict[str, Any]:
    """Returns a task that is paused in a queue."""
    return {
        "task": one.task,
        "queue": one.queue,
        "paused": pause_json(one.pause),
        "waiting": one.waiting,
        "is_resuming": one.is_resuming,
    }


def queue_json(info: QueueInfo) -> dict[str, Any]:
    """Returns a queue with its counts."""
    totals = dict(info.totals)
    return {
        "name": info.name,
        "is_paused": info.is_paused,
        "paused": pause_json(info.pause),
        "stats": stats_json(info.counts),
        "totals": {
            "enqueued": totals["run"],
            **{name: totals[name] for name in ("completed", "failed", "cancelled", "redriven", "deleted")},
        },
        "oldest_pending_ms": info.oldest_pending_ms,
    }


def worker_json(
    found: WorkerInfo, identity: Identity, held: Sequence[RunningAttempt], *, is_complete: bool
) -> dict[str, Any]:
    """Returns a worker with the running jobs that the caller may see. `held` may lack some unless `is_complete`."""
    info = found.info
    queues = [name for name in info.get("queues", []) if identity.may_see(name)]
    slots = info.get("slots", 0)
    # A worker claims ahead: the jobs beyond its slots do not run yet.
    running = held[: slots or None]
    return {
        "id": found.id,
        "name": found.name,
        "status": found.status,
        "queues": queues,
        "last_seen": iso_time(found.last_seen),
        "silent_ms": found.silent_ms,
        "state": info.get("state", ""),
        "host": info.get("host", ""),
        "pid": info.get("pid"),
        "slots": slots,
        "busy": len(running) if is_complete else info.get("busy", 0),
        "finished": info.get("finished", 0),
        "running": [_running_json(one) for one in running if one.id and identity.may_see(one.lease.queue)],
        "cpu_seconds": info.get("cpu_seconds", 0.0),
        "rss_bytes": info.get("rss_bytes", 0),
        "started_at": iso_time_or_none(info.get("started_at")),
        "version": info.get("version", ""),
        "code_version": info.get("code_version") or None,
        "actions": ["drain"] if _is_drainable(found, identity) else [],
    }


def _is_drainable(found: WorkerInfo, identity: Identity) -> bool:
    """False if the worker already stops, or serves queues that the caller may not see."""
    is_active = found.status == "ALIVE" and found.info.get("state") not in (
        "draining",
        "drained",
        "stopping",
        "stopped",
    )
    return is_active and all(identity.may_see(queue) for queue in found.info.get("queues", []))


def _running_json(held: RunningAttempt) -> dict[str, Any]:
    lease = held.lease
    return {
        "jobId": f"{lease.queue}:{held.id}",
        "run": lease.run,
        "type": held.task,
        "attempt": lease.attempt,
        "claimed_at": iso_time(lease.claimed_at),
        "progress": progress_json(lease.progress) if lease.progress is not None else None,
    }


def lock_json(info: LockInfo) -> dict[str, Any]:
    """Returns a lock."""
    return {
        "name": info.name,
        "queue": info.queue,
        "holder": info.holder,
        "since": iso_time_or_none(info.since),
        "waiting": info.waiting,
        "waiters": info.waiters,
    }


def task_json(known: KnownTask) -> dict[str, Any]:
    """Returns a task."""
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


def workflow_info_json(workflow: WorkflowInfo | WorkflowRecord) -> dict[str, Any]:
    """Returns a summary of a workflow."""
    return {**workflow_summary_json(workflow), "state": workflow.state.upper()}


def workflow_json(workflow: WorkflowRecord, jobs: Mapping[str, Snapshot]) -> dict[str, Any]:
    """Returns a workflow with its steps. `jobs` are the jobs of its steps and compensations that exist, by full id."""
    actions: list[str] = []
    if not workflow.is_over:
        actions = ["cancel", "resume"] if workflow.state in ("failed", "parked") else ["cancel"]
    return {
        **workflow_info_json(workflow),
        "on_failure": workflow.on_failure,
        "resume": workflow.resume or None,
        "limit": workflow.limit or None,
        "explanation": explain_workflow(workflow),
        "steps": [_step_json(workflow, index, jobs) for index in range(len(workflow.steps))],
        "actions": actions,
    }


def job_ids(workflow: WorkflowRecord) -> list[str]:
    """Returns the full ids of the jobs of a workflow's steps and compensations."""
    steps = [f"{step.queue}:{step.id}" for step in workflow.steps if step.items is None]
    undos = [undo for index in range(len(workflow.steps)) if (undo := _undo_job(workflow, index))]
    return steps + undos if workflow.is_compensating else steps


def _undo_job(workflow: WorkflowRecord, index: int) -> str:
    undo = workflow.steps[index].undo
    return "" if undo is None else f"{undo.queue}:{compensation_id(workflow.id, index)}"


def _step_json(workflow: WorkflowRecord, index: int, jobs: Mapping[str, Snapshot]) -> dict[str, Any]:
    step, state = workflow.steps[index], workflow.step_state(index)
    is_list = step.items is not None
    job_id = None if is_list else f"{step.queue}:{step.id}"
    snapshot = jobs.get(job_id or "")
    record = snapshot.record if snapshot is not None else None
    items = workflow.item_states.get(index, {})
    bad = sorted(item for item, one in items.items() if one.is_unsuccessful)
    return {
        "index": index,
        "name": step.name,
        "type": step.task,
        "queue": step.queue,
        "jobId": job_id,
        "after": step.after,
        "outcome": state.outcome,
        "status": record.state.value.upper() if record else None,
        "attempts": state.attempts,
        "items": workflow.lengths.get(index) if is_list else None,
        "items_done": sum(one.outcome == "completed" for one in items.values()) if is_list else None,
        "bad_items": [f"{step.queue}:{step.id}.{item}" for item in bad[:BAD_ITEMS]],
        "enqueued_at": iso_time(record.enqueued_at) if record else None,
        "started_at": iso_time_or_none(record.claimed_at) if record else None,
        "ended_at": iso_time_or_none(record.ended_at) if record else None,
        **_execution_json(workflow, snapshot, "executions"),
        "undo": _undo_json(workflow, index, jobs) if step.undo is not None else None,
    }


def _undo_json(workflow: WorkflowRecord, index: int, jobs: Mapping[str, Snapshot]) -> dict[str, Any]:
    is_wanted = workflow.is_compensating and index in compensations(workflow)
    job_id = _undo_job(workflow, index)
    snapshot = jobs.get(job_id)
    return {
        "jobId": job_id,
        "state": workflow.undo_states.get(index, NOT_ENDED).outcome if is_wanted else "none",
        "status": snapshot.record.state.value.upper() if snapshot is not None else None,
        **_execution_json(workflow, snapshot, "attempts"),
    }


def _execution_json(workflow: WorkflowRecord, snapshot: Snapshot | None, name: str) -> dict[str, Any]:
    """Returns the attempts and the error of a step's job, and whether it can be redriven."""
    if snapshot is None:
        return {name: [], "error": None, "actions": []}
    record = snapshot.record
    return {
        name: [attempt_json(one) for one in attempts_of(record, snapshot.history)],
        "error": _error_json(record.error) if record.error else None,
        "actions": ["redrive"] if "redrive" in actions_of(record, workflow) else [],
    }


def operation_json(info: OperationInfo, outcome: RedriveOutcome | None = None) -> dict[str, Any]:
    """Returns a bulk operation."""
    return {
        "id": info.id,
        "action": info.verb,
        "by": info.by or None,
        "where": {name: value for name, value in info.where.items() if name != MASKED},
        "chosen": info.chosen,
        "state": info.state.upper(),
        "is_dry_run": info.is_dry_run,
        "per_second": info.per_second,
        "expected": info.expected,
        "matched": info.matched,
        "done": info.done,
        "failed": info.failed,
        "failures": [{"jobId": failure.job, "message": failure.reason} for failure in info.failures],
        "created_at": iso_time(info.created_at),
        "ended_at": iso_time_or_none(info.ended_at),
        "outcome": msgspec.to_builtins(outcome) if outcome is not None else None,
    }


def acknowledgement_json(one: Acknowledgement) -> dict[str, Any]:
    """Returns an acknowledgement."""
    return {"by": one.by, "at": iso_time(one.at), "until": iso_time_or_none(one.until), "note": one.note}


def finding_json(finding: Finding, states: Mapping[str, FindingState], now: int) -> dict[str, Any]:
    """Returns a finding with its state at a moment."""
    state = states.get(finding.key)
    acknowledged = state.acknowledgement if state is not None else None
    if acknowledged is not None and not acknowledged.covers(finding, now):
        acknowledged = None
    return {
        "key": finding.key,
        "kind": finding.kind,
        "level": finding.level,
        "text": finding.text,
        "detail": finding.detail,
        "count": finding.count,
        "queue": finding.queue,
        "task": finding.task,
        "job": finding.job,
        "worker": finding.worker,
        "schedule": finding.schedule,
        "names": finding.names,
        "value": finding.value,
        "usual": finding.usual,
        "since": iso_time(state.since) if state is not None else None,
        "acknowledged": acknowledgement_json(acknowledged) if acknowledged is not None else None,
    }


def counts_json(part: Counts) -> dict[str, Any]:
    """Returns the counts of a time span."""
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
        "wait": _times_json(part.wait),
        "run": _times_json(part.run),
    }


def _times_json(times: Times) -> dict[str, Any]:
    return {
        "mean_ms": times.mean_ms,
        "p50_ms": times.p50_ms,
        "p95_ms": times.p95_ms,
        "p99_ms": times.p99_ms,
    }


def _error_json(error: ErrorRecord) -> dict[str, Any]:
    return {"kind": error.kind, "type": error.type, "message": error.message}


def _obstacle_json(record: JobRecord) -> dict[str, Any] | None:
    obstacle = record.obstacle
    if obstacle is None:
        return None
    return {
        "kind": obstacle.kind,
        "jobs": obstacle.jobs,
        "count": obstacle.count,
        "lock": obstacle.lock or None,
        "since": iso_time_or_none(obstacle.since),
    }
