"""Every key Rota keeps in the server: its name, type, owner and expiry.

All keys of a queue share one hash slot: `rota:{mail}:pending`. Those of a shard have a slot at equal distances from the
others of its queue (`tag_of`), so that nodes get equal shares. The queue of a queue's failure handlers,
`mail-fail`, lives in the same slot, so that failing a job and enqueueing its handler is one step. Keys that
belong to no queue share the slot of `~`, which no queue can be called. Nothing else in Rota builds a key name.
"""

from __future__ import annotations

import itertools
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rota.store.redis.hash_slots import SLOTS, slot_of


@dataclass(frozen=True, slots=True)
class KeySpec:
    """Describes one key. `{name}` in `pattern` is filled in where there is one key per job, rule or caller."""

    pattern: str
    type: str
    owner: str
    expiry: str
    meaning: str

    @property
    def has_ttl(self) -> bool:
        """True if the server expires the key."""
        return self.expiry in _TTLS


PERMANENT: Final = "none"
_TTLS: Final = ("60 s", "10 min", "12 h", "24 h", "25 h", "7 days", "31 days")
WITH_JOB: Final = "with its job"
PREPARED: Final = "1 min; 1 h for steps of a workflow"
WITH_BLOB: Final = "with its job; 1 h before"
WITH_WORKFLOW: Final = "with its workflow"
SINCE_SEEN: Final = "24 h after its last registration"

#: name -> spec, for the keys of one queue.
QUEUE_KEYS: Final[Mapping[str, KeySpec]] = {
    "meta": KeySpec(
        "meta", "hash", "all", PERMANENT, "counters run, fence, totals; is_paused, server_seen, grace_until"
    ),
    "jobs": KeySpec("jobs", "hash", "enqueue", WITH_JOB, "run -> job record: head, options, task, arguments"),
    "runs": KeySpec("runs", "hash", "claim", WITH_JOB, "run -> run record: state, claim, worker, times, counts"),
    "ids": KeySpec("ids", "hash", "enqueue", WITH_JOB, "chosen id -> its newest run"),
    "named": KeySpec("named", "hash", "enqueue", WITH_JOB, "run -> its chosen id"),
    "pending": KeySpec("pending", "zset", "all", WITH_JOB, "run -> score: priority, then the time it became due"),
    "scheduled": KeySpec("scheduled", "zset", "all", WITH_JOB, "run -> time it falls due, and its priority"),
    "blocked": KeySpec("blocked", "zset", "all", WITH_JOB, "run -> its pending score once released"),
    "processing": KeySpec("processing", "zset", "claim", WITH_JOB, "run -> deadline of its lease, ms"),
    "completed": KeySpec("completed", "zset", "complete", WITH_JOB, "run -> time it ended, ms"),
    "failed": KeySpec("failed", "zset", "fail", WITH_JOB, "run -> time it ended, ms: the dead letters"),
    "cancelled": KeySpec("cancelled", "zset", "cancel", WITH_JOB, "run -> time it ended, ms"),
    "stopping": KeySpec("stopping", "zset", "cancel", "with its lease", "run whose handler has yet to stop -> lease"),
    "expiring": KeySpec("expiring", "zset", "enqueue", WITH_JOB, "run with a start deadline -> that deadline, ms"),
    "locked": KeySpec("locked", "hash", "enqueue", WITH_JOB, "unfinished run -> the lock it asked for"),
    "locks": KeySpec("locks", "hash", "all", WITH_JOB, "lock -> its occupant: the run that is pending or processing"),
    "lane": KeySpec("lane:{name}", "zset", "all", WITH_JOB, "runs that are due and wait for one lock -> score"),
    "paused_tasks": KeySpec(
        "paused_tasks",
        "hash",
        "pause_or_resume_task",
        PERMANENT,
        'paused task -> since when, by whom and why; "resuming" while its runs are put back',
    ),
    "paused_runs": KeySpec(
        "paused_runs:{name}", "zset", "claim", WITH_JOB, "runs of one paused task that are due -> their pending score"
    ),
    "follow_ups": KeySpec(
        "follow_ups", "hash", "enqueue", WITH_JOB, "run at work -> follow-up of its id, and its flags"
    ),
    "follows": KeySpec("follows", "hash", "enqueue", WITH_JOB, "follow-up -> the run that it waits for"),
    "merged_into": KeySpec("merged_into", "hash", "fail", WITH_JOB, "merged follow-up -> the run it became a part of"),
    "merged_from": KeySpec("merged_from", "hash", "fail", WITH_JOB, "run -> the follow-ups merged into it"),
    "prepared": KeySpec("prepared", "zset", "prepare_dependents", PREPARED, "run that is not yet visible -> since, ms"),
    "prepared_plans": KeySpec(
        "prepared_plans", "hash", "prepare_dependents", PREPARED, "prepared run -> priority, due and expiry"
    ),
    "has_parents": KeySpec(
        "has_parents", "set", "prepare_dependents", WITH_JOB, "runs that depend on others, while they wait for them"
    ),
    "parents": KeySpec(
        "parents:{name}",
        "hash",
        "prepare_dependents",
        WITH_JOB,
        "unmet parents of one run -> latest outcome number",
    ),
    "failed_parents": KeySpec(
        "failed_parents:{name}",
        "hash",
        "apply_parent_outcomes",
        WITH_JOB,
        "parents that cancelled one run -> retention",
    ),
    "parent_results": KeySpec(
        "parent_results:{name}",
        "hash",
        "prepare_dependents",
        WITH_JOB,
        "results that go into the arguments of one run, by placeholder; their size and its limit",
    ),
    "has_dependents": KeySpec("has_dependents", "set", "register_dependents", WITH_JOB, "runs that others depend on"),
    "dependents": KeySpec(
        "dependents:{name}", "zset", "register_dependents", WITH_JOB, "one run's dependents -> latest outcome delivered"
    ),
    "outcomes": KeySpec("outcomes", "hash", "all", WITH_JOB, "parent -> number and kind of its latest outcome"),
    "outcome_results": KeySpec(
        "outcome_results", "hash", "complete", "when delivered", "parent with an undelivered outcome -> its result"
    ),
    "steps": KeySpec("steps", "set", "prepare_dependents", WITH_JOB, "runs that belong to a workflow"),
    "outbox": KeySpec("outbox", "zset", "all", "when delivered", "parent with an undelivered outcome -> when to send"),
    "results": KeySpec("results", "hash", "complete", WITH_JOB, "run -> encoded result, unless it is null"),
    "errors": KeySpec("errors", "hash", "fail", WITH_JOB, "run -> its last error"),
    "history": KeySpec("history", "hash", "all", WITH_JOB, "run -> changes of state that its record does not show"),
    "progress": KeySpec("progress", "hash", "save_progress", WITH_JOB, "run -> progress of its attempt"),
    "logs": KeySpec("logs", "hash", "append_log", WITH_JOB, "run -> sequence, lines and bytes of its log"),
    "log": KeySpec("log:{name}", "list", "append_log", WITH_JOB, "one run's log lines"),
    "blobs": KeySpec("blobs", "hash", "all", WITH_JOB, "run -> its blobs, separated by spaces"),
    "blob": KeySpec("blob:{name}", "list", "append_blob_chunk", WITH_BLOB, "chunks of one blob"),
    "external_blobs": KeySpec(
        "external_blobs", "zset", "all", "when removed", "blob to be removed from the user's store -> when, ms"
    ),
    "waiters": KeySpec("waiters", "hash", "watch_run_end", WITH_JOB, "run -> clients that wait for its end"),
    "retention_rules": KeySpec("retention_rules", "set", "complete", PERMANENT, "retention lists in use"),
    "kept": KeySpec("kept:{name}", "list", "complete", WITH_JOB, "finished runs of one retention rule, oldest first"),
    "task_numbers": KeySpec("task_numbers", "hash", "all", PERMANENT, "task -> its number; the last minute counted"),
    "counters": KeySpec("counters", "string", "all", PERMANENT, "totals, 64 numbers for each task"),
    "minute_start_counters": KeySpec(
        "minute_start_counters", "string", "all", PERMANENT, "the counters as the latest minute began"
    ),
    "hour_start_counters": KeySpec(
        "hour_start_counters", "string", "all", PERMANENT, "the counters as the latest hour began"
    ),
    "minute_counters": KeySpec(
        "minute_counters:{name}", "string", "all", "25 h", "what one minute added to the counters"
    ),
    "hour_counters": KeySpec("hour_counters:{name}", "string", "all", "31 days", "what one hour added to the counters"),
    "task_index": KeySpec(
        "task_index:{name}", "string", "enqueue", WITH_JOB, "numbers of the tasks of 1,024 runs, a byte each"
    ),
    "task_index_sizes": KeySpec(
        "task_index_sizes", "hash", "enqueue", WITH_JOB, "first seven characters of runs -> how many there are"
    ),
    "term": KeySpec("term:{name}", "zset", "enqueue", WITH_JOB, "runs with one tag, declared field or error"),
    "terms": KeySpec("terms", "hash", "enqueue", WITH_JOB, "run -> the terms that it is found by"),
    "error_groups": KeySpec(
        "error_groups", "hash", "fail", WITH_JOB, "group of dead letters -> class and message of its errors"
    ),
    "failure_handlers": KeySpec(
        "failure_handlers", "hash", "worker", PERMANENT, "task -> options of the job that handles a failure"
    ),
    "schedules": KeySpec("schedules", "hash", "put_schedule", PERMANENT, "schedule -> state, rule, settings, its job"),
    "schedule_due": KeySpec(
        "schedule_due", "zset", "fire_schedule", PERMANENT, "schedule that is not paused -> its next tick, ms"
    ),
    "idle": KeySpec("idle", "zset", "claim", "with its worker", "worker that waits, and its next claim -> since"),
    "heartbeats": KeySpec("heartbeats", "hash", "heartbeat", "with its worker", "worker -> its last heartbeat, ms"),
    "events": KeySpec("events", "stream", "all", "capped", "one entry per transition"),
    "last_reply": KeySpec(
        "last_reply:{name}", "string", "all", "10 min", "reply to a caller's latest call of one kind"
    ),
    "reply": KeySpec("reply:{name}", "string", "all", "10 min", "reply to one call, by its token"),
    "repairs": KeySpec("repairs", "hash", "all", "7 days", "damaged value that was replaced -> when, and what it was"),
    "mirror": KeySpec(
        "mirror", "hash", "client", PERMANENT, "a mirror of the queue: fence of its writer, position, newest run"
    ),
    "mirrored": KeySpec(
        "mirrored", "hash", "client", PERMANENT, "run, schedule, workflow or queue -> its line of an export"
    ),
    "imported": KeySpec(
        "imported:{name}", "hash", "client", "7 days", "run of an export -> the run that it was restored as"
    ),
    "once": KeySpec("once:{name}", "string", "enqueue", "24 h", "idempotency token -> the run that it made"),
}

#: name -> spec, for the keys that belong to no queue.
GLOBAL_KEYS: Final[Mapping[str, KeySpec]] = {
    "format": KeySpec("format", "string", "client", PERMANENT, "version of the stored format"),
    "meta": KeySpec("meta", "hash", "client", PERMANENT, "`waits`, written before a wait for replicas"),
    "queues": KeySpec("queues", "set", "client", PERMANENT, "names of the queues ever used"),
    "shards": KeySpec("shards", "hash", "register_queues", PERMANENT, "sharded queue -> number of shards"),
    "schedule_queues": KeySpec(
        "schedule_queues", "set", "client", PERMANENT, "names of the queues that have had schedules"
    ),
    "settings": KeySpec(
        "settings",
        "hash",
        "change_worker_durations",
        PERMANENT,
        "durations that all workers share; version, changed_at",
    ),
    "workers": KeySpec("workers", "hash", "renew_registration", SINCE_SEEN, "worker -> its registry entry, JSON"),
    "worker_seen": KeySpec("worker_seen", "zset", "renew_registration", SINCE_SEEN, "worker -> last registration, ms"),
    "draining": KeySpec(
        "draining", "hash", "drain_worker", SINCE_SEEN, 'worker that was asked to stop -> "operator" or "planner"'
    ),
    "barred_machines": KeySpec(
        "barred_machines",
        "zset",
        "bar_machine",
        "24 h after it was barred",
        "machine that is about to be removed -> since, ms",
    ),
    "planner": KeySpec(
        "planner",
        "hash",
        "take_planner_lease",
        PERMANENT,
        "the planner lease: fence, holder, until; the latest decision recorded",
    ),
    "standby_planners": KeySpec(
        "standby_planners",
        "zset",
        "take_planner_lease",
        "10 s after its latest attempt to take the lease",
        "planner that stands by -> until when it counts, ms",
    ),
    "scaling_settings": KeySpec(
        "scaling_settings", "string", "change_scaling_settings", PERMANENT, "settings changed at run time, JSON"
    ),
    "scaling_decisions": KeySpec(
        "scaling_decisions",
        "stream",
        "record_scaling_decision",
        "capped",
        "decisions of the planner with their reasons, for 30 days",
    ),
    "scaling_launches": KeySpec(
        "scaling_launches",
        "hash",
        "save_launch",
        "when its machines have registered",
        "token of a launch -> how many machines, since when, and which",
    ),
    "workflow": KeySpec(
        "workflow:{name}", "hash", "open_workflow", "a day after its end", "one workflow: graph, state, steps"
    ),
    "workflow_results": KeySpec(
        "workflow_results:{name}",
        "hash",
        "record_step_outcomes",
        "a day after its end",
        "results of one workflow's steps and items",
    ),
    "workflows": KeySpec("workflows", "zset", "open_workflow", WITH_WORKFLOW, "workflow -> when it was opened, ms"),
    "workflow_due": KeySpec(
        "workflow_due", "zset", "record_step_outcomes", WITH_WORKFLOW, "workflow that needs a decision -> when"
    ),
    "stuck_workflows": KeySpec(
        "stuck_workflows", "zset", "save_workflow_decision", WITH_WORKFLOW, "workflow that is held or parked -> since"
    ),
    "active_workflows": KeySpec(
        "active_workflows:{name}", "zset", "save_workflow_decision", WITH_WORKFLOW, "workflows of one name that may run"
    ),
    "waiting_workflows": KeySpec(
        "waiting_workflows:{name}", "zset", "save_workflow_decision", WITH_WORKFLOW, "workflows of one name that wait"
    ),
    "operation": KeySpec("operation:{name}", "hash", "bulk", "7 days", "one bulk operation and its progress"),
    "operations": KeySpec("operations", "zset", "bulk", "with its operation", "bulk operation -> when it was made"),
    "operation_due": KeySpec(
        "operation_due", "zset", "bulk", "with its operation", "unfinished bulk operation -> when a driver may take it"
    ),
    "reply": KeySpec("reply:{name}", "string", "all", "10 min", "reply to one call, by its token"),
    "mirror": KeySpec(
        "mirror", "hash", "client", PERMANENT, "a mirror: id, how often it was opened, fence and position of workflows"
    ),
    "mirrored": KeySpec("mirrored", "hash", "client", PERMANENT, "workflow -> its line of an export"),
    "mirrored_queues": KeySpec("mirrored_queues", "set", "client", PERMANENT, "queues that the mirror has"),
    "imported": KeySpec("imported:{name}", "hash", "client", "7 days", "workflow of an export -> that it was restored"),
    "events": KeySpec("events", "stream", "all", "capped", "changes of workers, workflows and bulk operations"),
    "tasks": KeySpec("tasks", "hash", "worker", PERMANENT, "task -> schema and defaults, as workers publish them"),
    "progress_secret": KeySpec("progress_secret", "string", "client", PERMANENT, "signs progress tokens"),
    "tokens": KeySpec("tokens", "hash", "server", PERMANENT, "API token -> hash of its secret, role, queues, expiry"),
    "token_uses": KeySpec("token_uses", "hash", "server", PERMANENT, "API token -> when it was last used, ms"),
    "session": KeySpec("session:{name}", "string", "server", "12 h", "a login, by the hash of its cookie"),
    "login_failures": KeySpec("login_failures:{name}", "string", "server", "60 s", "failed logins from one address"),
    "http_reply": KeySpec("http_reply:{name}", "string", "server", "24 h", "reply to a POST with an idempotency key"),
    "annotations": KeySpec("annotations", "zset", "annotate", PERMANENT, "annotation, JSON -> when, ms; 5,000 at most"),
    "code_versions": KeySpec(
        "code_versions",
        "hash",
        "annotate",
        PERMANENT,
        'code version -> when a worker announced it last, ms; " latest": the version marked last',
    ),
    "findings": KeySpec(
        "findings", "hash", "server", PERMANENT, "finding -> since when, and when it was found last, ms; for 15 min"
    ),
    "acknowledgements": KeySpec(
        "acknowledgements",
        "hash",
        "server",
        "with its finding",
        "finding -> who acknowledged it, when, why and until when, JSON",
    ),
    "saved_views": KeySpec("saved_views", "hash", "server", PERMANENT, "saved view -> its filters, JSON"),
    "audit": KeySpec("audit", "stream", "server", "capped", "logins and changes: who, from where, before and after"),
    "audit_callers": KeySpec(
        "audit_callers", "zset", "server", "with its entries", "caller -> number of its audit entries"
    ),
    "audit_of": KeySpec("audit_of:{name}", "list", "server", "with its entries", "ids of one caller's audit entries"),
}

#: Queue of the doctor's trial job. No user's queue can have this name.
TRIAL_QUEUE: Final = "~doctor"
#: Entries that the audit log keeps.
AUDIT_KEPT: Final = 10_000
_FAIL: Final = "-fail"
_SHARD: Final = re.compile(r".+~([0-9]{1,3})of([1-9][0-9]{0,2})")
#: What a script calls the keys of the queue's failures: `fail_pending` is `pending` of `mail-fail`.
_OF_FAILURES: Final = "fail_"


class Keys:
    """Builds the names of one namespace."""

    def __init__(self, namespace: str = "rota") -> None:
        self.namespace = namespace
        self.inbox_prefix = f"{namespace}:inbox:"
        self._queues: dict[str, str] = {}

    def queue(self, queue: str, name: str, part: str = "") -> str:
        """The key `name` of a queue; `part` fills the pattern of a key there are many of.

        `fail_name` is the key `name` of the queue's failures.
        """
        if name.startswith(_OF_FAILURES):
            queue, name = failures_of(queue), name.removeprefix(_OF_FAILURES)
        pattern = QUEUE_KEYS[name].pattern
        return self._prefix(queue) + (pattern.format(name=part) if part else pattern.partition(":{name}")[0])

    def shared(self, name: str, part: str = "") -> str:
        """A key that belongs to no queue; `part` fills the pattern of a key there are many of."""
        pattern = GLOBAL_KEYS[name].pattern
        filled = pattern.format(name=part) if part else pattern.partition(":{name}")[0]
        return f"{self.namespace}:{{~}}:{filled}"

    def shared_of_script(self, names: Sequence[str]) -> list[str]:
        """The keys of a script that belong to no queue. A new token completes the key of its reply."""
        return [self.shared(name, secrets.token_hex(8) if name == "reply" else "") for name in names]

    def inbox(self, participant: str) -> str:
        """The channel on which a worker or client is notified."""
        return self.inbox_prefix + participant

    def _prefix(self, queue: str) -> str:
        prefix = self._queues.get(queue)
        if prefix is None:
            base = queue.removesuffix(_FAIL)
            prefix = f"{self.namespace}:{{{tag_of(base)}}}:" + ("fail:" if base != queue else "")
            self._queues[queue] = prefix
        return prefix


def tag_of(queue: str) -> str:
    """The hash tag of a queue: its name. For a shard, a tag whose hash slot is in the middle of its share of all slots.

    Nodes serve ranges of slots, so `mail~3of8.21` is in the third eighth, wherever that is served. Names as they are
    would fall on nodes as dice do: of six shards four on one of three.
    """
    shard = _SHARD.fullmatch(queue)
    if shard is None:
        return queue
    width = SLOTS / int(shard[2])
    middle = (int(shard[1]) - 0.5) * width % SLOTS
    tags = (f"{queue}.{number}" for number in itertools.count())
    return next(tag for tag in tags if abs(slot_of(tag) - middle) <= width / 4)


def failures_of(queue: str) -> str:
    """The queue that the failure handlers of a queue's jobs run in. Those of a failure have none: it is the same."""
    return queue if queue.endswith(_FAIL) else queue + _FAIL


def spec_of(key: str, namespace: str) -> KeySpec | None:
    """The spec that a key found in the server belongs to; None when Rota does not know such a key."""
    head = f"{namespace}:{{"
    if not key.startswith(head):
        return None
    tag, _, rest = key[len(head) :].partition("}:")
    specs = GLOBAL_KEYS if tag == "~" else QUEUE_KEYS
    rest = rest.removeprefix("fail:") if specs is QUEUE_KEYS else rest
    first, colon, _ = rest.partition(":")
    spec = specs.get(first)
    if spec is None or (":{name}" in spec.pattern) != bool(colon):
        return None
    return spec


def is_permanent(key: str, namespace: str) -> bool:
    """True for a key without a TTL: permanent, or removed with the job or worker it belongs to."""
    spec = spec_of(key, namespace)
    return spec is not None and not spec.has_ttl
