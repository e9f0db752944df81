"""Drives the store under test: moves its clock, speaks as several workers, and looks at all that it keeps."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

import redis

from rota.core.dependencies import Parent, checked_parents
from rota.core.ids import JobRef, encode_run
from rota.core.job_options import Keep, Options
from rota.core.job_record import ErrorRecord
from rota.core.job_record_codec import UndecodableRecord, decode_body, encode_body, encode_error
from rota.core.lua_constants import SHORT_RECORD
from rota.core.same_id_policy import OnSameId, Reject, Update
from rota.core.state_transitions import JobState
from rota.core.workflow_record_and_decisions import StepRecord, WorkflowRecord
from rota.store.carry_out_workflow_decisions import WorkflowStore
from rota.store.claim_replies import ClaimedJob, ClaimReply
from rota.store.create_dependents_and_deliver_outcomes import Edge, JobWithParents
from rota.store.enqueue_batcher import EnqueueResult, NewJob
from rota.store.index_repair import IndexRepair
from rota.store.job_store import LEASE_MS, JobStore
from rota.store.keys import GLOBAL_KEYS, QUEUE_KEYS, Keys
from rota.store.reads import Snapshot, Views
from rota.store.redis.address import parse_address
from rota.store.redis.retrying_client import RedisClient
from rota.store.report_encoding import CancelConfirmed, Cancelled, Completed, Failed, Lost, Report, Returned, Snoozed
from rota.store.workflow_records import workflow_edge
from tests.servers import Server
from tests.stored import find_keys, read_keys

QUEUE: Final = "q"
#: One name for all tests of a server, which run one after another: so the scripts that read it are loaded once.
CLOCK: Final = "tests:clock"
CLOCK_LIFE_MS: Final = 600_000
#: Ticks come closer together than this while any worker serves the queue.
TICK_MS: Final = 1_500

REJECT: Final = Reject()
STATES: Final = tuple(state.value for state in JobState)
WAITING: Final = ("pending", "scheduled", "blocked")
FINISHED: Final = ("completed", "failed", "cancelled")
#: What stays when all jobs are gone, by the beginnings of their keys: what has happened.
HISTORY: Final = frozenset(
    {"task_numbers", "counters", "minute_start_counters", "hour_start_counters", "minute_counters", "hour_counters"}
)
DEFAULT_KEEP: Final = Keep()
#: How an attempt may end, by what its worker reports.
ENDS: Final = ("complete", "fail", "fail for good", "snooze", "hand back", "give up", "lose")

Dump = dict[str, object]


def body(arguments: object = (), *, task: str = "noop", **options: Any) -> bytes:
    """A job's record without its head."""
    return encode_body(Options(**options), task, json.dumps(arguments).encode())


def new_job(
    id: str = "",
    arguments: object = (),
    *,
    priority: int = 0,
    due: str = "",
    expiry: str = "",
    again: OnSameId = REJECT,
    **options: Any,
) -> NewJob:
    """A job to be made."""
    if expiry:
        options["expires_ms" if expiry.startswith("+") else "expires_at"] = int(expiry)
    return NewJob(id, priority, due, expiry, body(arguments, priority=priority, **options), again)


def parts(*, data: bool = False, run_at: bool = False, options: bool = False) -> Update:
    """The parts of a run that an update replaces."""
    return Update(data=data, run_at=run_at, options=options, retry=False, max_stalls=False, reset_counts=False)


class Driver:
    """A store on a real server, in a namespace of its own."""

    def __init__(self, server: Server, namespace: str, *, patience: float = 5.0) -> None:
        self.server = server
        self.keys = Keys(namespace)
        self.redis_client = RedisClient(parse_address(server.url), clock=CLOCK, patience=patience)
        self.views = Views(self.redis_client, self.keys)
        self.redis = server.client()
        self.redis.set(CLOCK, 0, px=CLOCK_LIFE_MS)
        self.client = JobStore(self.redis_client, self.keys, "client")
        self.ties = self.client.dependencies
        self.flows = WorkflowStore(self.client)
        self._workers: dict[str, Worker] = {}

    async def close(self) -> None:
        await self.redis_client.close()
        self.redis.delete(CLOCK)
        self.redis.close()

    # --- acting ------------------------------------------------------------------------------------------------

    def worker(self, name: str = "w1") -> Worker:
        """The worker of that name, always the same one."""
        if name not in self._workers:
            self._workers[name] = Worker(JobStore(self.redis_client, self.keys, name))
        return self._workers[name]

    async def enqueue(self, *jobs: NewJob, queue: str = QUEUE) -> list[JobRef]:
        """Makes jobs that must all be new, or one plain job."""
        made = await self.client.enqueue(queue, jobs or [new_job()])
        assert all(one.is_new for one in made), made
        return [ref_of(one, queue) for one in made]

    async def one(self, id: str = "", *, queue: str = QUEUE, **options: Any) -> JobRef:
        """Makes one job."""
        return (await self.enqueue(new_job(id, **options), queue=queue))[0]

    async def after(
        self, *parents: Any, id: str = "", queue: str = QUEUE, again: OnSameId = REJECT, **options: Any
    ) -> JobRef:
        """Makes one job that comes after others."""
        named = checked_parents(parents)
        job = new_job(id, again=again, after=tuple(map(str, named)), **options)
        (made,) = await self.ties.enqueue_dependents(queue, [JobWithParents(job, named)])
        assert made.is_new, made
        return ref_of(made, queue)

    async def post(self, queue: str = QUEUE) -> None:
        """Delivers all news, as a worker would."""
        await self.ties.deliver_all(queue)

    async def workflow(
        self, id: str, *, queue: str = QUEUE, steps: int = 1, limit: int = 0, on_failure: str = "hold"
    ) -> str:
        """Commits a workflow of steps that come one after another; the state it is in."""
        plans: list[StepRecord] = []
        edges: list[Edge] = []
        for place in range(steps):
            before = [Parent(JobRef(queue, f"{id}.{place - 1}"))] if place else []
            gate = [Parent(JobRef("~", id))] if limit and not place else []
            tied = JobWithParents(new_job(f"{id}.{place}"), [*before, *gate])
            (one,), _ = await self.ties.prepare_dependents(queue, {0: tied}, kind="step", keep_ms=60_000)
            after = (place - 1,) if place else ()
            plans.append(StepRecord(one.id, queue, one.run, "noop", after, f"step{place}"))
            if place:
                parent = JobRef(queue, plans[place - 1].id, plans[place - 1].run)
                edges.append(Edge(queue, one.run, Parent(parent), before[0].name))
            edges.append(workflow_edge(id, f"s{place}", queue, one.id, one.run))
        await self.ties.register_dependents(edges)
        fields = {"name": "order", "limit": str(limit), "on_failure": on_failure, "gate": "shut" if limit else "open"}
        state = await self.flows.open(id, plans, fields, nonce=id)
        await self.flows.drive(id)
        return state

    async def flow(self, id: str) -> WorkflowRecord:
        """A workflow as it stands."""
        flow = await self.flows.read(id)
        assert flow is not None
        return flow

    async def dead_letter(self, id: str = "", *, keep: Keep = DEFAULT_KEEP) -> JobRef:
        """Makes a job that has failed for good."""
        ref = await self.one(id)
        (job,) = await self.worker("undertaker").claim()
        assert job.run == ref.run, "something else was pending"
        assert await self.worker("undertaker").fail(job, keep=keep) == "ok"
        return ref

    def advance(self, ms: int) -> None:
        """Moves the clock, as if no call had reached the server meanwhile. A stopped clock stays stopped."""
        offset = cast(bytes, self.redis.get(CLOCK))
        if offset.startswith(b"="):
            self.redis.set(CLOCK, f"={int(offset[1:]) + ms}", px=CLOCK_LIFE_MS)
        else:
            self.redis.incrby(CLOCK, ms)

    def stop_clock(self) -> None:
        """Lets no time pass any more: the commands of a script then depend on its data alone."""
        self.redis.set(CLOCK, f"={self.now()}", px=CLOCK_LIFE_MS)

    async def advance_with_ticks(self, ms: int, *, by: str = "observer") -> None:
        """Lets time pass while a worker keeps in touch, so that the store has answered all along."""
        await self.worker(by).beat()
        while ms > 0:
            self.advance(min(ms, TICK_MS))
            ms -= TICK_MS
            await self.worker(by).beat()

    def inbox(self, participant: str) -> Inbox:
        """Subscribes to the notifications of a participant."""
        return Inbox(self.redis, self.keys.inbox(participant))

    # --- looking -----------------------------------------------------------------------------------------------

    def now(self) -> int:
        """The time as the scripts see it, ms."""
        offset = cast(bytes, self.redis.get(CLOCK))
        if offset.startswith(b"="):
            return int(offset[1:])
        seconds, micros = self.redis.time()
        return seconds * 1000 + micros // 1000 + int(offset)

    async def read(self, ref: JobRef) -> Snapshot:
        """One run; it must exist."""
        (found,) = await self.views.read_runs(ref.queue, [ref])
        assert found is not None, f"{ref} does not exist"
        return found

    async def exists(self, ref: JobRef) -> bool:
        return (await self.views.read_runs(ref.queue, [ref])) != [None]

    async def state(self, ref: JobRef) -> JobState:
        return (await self.read(ref)).record.state

    def key(self, name: str, part: str = "", *, queue: str = QUEUE) -> str:
        return self.keys.queue(queue, name, part)

    def index(self, name: str, part: str = "", *, queue: str = QUEUE) -> dict[str, float]:
        """One sorted set: member -> score."""
        entries = self.redis.zrange(self.key(name, part, queue=queue), 0, -1, withscores=True)
        return {member.decode(): score for member, score in cast(list[tuple[bytes, float]], entries)}

    def hash(self, name: str, part: str = "", *, queue: str = QUEUE) -> dict[str, str]:
        """One hash."""
        return self.hashes(name, [part], queue=queue)[part]

    def hashes(self, name: str, parts: Iterable[str], *, queue: str = QUEUE) -> dict[str, dict[str, str]]:
        """Many hashes of one name: part -> hash."""
        keys = {part: self.key(name, part, queue=queue) for part in parts}
        found: dict[str, dict[bytes, bytes]] = read_keys(self.redis, list(keys.values()))
        return {
            part: {
                field.decode(): value.decode(errors="backslashreplace") for field, value in (found[key] or {}).items()
            }
            for part, key in keys.items()
        }

    def members(self, name: str, part: str = "", *, queue: str = QUEUE) -> set[str]:
        """One set."""
        return {member.decode() for member in cast(set[bytes], self.redis.smembers(self.key(name, part, queue=queue)))}

    def events(self, *, queue: str = QUEUE) -> list[tuple[str, str]]:
        """Verb and runs of all that has been told, in order."""
        entries = cast(list[tuple[bytes, dict[bytes, bytes]]], self.redis.xrange(self.key("events", queue=queue)))
        return [(verb.decode(), runs.decode()) for _, fields in entries for verb, runs in fields.items()]

    def counts(self, *, queue: str = QUEUE) -> dict[str, int]:
        """Runs in each state, where there are any."""
        found = {state: len(self.index(state, queue=queue)) for state in STATES}
        return {state: count for state, count in found.items() if count}

    def dump(self, *without: str) -> Dump:
        """Everything that is stored, but for the keys (by their names in the table of keys) to leave out."""
        specs = {**QUEUE_KEYS, **GLOBAL_KEYS}
        left_out = {specs[name].pattern.partition(":")[0] for name in without}
        kept = [
            key
            for key in self.all_keys()
            if key.partition("}:")[2].removeprefix("fail:").partition(":")[0] not in left_out
        ]
        return read_keys(self.redis, kept)

    def all_keys(self) -> list[str]:
        return find_keys(self.redis, self.keys.namespace)

    def check(self, *, queue: str = QUEUE) -> None:
        """Fails unless every index, record and secondary entry of the queue agrees with the others."""
        problems = list(self._problems(queue))
        assert not problems, "\n".join(problems)

    async def check_with_doctor(self, *, queue: str = QUEUE) -> None:
        """Fails if `rota doctor` would report a problem of the queue's indexes, which agree."""
        walk = IndexRepair(self.client).walk(queue, "check")
        problems = [problem async for checked in walk for problem in checked.problems if problem.is_repairable]
        assert not problems, problems

    def _problems(self, queue: str) -> Iterator[str]:
        indexes = {state: self.index(state, queue=queue) for state in STATES}
        jobs, lines = self.hash("jobs", queue=queue), self.hash("runs", queue=queue)
        stopping, expiring = self.index("stopping", queue=queue), self.index("expiring", queue=queue)
        state_of: dict[str, str] = {}
        for state, entries in indexes.items():
            for run in entries:
                if run in state_of:
                    yield f"{run} is {state_of[run]} and {state}"
                state_of[run] = state
        for run in state_of.keys() ^ (jobs.keys() - self.index("prepared", queue=queue).keys()):
            yield f"{run} is in one of index ({state_of.get(run)}) and records ({run in jobs}), not in both"
        for run, line in lines.items():
            said, indexed = line.partition(" ")[0], state_of.get(run)
            if run not in jobs and run not in stopping:
                yield f"{run} is forgotten, but for: {line}"
            elif indexed and said != ("waiting" if indexed in WAITING else indexed):
                yield f"{run} is in {indexed}, but its record says: {line}"
        for run, state in state_of.items():
            if state not in WAITING and run not in lines:
                yield f"{run} is {state} without a record of what happened"
        yield from self._secondary_problems(queue, jobs, stopping)
        for run in expiring:
            if state_of.get(run) not in WAITING:
                yield f"{run} would expire, but is {state_of.get(run)}"
        stored = self.hash("meta", queue=queue).get("longest_job", "")
        longest = int(stored) if stored.isdigit() else SHORT_RECORD
        for run, record in jobs.items():
            if len(record.encode()) > longest:
                yield f"{run} has {len(record)} bytes, more than a claim expects: {longest}"
        yield from self._retention_problems(queue, indexes)
        yield from self._lock_problems(queue, state_of, jobs)
        yield from self._tie_problems(queue, state_of, jobs)
        yield from self._news_problems(queue, jobs)
        yield from self._index_problems(queue, state_of, jobs)

    def _index_problems(self, queue: str, state_of: Mapping[str, str], jobs: Mapping[str, str]) -> Iterator[str]:
        """Each run is found by its task, its terms and its error, and nothing else is found."""
        slots, chunks = self.hash("task_numbers", queue=queue), self.hash("task_index_sizes", queue=queue)
        visible = {run: jobs[run] for run in jobs.keys() & state_of.keys()}
        columns: dict[str, str] = {}
        for chunk in chunks:
            found = cast(bytes, self.redis.get(self.key("task_index", chunk, queue=queue)) or b"")
            columns |= {chunk + encode_run(n)[7:]: str(slot) for n, slot in enumerate(found) if slot}
        for run in columns.keys() ^ visible.keys():
            yield f"{run} is in one of records and columns, not in both"
        for run, record in visible.items():
            task = record.split("\n")[2] if record.count("\n") > 2 else "?"
            if task not in ("", "?") and columns.get(run) not in (slots.get(task), "1"):
                yield f"{run} of {task} ({slots.get(task)}) is in the column as {columns.get(run)}"
        counted = {chunk: str(sum(run[:7] == chunk for run in visible)) for chunk in {run[:7] for run in visible}}
        if counted != chunks:
            yield f"chunks: {chunks}, but there are {counted}"
        yield from self._term_problems(queue, state_of, visible)

    def _term_problems(self, queue: str, state_of: Mapping[str, str], jobs: Mapping[str, str]) -> Iterator[str]:
        terms, errors = self.hash("terms", queue=queue), self.hash("errors", queue=queue)
        for run, record in jobs.items():
            options = (record.split("\n")[1] if "\n" in record else "").split("\t")
            wanted = set(options[7].split()) if len(options) > 7 else set[str]()
            has = set(terms.get(run, "").split())
            if run in errors and not any(word.startswith("error=") for word in has):
                yield f"{run} is not found by its error: {has}"
            if (state_of[run] == "failed") != any(word.startswith("group=") for word in has):
                yield f"{run} is {state_of[run]}, and has the terms {has}"
            if wanted != {word for word in has if not word.startswith(("error=", "group="))}:
                yield f"{run} has the terms {has}, not {wanted}"
        held = {(word, run) for run, words in terms.items() for word in words.split()}
        prefix = self.key("term", "x", queue=queue)[:-1]
        words = [key.removeprefix(prefix) for key in self.all_keys() if key.startswith(prefix)]
        found = {(word, run) for word in words for run in self.index("term", word, queue=queue)}
        for word, run in held ^ found:
            yield f"{run} and {word}: only one of them knows the other"
        groups, described = (
            {word[6:] for word in words if word.startswith("group=")},
            self.hash("error_groups", queue=queue),
        )
        if groups != described.keys():
            yield f"groups are described as {described}, but there are {groups}"

    def _lock_problems(self, queue: str, state_of: Mapping[str, str], jobs: Mapping[str, str]) -> Iterator[str]:
        """Of the runs of a lock that are due, one is pending or at work, and the others wait in its lane."""
        locked, locks = self.hash("locked", queue=queue), self.hash("locks", queue=queue)
        stopping = self.index("stopping", queue=queue)
        lanes = {lock: self.index("lane", lock, queue=queue) for lock in {*locked.values(), *locks.keys()}}
        for run, record in jobs.items():
            lock, state = _lock(run, record), state_of.get(run)
            if lock and (state in WAITING or state == "processing") and locked.get(run) != lock:
                yield f"{run} is {state} and wants lock {lock}, not {locked.get(run)}"
        for run, lock in locked.items():
            state = state_of.get(run)
            if state not in (*WAITING, "processing") and run not in stopping:
                yield f"{run} is {state}, but still has lock {lock}"
            is_occupant = locks.get(lock) == run
            if (state in ("pending", "processing") or run in stopping) and not is_occupant:
                yield f"{run} is {state}, but lock {lock} belongs to {locks.get(lock)}"
            if is_occupant and state in ("scheduled", "blocked"):
                yield f"{run} is {state} and holds lock {lock}"
            if is_occupant and run in lanes[lock]:
                yield f"{run} holds lock {lock} and waits for it"
        for lock, lane in lanes.items():
            if lane and lock not in locks:
                yield f"no run holds lock {lock}, and {sorted(lane)} wait for it"
            for run in lane:
                if state_of.get(run) != "blocked":
                    yield f"{run} waits for lock {lock} and is {state_of.get(run)}"
        for lock, run in locks.items():
            if locked.get(run) != lock:
                yield f"lock {lock} belongs to {run}, which has {locked.get(run)}"

    def _tie_problems(self, queue: str, state_of: Mapping[str, str], jobs: Mapping[str, str]) -> Iterator[str]:
        """A blocked run knows what it waits for, and what it waits for knows the run."""
        followers, follows = self.hash("follow_ups", queue=queue), self.hash("follows", queue=queue)
        stopping, unborn = self.index("stopping", queue=queue), self.index("prepared", queue=queue)
        locked = self.hash("locked", queue=queue)
        for holder, entry in followers.items():
            run = entry.partition(" ")[0]
            if follows.get(run) != holder or state_of.get(run) != "blocked":
                yield f"{run} follows {follows.get(run)}, not {holder}, and is {state_of.get(run)}"
            if state_of.get(holder) != "processing" and holder not in stopping:
                yield f"{run} follows {holder}, which is {state_of.get(holder)}"
        for run, holder in follows.items():
            if followers.get(holder, "").partition(" ")[0] != run:
                yield f"{run} follows {holder}, which knows nothing of it"
        needs = self.hashes("parents", self.members("has_parents", queue=queue), queue=queue)
        for run in needs:
            if run not in jobs:
                yield f"{run} is forgotten, but for what it comes after"
        lanes = {lock: self.index("lane", lock, queue=queue) for lock in set(locked.values())}
        paused = self.hash("paused_tasks", queue=queue)
        set_aside = {run for task in paused for run in self.index("paused_runs", task, queue=queue)}
        for run in set_aside - state_of.keys():
            yield f"{run} was set aside and is forgotten"
        for run, state in state_of.items():
            waits_for_lock = run in locked and run in lanes[locked[run]]
            reasons = [run in follows, bool(needs.get(run)), waits_for_lock, run in set_aside]
            if state == "blocked" and sum(reasons) != 1:
                yield f"{run} is blocked for {sum(reasons)} reasons: same id, after, lock, task = {reasons}"
            if state in ("pending", "scheduled", "processing") and any(reasons):
                yield f"{run} is {state} in spite of: same id, after, lock, task = {reasons}"
        for run in unborn:
            if run not in jobs:
                yield f"{run} is unborn and has no record"
        merged = self.hash("merged_into", queue=queue)
        for run, holder in merged.items():
            if holder not in jobs and holder not in stopping:
                yield f"{run} became a part of {holder}, which is forgotten"

    def _news_problems(self, queue: str, jobs: Mapping[str, str]) -> Iterator[str]:
        """What is kept of ties goes with the runs that it ties, or with the news that is still to be told."""
        parents, tied = self.members("has_dependents", queue=queue), self.members("has_parents", queue=queue)
        outbox, endings = self.index("outbox", queue=queue), self.hash("outcomes", queue=queue)
        merged = self.hash("merged_into", queue=queue)
        for run in parents - jobs.keys() - merged.keys() - outbox.keys():
            if run not in self.index("stopping", queue=queue):
                yield f"{run} is forgotten, but for those who come after it"
        for name, entries in (("outbox", outbox), ("outcomes", endings)):
            for run in entries.keys() - parents:
                yield f"{run} is in {name}, and has no dependents"
        for name, owners in (("dependents", parents), ("parents", tied), ("failed_parents", tied)):
            prefix = self.key(name, queue=queue) + ":"
            for key in self.all_keys():
                if key.startswith(prefix) and key.removeprefix(prefix) not in owners:
                    yield f"{key} belongs to no run"

    def _secondary_problems(self, queue: str, jobs: Mapping[str, str], stopping: Mapping[str, float]) -> Iterator[str]:
        ids, named = self.hash("ids", queue=queue), self.hash("named", queue=queue)
        for id, run in ids.items():
            if named.get(run) != id:
                yield f"id {id} points to {run}, which is called {named.get(run)}"
        for run, id in named.items():
            if run not in jobs and run not in stopping:
                yield f"{run} is forgotten, but for its id {id}"
        for name in ("results", "errors", "history", "progress", "logs", "waiters", "blobs"):
            for run in self.hash(name, queue=queue).keys() - jobs.keys():
                yield f"{run} is forgotten, but for {name}"
        logs = self.hash("logs", queue=queue)
        prefix = self.key("log", queue=queue) + ":"
        for key in self.all_keys():
            if key.startswith(prefix) and key.removeprefix(prefix) not in logs:
                yield f"{key} belongs to no run"

    def _retention_problems(self, queue: str, indexes: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
        rules = self.members("retention_rules", queue=queue)
        entries: dict[str, set[str]] = {state: set() for state in FINISHED}
        prefix = self.key("kept", queue=queue) + ":"
        for key in self.all_keys():
            if key.startswith(prefix):
                rule = key.removeprefix(prefix)
                if rule not in rules:
                    yield f"no retention rule covers {key}"
                found = cast(list[bytes], self.redis.lrange(key, 0, -1))
                state = rule.partition(":")[0]
                entries[state] |= {entry.decode() for entry in found}
                for run, _, ended_at in (entry.decode().partition(" ") for entry in found):
                    if f"{indexes[state].get(run, 0):.0f}" != ended_at:
                        yield f"{key} counts {run}, which is no longer {state} since {ended_at}"
        # What a workflow may still need is kept until that has ended.
        steps = {run.decode() for run in cast(set[bytes], self.redis.smembers(self.key("steps", queue=queue)))}
        for state in FINISHED:
            for run, ended_at in indexes[state].items():
                is_needed = run in steps and state != "completed"
                if f"{run} {ended_at:.0f}" not in entries[state] and not is_needed:
                    yield f"{run} is {state} and would be kept permanently"


class Worker:
    """A worker as the store sees it: it claims, and reports on its claims one at a time."""

    def __init__(self, store: JobStore) -> None:
        self.store = store
        self.name = store.participant
        self._call = 0

    async def claims(
        self, limit: int = 1, *, queue: str = QUEUE, lease_ms: int = LEASE_MS, task_room: str = ""
    ) -> ClaimReply:
        """A new claim: the jobs, and how long there is to wait."""
        self._call += 16
        return await self.claims_again(limit, queue=queue, lease_ms=lease_ms, task_room=task_room)

    async def claims_again(
        self, limit: int = 1, *, queue: str = QUEUE, lease_ms: int = LEASE_MS, task_room: str = ""
    ) -> ClaimReply:
        """The latest claim, sent again."""
        return await self.store.claim(
            queue,
            limit,
            call_number=self._call,
            claim_token=f"{self.name}-{self._call}",
            lease_ms=lease_ms,
            task_room=task_room,
        )

    async def claim(self, limit: int = 1, *, queue: str = QUEUE, lease_ms: int = LEASE_MS) -> list[ClaimedJob]:
        """A new claim: the jobs it brought."""
        return (await self.claims(limit, queue=queue, lease_ms=lease_ms)).jobs

    async def report(self, report: Report, *, queue: str = QUEUE) -> str:
        """ "ok", or why it was refused."""
        return (await self.store.report(queue, [report])).get(report.run, "ok")

    async def complete(self, job: ClaimedJob, result: bytes = b"", *, keep: Keep = DEFAULT_KEEP) -> str:
        return await self.report(completed(job, result, keep=keep), queue=job.queue)

    async def fail(
        self, job: ClaimedJob, again: str = "final", *, keep: Keep = DEFAULT_KEEP, message: str = "boom"
    ) -> str:
        return await self.report(failed(job, again, keep=keep, message=message), queue=job.queue)

    async def snooze(self, job: ClaimedJob, again: str) -> str:
        return await self.report(Snoozed(job.run, job.claim, again), queue=job.queue)

    async def hand_back(self, job: ClaimedJob, started: str = "started") -> str:
        return await self.report(Returned(job.run, job.claim, started), queue=job.queue)

    async def give_up(self, job: ClaimedJob, reason: str = "") -> str:
        return await self.report(Cancelled(job.run, job.claim, reason), queue=job.queue)

    async def confirm_cancelled_run_stopped(self, job: ClaimedJob) -> str:
        return await self.report(CancelConfirmed(job.run, job.claim), queue=job.queue)

    async def lose(self, job: ClaimedJob) -> str:
        return await self.report(Lost(job.run, job.claim), queue=job.queue)

    async def end(self, job: ClaimedJob, verb: str) -> str:
        """Reports the end of an attempt in one of the ways of `ENDS`."""
        match verb:
            case "complete":
                return await self.complete(job, b'"done"')
            case "fail":
                return await self.fail(job, "")
            case "fail for good":
                return await self.fail(job)
            case "snooze":
                return await self.snooze(job, "")
            case "hand back":
                return await self.hand_back(job)
            case "give up":
                return await self.give_up(job)
            case _:
                assert verb == "lose"
                return await self.lose(job)

    async def beat(
        self, *jobs: ClaimedJob, lease_ms: int = LEASE_MS, gives_up_last_claim: bool = False
    ) -> dict[str, str]:
        """A heartbeat that names these jobs."""
        leases = [(job.run, job.claim) for job in jobs]
        given_up = self._call if gives_up_last_claim else None
        return await self.store.heartbeat(QUEUE, leases, lease_ms=lease_ms, given_up=given_up)


class Inbox:
    """What is said on one channel."""

    END: Final = "that was all"

    def __init__(self, client: redis.Redis, channel: str) -> None:
        self._client = client
        self._channel = channel
        self._subscription = client.pubsub(ignore_subscribe_messages=False)
        self._subscription.subscribe(channel)
        self._next()

    def told(self) -> list[str]:
        """All that was said since the last look. Marks the end by a message of its own, so nothing is waited for."""
        self._client.publish(self._channel, self.END)
        heard: list[str] = []
        while (text := self._next()) != self.END:
            heard.append(text)
        return heard

    def close(self) -> None:
        self._subscription.close()

    def __enter__(self) -> Inbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _next(self) -> str:
        message = self._subscription.get_message(timeout=5)
        assert message is not None, "nothing was heard"
        data = message["data"]
        return data.decode() if isinstance(data, bytes) else ""


def ref_of(made: EnqueueResult, queue: str = QUEUE) -> JobRef:
    return JobRef(queue, made.id, made.run)


def run_of(ref: JobRef) -> str:
    """The run of a reference that has one."""
    assert ref.run is not None
    return ref.run


def refs_of(jobs: Sequence[ClaimedJob]) -> list[str]:
    return [job.run for job in jobs]


def completed(job: ClaimedJob, result: bytes = b"", *, keep: Keep = DEFAULT_KEEP) -> Completed:
    return Completed(job.run, job.claim, keep.retention(JobState.COMPLETED), result)


def failed(job: ClaimedJob, again: str = "final", *, keep: Keep = DEFAULT_KEEP, message: str = "boom") -> Failed:
    error = encode_error(ErrorRecord(type="ValueError", message=message))
    return Failed(job.run, job.claim, again, keep.retention(JobState.FAILED), error)


def _lock(run: str, record: str) -> str:
    """The lock that a record asks for; a record that cannot be read asks for none."""
    try:
        return decode_body(run, record.encode()).options.lock
    except UndecodableRecord:
        return ""
