"""Every key Rota keeps in the server: its name, type, owner and expiry.

All keys of a queue share one hash slot: `rota:{mail}:pending`. Those of a shard have a slot at equal distances from the
others of its queue (`tag_of`), so that nodes get equal shares. The queue of a queue's failure handlers,
`mail-fail`, lives in the same slot, so that failing a job and enqueueing its handler is one step. Keys that
belong to no queue share the slot of `~`, which no queue can be called. Nothing else in Rota builds a key name.
"""

from __future__ import annotations

import binascii
import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final


@dataclass(frozen=True, slots=True)
class KeySpec:
    """What one key is: `{name}` in `pattern` is filled in where there is one key per job, rule or caller."""

    pattern: str
    type: str
    owner: str
    expiry: str
    meaning: str

    @property
    def has_ttl(self) -> bool:
        """True where the server itself lets it expire."""
        return self.expiry in _TTLS


PERMANENT: Final = "none"
_TTLS: Final = ("60 s", "10 min", "12 h", "24 h", "25 h", "7 days", "31 days")
WITH_JOB: Final = "with its job"

#: name -> spec, for the keys of one queue.
QUEUE_KEYS: Final[Mapping[str, KeySpec]] = {
    "meta": KeySpec("meta", "hash", "all", PERMANENT, "counters run and fence, totals, is_paused, tick, grace_until"),
    "jobs": KeySpec("jobs", "hash", "enqueue", WITH_JOB, "run -> what was asked for: head, options, task, arguments"),
    "runs": KeySpec("runs", "hash", "claim", WITH_JOB, "run -> what happened: state, claim, worker, times, counts"),
    "ids": KeySpec("ids", "hash", "enqueue", WITH_JOB, "chosen id -> its newest run"),
    "named": KeySpec("named", "hash", "enqueue", WITH_JOB, "run -> its chosen id"),
    "pending": KeySpec("pending", "zset", "all", WITH_JOB, "run -> its place: priority, time it became due"),
    "scheduled": KeySpec("scheduled", "zset", "all", WITH_JOB, "run -> time it falls due, and its priority"),
    "blocked": KeySpec("blocked", "zset", "all", WITH_JOB, "run -> its place once released"),
    "processing": KeySpec("processing", "zset", "claim", WITH_JOB, "run -> deadline of its lease, ms"),
    "completed": KeySpec("completed", "zset", "complete", WITH_JOB, "run -> time it ended, ms"),
    "failed": KeySpec("failed", "zset", "fail", WITH_JOB, "run -> time it ended, ms: the dead letters"),
    "cancelled": KeySpec("cancelled", "zset", "cancel", WITH_JOB, "run -> time it ended, ms"),
    "stopping": KeySpec("stopping", "zset", "cancel", "with its lease", "run whose handler has yet to stop -> lease"),
    "expiring": KeySpec("expiring", "zset", "enqueue", WITH_JOB, "run that must start by a time -> that time, ms"),
    "locked": KeySpec("locked", "hash", "enqueue", WITH_JOB, "unfinished run -> the lock it asked for"),
    "locks": KeySpec("locks", "hash", "all", WITH_JOB, "lock -> its occupant: the run that is pending or processing"),
    "lane": KeySpec("lane:{name}", "zset", "all", WITH_JOB, "runs that are due and wait for one lock -> place"),
    "followers": KeySpec("followers", "hash", "enqueue", WITH_JOB, "run at work -> follow-up of its id, and its flags"),
    "follows": KeySpec("follows", "hash", "enqueue", WITH_JOB, "follow-up -> the run that it waits for"),
    "merged": KeySpec("merged", "hash", "fail", WITH_JOB, "follow-up that is no more -> the run it became a part of"),
    "merges": KeySpec("merges", "hash", "fail", WITH_JOB, "run -> the follow-ups that it took in"),
    "unborn": KeySpec("unborn", "zset", "prepare", "1 min", "run that has yet to be tied to its parents -> since, ms"),
    "plans": KeySpec("plans", "hash", "prepare", "1 min", "run that is unborn -> priority, due and expiry"),
    "tied": KeySpec("tied", "set", "prepare", WITH_JOB, "runs that come after others, while they wait for them"),
    "needs": KeySpec("needs:{name}", "hash", "prepare", WITH_JOB, "one run's unfinished parents -> flag, latest news"),
    "dooms": KeySpec("dooms:{name}", "hash", "deliver", WITH_JOB, "parents that keep a run from starting -> how long"),
    "parents": KeySpec("parents", "set", "register", WITH_JOB, "runs that others come after"),
    "heirs": KeySpec("heirs:{name}", "zset", "register", WITH_JOB, "one run's dependents -> latest news they had"),
    "endings": KeySpec("endings", "hash", "all", WITH_JOB, "parent -> number and kind of its latest news"),
    "legacies": KeySpec("legacies", "hash", "complete", "when delivered", "parent with news -> its result"),
    "steps": KeySpec("steps", "set", "prepare", WITH_JOB, "runs that belong to a workflow: a purge leaves them alone"),
    "outbox": KeySpec("outbox", "zset", "all", "when delivered", "parent with news for its dependents -> when to tell"),
    "results": KeySpec("results", "hash", "complete", WITH_JOB, "run -> encoded result, unless it is null"),
    "errors": KeySpec("errors", "hash", "fail", WITH_JOB, "run -> its last error"),
    "history": KeySpec("history", "hash", "all", WITH_JOB, "run -> changes of state that its record does not show"),
    "progress": KeySpec("progress", "hash", "progress", WITH_JOB, "run -> how far its attempt has come"),
    "logs": KeySpec("logs", "hash", "log", WITH_JOB, "run -> sequence, lines and bytes of its log"),
    "log": KeySpec("log:{name}", "list", "log", WITH_JOB, "one run's log lines"),
    "waiters": KeySpec("waiters", "hash", "watch", WITH_JOB, "run -> clients that wait for its end"),
    "rules": KeySpec("rules", "set", "finish", PERMANENT, "retention lists in use"),
    "kept": KeySpec("kept:{name}", "list", "finish", WITH_JOB, "finished runs of one retention rule, oldest first"),
    "slots": KeySpec("slots", "hash", "all", PERMANENT, "task -> its number; the minute in which was last counted"),
    "tally": KeySpec("tally", "string", "all", PERMANENT, "what has happened since ever, 64 numbers for each task"),
    "minute_tally": KeySpec("minute_tally", "string", "all", PERMANENT, "the tally as the latest minute began"),
    "hour_tally": KeySpec("hour_tally", "string", "all", PERMANENT, "the tally as the latest hour began"),
    "minute": KeySpec("minute:{name}", "string", "all", "25 h", "what one minute added to the tally"),
    "hour": KeySpec("hour:{name}", "string", "all", "31 days", "what one hour added to the tally"),
    "column": KeySpec("column:{name}", "string", "enqueue", WITH_JOB, "slots of the tasks of 1,024 runs, a byte each"),
    "chunks": KeySpec("chunks", "hash", "enqueue", WITH_JOB, "first seven characters of runs -> how many there are"),
    "term": KeySpec("term:{name}", "zset", "enqueue", WITH_JOB, "runs with one tag, declared field or error"),
    "terms": KeySpec("terms", "hash", "enqueue", WITH_JOB, "run -> the terms that it is found by"),
    "groups": KeySpec("groups", "hash", "fail", WITH_JOB, "group of dead letters -> class and message of its errors"),
    "handlers": KeySpec("handlers", "hash", "worker", PERMANENT, "task -> options of the job that handles a failure"),
    "schedules": KeySpec("schedules", "hash", "put_schedule", PERMANENT, "schedule -> state, rule, settings, its job"),
    "ticks": KeySpec("ticks", "zset", "fire", PERMANENT, "schedule that is not paused -> its next tick, ms"),
    "idle": KeySpec("idle", "zset", "claim", "with its worker", "worker that waits, and its next claim -> since"),
    "beats": KeySpec("beats", "hash", "heartbeat", "with its worker", "worker -> time of its last heartbeat, ms"),
    "events": KeySpec("events", "stream", "all", "capped", "one entry per transition"),
    "calls": KeySpec("calls:{name}", "string", "all", "10 min", "outcome of a caller's latest call of one kind"),
    "call": KeySpec("call:{name}", "string", "all", "10 min", "outcome of one rare call, by its token"),
    "firsts": KeySpec("firsts:{name}", "string", "enqueue", "24 h", "the run that a call with an idempotency key made"),
}

#: name -> spec, for the keys that belong to no queue.
GLOBAL_KEYS: Final[Mapping[str, KeySpec]] = {
    "format": KeySpec("format", "string", "client", PERMANENT, "version of the stored format"),
    "queues": KeySpec("queues", "set", "client", PERMANENT, "names of the queues ever used"),
    "shards": KeySpec("shards", "hash", "enlist", PERMANENT, "queue that is spread over several -> how many"),
    "recurring": KeySpec("recurring", "set", "client", PERMANENT, "names of the queues that have had schedules"),
    "workers": KeySpec("workers", "hash", "announce", "24 h after its last sign", "worker -> what it says of itself"),
    "seen": KeySpec("seen", "zset", "announce", "24 h after its last sign", "worker -> last sign of life, ms"),
    "drains": KeySpec("drains", "set", "drain", "24 h after its last sign", "workers that are to leave"),
    "flow": KeySpec(
        "flow:{name}", "hash", "open_flow", "a day after its end", "one workflow: graph, state, its steps'"
    ),
    "flows": KeySpec("flows", "zset", "open_flow", "with its workflow", "workflow -> when it was committed, ms"),
    "flow_due": KeySpec(
        "flow_due", "zset", "advance", "with its workflow", "workflow that waits for a decision -> when"
    ),
    "held": KeySpec(
        "held", "zset", "turn", "with its workflow", "workflow that is held or parked, and waits for a human -> since"
    ),
    "places": KeySpec("places:{name}", "zset", "turn", "with its workflow", "workflows of one name that may advance"),
    "queued": KeySpec(
        "queued:{name}", "zset", "turn", "with its workflow", "workflows of one name that wait for a place"
    ),
    "operation": KeySpec("operation:{name}", "hash", "operations", "7 days", "one operation: what, and how far it is"),
    "operations": KeySpec("operations", "zset", "operations", "with its operation", "operation -> when it was made"),
    "operation_due": KeySpec(
        "operation_due", "zset", "operations", "with its operation", "operation that goes on -> when to see to it"
    ),
    "events": KeySpec("events", "stream", "all", "capped", "changes of workers, workflows and operations"),
    "tasks": KeySpec("tasks", "hash", "announce", PERMANENT, "task -> schema and defaults, as workers announce them"),
    "tokens": KeySpec("tokens", "hash", "server", PERMANENT, "API token -> hash of its secret, role, queues, expiry"),
    "token_uses": KeySpec("token_uses", "hash", "server", PERMANENT, "API token -> when it was last used, ms"),
    "session": KeySpec("session:{name}", "string", "server", "12 h", "a login, by the hash of its cookie"),
    "misses": KeySpec("misses:{name}", "string", "server", "60 s", "failed logins from one address"),
    "answer": KeySpec("answer:{name}", "string", "server", "24 h", "what a POST with an idempotency key was answered"),
    "audit": KeySpec("audit", "stream", "server", "capped", "who changed what over HTTP, before and after"),
}

#: Events a queue keeps, about.
EVENTS_KEPT: Final = 10_000
#: Entries the audit log keeps, about.
AUDIT_KEPT: Final = 10_000
#: Of a cluster.
SLOTS: Final = 16_384
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

    def inbox(self, participant: str) -> str:
        """The channel on which a worker or client is told things."""
        return self.inbox_prefix + participant

    def _prefix(self, queue: str) -> str:
        prefix = self._queues.get(queue)
        if prefix is None:
            base = queue.removesuffix(_FAIL)
            prefix = f"{self.namespace}:{{{tag_of(base)}}}:" + ("fail:" if base != queue else "")
            self._queues[queue] = prefix
        return prefix


@lru_cache(maxsize=10_000)
def slot_of(key: str) -> int:
    """The slot of a key in a cluster: a digest of what stands between its first braces."""
    start = key.find("{")
    end = key.find("}", start + 1)
    tag = key[start + 1 : end] if start >= 0 and end > start + 1 else key
    return binascii.crc_hqx(tag.encode(), 0) % SLOTS


def tag_of(queue: str) -> str:
    """What gives the keys of a queue their slot: its name. For a shard, a slot in the middle of its share of them all.

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
    """True for a key that may stay in the server for ever, or as long as the jobs and workers it speaks of."""
    spec = spec_of(key, namespace)
    return spec is not None and not spec.has_ttl
