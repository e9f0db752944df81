"""Writes jobs: one method per transition, each of them one script call.

Every call is idempotent, which the retries of `RedisClient` rely on: the server recognises a repeated enqueue or claim
by its call number, a report by its claim, and any other call by a random token.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections.abc import AsyncGenerator, Coroutine, Mapping, Sequence, Set
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple

import msgspec

from rota.core.ids import JobRef
from rota.core.lease_heartbeat_poll_and_grace_durations import WorkerDurations, outage_gap_ms
from rota.core.same_id_policy import Update
from rota.store.batch_limit_constants import (
    BATCH,
    BATCH_BY_VERB,
    HOUSEKEEPING_BATCH,
    MAX_PAUSED_TASKS,
    PURGE_BATCH,
    PURGE_SCANNED,
)
from rota.store.claim_replies import ClaimReply, read_claim_reply
from rota.store.create_dependents_and_deliver_outcomes import DependencyStore
from rota.store.enqueue_batcher import EnqueueBatcher, EnqueueResult, NewJob
from rota.store.keys import Keys
from rota.store.redis.retrying_client import Argument, RedisClient, ScriptCall
from rota.store.redis.script_compiler import script
from rota.store.report_encoding import (
    LATER,
    VERBS,
    Report,
    encode_completed,
    read_postponed,
    read_refusals,
    split_reports,
)

#: A lease without a heartbeat expires after this, and the job runs elsewhere a moment later.
LEASE_MS: Final = WorkerDurations().lease_ms
#: An outage of the server that is shorter goes unnoticed, with leases of the default length.
OUTAGE_GAP_MS: Final = outage_gap_ms(LEASE_MS)


class RegistrationReply(NamedTuple):
    """The reply to the registration of a worker."""

    #: The server's time, ms.
    now: int
    #: What needs a driver: "workflows", "operations".
    due: Set[str]


class JobStore:
    """Moves jobs between their states. `participant` identifies this client or worker in the server."""

    def __init__(self, redis: RedisClient, keys: Keys, participant: str) -> None:
        self.redis = redis
        self.keys = keys
        self.participant = participant
        self.dependencies = DependencyStore(self)
        self._batchers: dict[str, EnqueueBatcher] = {}
        #: Queue -> number of the latest numbered call, and the lock that keeps one of them in flight.
        self._call_numbers: dict[str, int] = {}
        self._call_locks: dict[str, asyncio.Lock] = {}
        self._progress_numbers = itertools.count(1)
        self._registration_numbers = itertools.count(1)
        #: Queue -> where its retention goes on.
        self._retention_cursors: dict[str, str] = {}
        self._script_keys: dict[tuple[str, str], Sequence[str]] = {}

    # --- producers ---------------------------------------------------------------------------------------------

    def enqueue(self, queue: str, jobs: Sequence[NewJob]) -> Coroutine[Any, Any, list[EnqueueResult]]:
        """Enqueues jobs. Concurrent calls share a batch; each batch is stored as a whole or not at all."""
        batcher = self._batchers.get(queue)
        if batcher is None:
            keys = {name: self.script_keys(name, queue) for name in ("enqueue", "enqueue_fast")}
            batcher = self._batchers[queue] = EnqueueBatcher(self.redis, queue, self.keys.inbox_prefix, keys)
        return batcher.enqueue(jobs)

    async def publish_prepared_runs(self, queue: str, runs: Sequence[str]) -> list[str]:
        """Publishes prepared runs, see `DependencyStore`: "visible", "missing" or "in_use" for each."""
        answer: bytes = await self._run_once("publish_prepared_runs", queue, runs)
        return answer.decode().split(" ")

    async def cancel(self, ref: JobRef, *, reach: str = "any", reason: str = "") -> str:
        """Cancels a run: "cancelled", or "stopping" while its handler is being stopped.

        With `reach="earlier"` the run that this one follows up, if there is one. Otherwise "missing", "processing" if
        `reach` excludes running jobs, or "ended" and the final state.
        """
        answer = await self._run_once("cancel", ref.queue, [ref.id, ref.run or "", reach, reason])
        return answer.decode()

    async def update(
        self, ref: JobRef, *, seen_digest: str, parts: Update, priority: int, due: str, expiry: str, body: bytes
    ) -> str:
        """Replaces parts of a waiting run, or the arguments of a dead letter: "updated".

        Otherwise "missing", "changed" if the record has another digest by now, "processing", or "ended" and the state.
        """
        words: list[Argument] = [ref.id, ref.run or "", seen_digest, parts.flags, priority, due, expiry, body]
        answer = await self._run_once("update", ref.queue, words)
        return answer.decode()

    async def delete(self, ref: JobRef) -> str:
        """Deletes a run: "deleted", "stopping" while its handler is being stopped, or "missing"."""
        answer = await self._run_once("delete", ref.queue, [ref.id, ref.run or ""])
        return answer.decode()

    async def redrive(self, queue: str, refs: Sequence[JobRef]) -> list[str]:
        """Redrives dead letters. Returns an outcome for each: "redriven", or why not."""
        outcomes: list[str] = []
        size = BATCH_BY_VERB["redrive"]
        while len(outcomes) < len(refs):  # one call may do fewer, where jobs are long
            part = refs[len(outcomes) : len(outcomes) + size]
            pairs = [word for ref in part for word in (ref.id, ref.run or "")]
            outcomes += (await self._run_once("redrive", queue, pairs)).decode().split(" ")
        return outcomes

    async def purge(self, queue: str, limit: int = PURGE_BATCH, *, newest: str = "") -> int:
        """Deletes up to `limit` waiting runs of the queue, none newer than `newest`. Returns how many.

        One call deletes fewer if the runs have parents or dependents; 0 means that none are left.
        """
        after = ""
        while True:
            answer = (
                await self._run_once("purge", queue, [min(limit, PURGE_BATCH), newest, PURGE_SCANNED, after])
            ).decode()
            if not answer.startswith("after"):
                return int(answer)
            after = answer.removeprefix("after ")

    async def pause_queue(self, queue: str, *, wanted: str, by: str = "", note: str = "") -> None:
        """Pauses ("paused") or resumes ("open") claims of the queue."""
        await self._run_once("pause_or_resume_queue", queue, [wanted, by, note])

    async def pause_task(self, queue: str, task: str, *, by: str = "", note: str = "") -> bool:
        """Pauses a task of the queue. False if too many are paused."""
        info = msgspec.json.encode({"by": by, "note": note})
        return await self._pause_task(queue, "paused", task, info) == b"paused"

    async def resume_task(self, queue: str, task: str) -> bool:
        """Resumes a task of the queue, and puts back some of its runs. True if claims have to put back more."""
        return await self._pause_task(queue, "open", task, b"") == b"more"

    async def _pause_task(self, queue: str, wanted: str, task: str, info: bytes) -> bytes:
        words: list[Argument] = [wanted, task, info, MAX_PAUSED_TASKS, HOUSEKEEPING_BATCH]
        return await self._run_once("pause_or_resume_task", queue, words)

    async def watch(self, ref: JobRef) -> tuple[str, bool] | None:
        """Subscribes this participant to the end of a run. Returns the run, and if it has ended; None if missing."""
        keys = self.script_keys("watch_run_end", ref.queue)
        answer = await self.redis.run("watch_run_end", keys, [ref.id, ref.run or "", self.participant])
        return (answer[0].decode(), answer[1] == b"ended") if len(answer) == 2 else None

    # --- workers -----------------------------------------------------------------------------------------------

    async def claim(
        self,
        queue: str,
        limit: int,
        *,
        call_number: int,
        claim_token: str,
        lease_ms: int = LEASE_MS,
        task_room: str = "",
    ) -> ClaimReply:
        """Leases up to `limit` runs to this participant. `call_number` must grow with each claim of the queue."""
        request = self.claim_call(
            queue, limit, call_number=call_number, claim_token=claim_token, lease_ms=lease_ms, task_room=task_room
        )
        return read_claim_reply(queue, claim_token, await self.redis.run(*request))

    def claim_call(
        self,
        queue: str,
        limit: int,
        *,
        call_number: int,
        claim_token: str,
        next_claim_token: str = "",
        lease_ms: int = LEASE_MS,
        outage_gap_ms: int = OUTAGE_GAP_MS,
        task_room: str = "",
    ) -> ScriptCall:
        """The call of a claim, to be sent together with reports. `read_claim_reply` reads the reply.

        With `next_claim_token` and fewer than `limit` jobs found, the server keeps the next claim open: it fulfils it
        with a push, which `read_push` reads. `task_room` names the tasks that may be full: see `TaskSlots`.
        """
        arguments: list[Argument] = [
            queue,
            self.keys.inbox_prefix,
            call_number,
            self.participant,
            claim_token,
            min(limit, BATCH),
            lease_ms,
            HOUSEKEEPING_BATCH,
            next_claim_token,
            task_room,
            outage_gap_ms,
        ]
        return ScriptCall("claim", self.script_keys("claim", queue), arguments)

    def report_calls(self, queue: str, reports: Sequence[Report]) -> list[tuple[ScriptCall, Sequence[Report]]]:
        """The calls that store reports, each with the reports that it carries, for `read_refusals`."""
        by_verb: dict[str, list[Report]] = {}
        for report in reports:
            by_verb.setdefault(VERBS[type(report)], []).append(report)
        calls: list[tuple[ScriptCall, Sequence[Report]]] = []
        for verb, of_verb in by_verb.items():
            for part in split_reports(of_verb, BATCH_BY_VERB.get(verb, BATCH)):
                words: list[Argument] = [queue, self.keys.inbox_prefix]
                if verb == "complete":
                    part = encode_completed(part, words)
                else:
                    for report in part:
                        words += msgspec.structs.astuple(report)
                calls.append((ScriptCall(verb, self.script_keys(verb, queue), words), part))
        return calls

    async def report(self, queue: str, reports: Sequence[Report]) -> dict[str, str]:
        """Stores reports. Returns run -> reason, for each that was refused."""
        refused: dict[str, str] = {}
        while reports:
            calls = self.report_calls(queue, reports)
            answers = await self.redis.run_many([call for call, _ in calls])
            reports = []
            for answer, (_, part) in zip(answers, calls, strict=True):
                refused |= read_refusals(answer, part)
                reports += read_postponed(answer, part)
        return {run: why for run, why in refused.items() if why != LATER}

    async def heartbeat(
        self,
        queue: str,
        claims: Sequence[tuple[str, str]],
        *,
        given_up: int | None = None,
        lease_ms: int = LEASE_MS,
        outage_gap_ms: int = OUTAGE_GAP_MS,
        on_separate_connection: bool = False,
    ) -> dict[str, str]:
        """Extends the leases of (run, claim) pairs. Returns run -> "cancelled" | "lost", for handlers to stop.

        `given_up` is the call number of a claim without a reply whose runs this worker will not start, even if the
        reply comes: they return without a stall.
        """
        stopped: dict[str, str] = {}
        for start in range(0, max(1, len(claims)), BATCH):
            part = claims[start : start + BATCH]
            words: list[Argument] = [self.participant, lease_ms, "" if given_up is None else given_up, outage_gap_ms]
            words += [word for pair in part for word in pair]
            run = self.redis.run_on_separate_connection if on_separate_connection else self.redis.run
            answer = await run("heartbeat", self.script_keys("heartbeat", queue), words)
            stopped |= {part[int(answer[at])][0]: answer[at + 1].decode() for at in range(0, len(answer), 2)}
        return stopped

    async def save_progress(self, queue: str, items: Sequence[tuple[str, str, str, str, str]]) -> None:
        """Stores progress: run, claim, done, total and note for each. Ignores claims that no longer own their run."""
        await self.redis.run(*self.save_progress_call(queue, items))

    def save_progress_call(self, queue: str, items: Sequence[tuple[str, str, str, str, str]]) -> ScriptCall:
        """The call of `save_progress`, to be sent together with others."""
        words: list[Argument] = [next(self._progress_numbers), *(word for item in items for word in item)]
        return ScriptCall("save_progress", self.script_keys("save_progress", queue), words)

    async def append_log(self, queue: str, run: str, claim: str, first: int, lines: Sequence[str]) -> bool:
        """Appends lines to the log of a run, numbered from `first` within the claim. False if the claim is lost."""
        return await self.redis.run(*self.append_log_call(queue, run, claim, first, lines)) == b"ok"

    def append_log_call(self, queue: str, run: str, claim: str, first: int, lines: Sequence[str]) -> ScriptCall:
        """The call of `append_log`, to be sent together with others."""
        return ScriptCall("append_log", self.script_keys("append_log", queue), [run, claim, first, *lines])

    async def leave_queue(self, queue: str) -> None:
        """Removes this worker from the idle workers of the queue, and wakes another one if there is work."""
        await self._run("remove_worker_from_queue", queue, [self.participant])

    async def apply_retention(self, queue: str) -> bool:
        """Deletes finished runs whose retention has ended. True when there are more."""
        keys, size = self.script_keys("apply_retention", queue), BATCH_BY_VERB["apply_retention"]
        cursor = self._retention_cursors.pop(queue, "0")
        answer = (await self.redis.run("apply_retention", keys, [size, cursor])).decode()
        if answer == "done":
            return False
        self._retention_cursors[queue] = answer
        return True

    async def renew_registration(self, info: str, machine: str = "") -> RegistrationReply:
        """Writes the registration of this worker. The reply names what needs a driver, and whether to drain."""
        words: list[Argument] = [self.participant, self._numbered(info), machine]
        now, *due = (await self._run_shared("renew_registration", words)).split()
        return RegistrationReply(int(now), frozenset(due))

    async def drain_worker(self, worker: str, *, fence: str = "") -> str:
        """Makes a worker finish its jobs and exit: "draining", "drained", "stopped", "missing" or "fenced"."""
        return await self._run_shared("drain_worker", [self.keys.inbox_prefix, worker, fence])

    async def undrain_worker(self, worker: str, *, fence: str = "") -> str:
        """Withdraws a drain: "active", "draining" (by an operator), "drained", "stopped", "missing" or "fenced"."""
        return await self._run_shared("undrain_worker", [self.keys.inbox_prefix, worker, fence])

    async def report_drained(self, info: str, machine: str = "") -> bool:
        """Reports that this worker holds no job and exits. False if the request to drain was withdrawn before."""
        words: list[Argument] = [self.keys.inbox_prefix, self.participant, machine, self._numbered(info)]
        return await self._run_shared("report_drained", words) == "drained"

    async def publish_tasks(self, tasks: dict[str, str]) -> None:
        """Publishes schemas and defaults of tasks, for producers that do not have the code."""
        words = [word for pair in tasks.items() for word in pair]
        if words:
            await self._run_shared("publish_tasks", words)

    async def publish_failure_handlers(
        self, queue: str, handlers: dict[str, str], *, removed: Sequence[str] = ()
    ) -> None:
        """Publishes which tasks have a failure handler, with the options of its jobs, and which no longer have one.

        A run of such a task that fails for good then enqueues that job. The entry stays until a worker removes it.
        """
        words = [*removed, *(word for pair in handlers.items() for word in pair)]
        if words:
            keys = self.script_keys("publish_failure_handlers", queue, reply=secrets.token_hex(8))
            await self.redis.run("publish_failure_handlers", keys, [len(removed), *words])

    async def register_queues(self, wanted: Mapping[str, int]) -> dict[str, int]:
        """Registers queues, each with the number of shards wanted. Returns how many each has, 0 for none."""
        words: list[Argument] = [word for pair in wanted.items() for word in pair]
        keys = [self.keys.shared(key) for key in script("register_queues").keys]
        answer = await self.redis.run("register_queues", keys, words)
        return dict(zip(wanted, map(int, answer), strict=True))

    async def add_queue_names(self, queues: Sequence[str]) -> None:
        """Adds to the queues that `queue list` shows."""
        await self.redis.command("SADD", self.keys.shared("queues"), *queues)

    @asynccontextmanager
    async def numbered_call(self, queue: str) -> AsyncGenerator[int]:
        """Yields the number of a `prepare_dependents` call. One per queue is in flight at a time, and numbers grow.

        The server takes a number that it has seen from this participant for a repeat, so the store draws all of them.
        """
        async with self._call_locks.setdefault(queue, asyncio.Lock()):
            number = self._call_numbers[queue] = self._call_numbers.get(queue, 0) + 1
            yield number

    def script_keys(self, name: str, queue: str, **parts: str) -> Sequence[str]:
        """The keys of a script in the hash slot of a queue; `parts` complete the names of those with a pattern."""
        if not parts and (known := self._script_keys.get((name, queue))):
            return known
        filled = {"last_reply": self.participant, **parts}
        keys = [self.keys.queue(queue, key, filled.get(key, "")) for key in script(name).keys]
        if not parts:
            self._script_keys[name, queue] = keys
        return keys

    # --- internals ---------------------------------------------------------------------------------------------

    def _numbered(self, info: str) -> bytes:
        """A registry entry with its number: the server refuses the late copy of an earlier one."""
        return msgspec.json.encode({**msgspec.json.decode(info), "number": next(self._registration_numbers)})

    async def _run(self, name: str, queue: str, arguments: Sequence[Argument]) -> Any:
        return await self.redis.run(name, self.script_keys(name, queue), [queue, self.keys.inbox_prefix, *arguments])

    async def _run_shared(self, name: str, arguments: Sequence[Argument]) -> str:
        return (await self.redis.run(name, self.keys.shared_of_script(script(name).keys), arguments)).decode()

    async def _run_once(self, name: str, queue: str, arguments: Sequence[Argument]) -> Any:
        keys = self.script_keys(name, queue, reply=secrets.token_hex(8))
        return await self.redis.run(name, keys, [queue, self.keys.inbox_prefix, *arguments])
