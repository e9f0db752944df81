"""Dependencies across hash slots: creating dependent jobs, and delivering parents' outcomes through the outbox.

A dependent is prepared (written invisibly), registered in the hash slot of each parent, then published. The script that
ends a parent puts its outcome into the outbox of its queue; any participant takes it, delivers it to the dependents,
and acknowledges it. Every step is idempotent, so when a participant dies another one repeats it.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from rota.core.dependencies import Parent
from rota.core.ids import encode_run, make_suffix
from rota.core.lua_constants import MAX_PAYLOAD
from rota.errors import JobNotFound, StoreUnavailable
from rota.store.enqueue_batcher import EnqueueResult, NewJob
from rota.store.redis.retrying_client import Argument, ScriptCall
from rota.store.redis.script_compiler import script

if TYPE_CHECKING:
    from rota.store.job_store import JobStore

T = TypeVar("T")
#: Dependents or edges that one call may touch: keeps a script below 5 ms.
SLICE: Final = 200
#: Prepared runs that one call publishes.
PUBLISH_BATCH: Final = 50
#: Cost of an outcome in units of `SLICE`: cancelling a dependent costs the server as much as five edges.
FAILURE_WEIGHT: Final = 5
WORKFLOW_WEIGHT: Final = 2
RESULT_WEIGHT_BYTES: Final = 5_000
#: Outcomes taken from an outbox are not handed to another participant for this long.
HOLD_MS: Final = 2_000
#: Stands for a queue name where the dependent is a workflow. Workflows are in the hash slot of `~`.
WORKFLOWS: Final = "~"
#: Attempts to create a dependent whose id was taken, or which was discarded, before it was published.
TRIES: Final = 5


class JobWithParents(NamedTuple):
    """A job to enqueue, and its parents."""

    job: NewJob
    parents: Sequence[Parent]


class Edge(NamedTuple):
    """A dependent and one of its parents. If the dependent is a workflow, `run` is its id."""

    queue: str
    run: str
    parent: Parent
    #: The name of the parent within the dependent, if it is not the id.
    alias: str = ""

    @property
    def name(self) -> str:
        """The name of the parent within the dependent."""
        return self.alias or self.parent.name


class ParentOutcome(NamedTuple):
    """The outcome of one parent, for one dependent. Among outcomes of a parent, the highest `number` counts."""

    run: str
    parent_name: str
    number: str
    outcome: str
    retention: str
    result: bytes
    attempts: str


class PreparedJob(NamedTuple):
    """A dependent that is stored but not yet visible."""

    position: int
    id: str
    run: str
    parents: Sequence[Parent]


class DependencyStore:
    """Creates dependent jobs and delivers the outcomes of their parents. Use the store's own: `store.dependencies`."""

    def __init__(self, store: JobStore) -> None:
        self._store = store
        self._redis = store.redis

    async def enqueue_dependents(self, queue: str, wanted: Sequence[JobWithParents]) -> list[EnqueueResult]:
        """Enqueues jobs with parents. Raises JobNotFound, and stores nothing, if a parent does not exist."""
        made: dict[int, EnqueueResult] = {}
        for _ in range(TRIES):
            left = [index for index in range(len(wanted)) if index not in made]
            if not left:
                break
            for part in slices(left, lambda index: preparation_weight(wanted[index].job, len(wanted[index].parents))):
                made |= await self._attempt(queue, {index: wanted[index] for index in part})
        if len(made) < len(wanted):
            raise StoreUnavailable(f"dependents in queue {queue} were not linked to their parents in time: try again")
        return [made[index] for index in range(len(wanted))]

    async def enqueue_workflow_job(self, queue: str, wanted: JobWithParents) -> EnqueueResult:
        """Enqueues a job of a workflow, whose id is used once: an earlier run of it is returned, also if it ended."""
        for _ in range(TRIES):
            prepared, held = await self.prepare_dependents(queue, {0: wanted}, kind="step")
            if not held:
                (one,) = prepared
                await self.register_dependents([Edge(queue, one.run, parent) for parent in one.parents])
                if await self.publish_prepared_runs(queue, [one.run]) == ["visible"]:
                    return EnqueueResult(one.id, one.run)
            run = await self._redis.command("HGET", self._store.keys.queue(queue, "ids"), wanted.job.id)
            if run is not None:
                return EnqueueResult(wanted.job.id, run.decode())
        raise StoreUnavailable(f"job {queue}:{wanted.job.id} was not linked to its parents in time: try again")

    async def deliver_outbox(self, queue: str, *, include: str = "free") -> set[str]:
        """Delivers the outbox of a queue. Returns the queues of the dependents.

        `include` is "free", for outcomes that no other participant is delivering, or "all", for callers that need every
        outcome to be delivered when this returns.
        """
        delivered: set[str] = set()
        while True:
            is_more, taken = await self._take_outbox(queue, include)
            if not taken:
                if is_more:
                    continue  # nothing of what it has examined was left to deliver, and it has removed that
                return delivered
            by_queue: dict[str, list[ParentOutcome]] = defaultdict(list)
            for entry in taken:
                for dependent in entry.dependents:
                    of_queue, run, name = dependent.split(" ", 2)
                    result = entry.result if name.endswith("=") else b""
                    by_queue[of_queue].append(
                        ParentOutcome(
                            run,
                            name.removesuffix("="),
                            entry.number,
                            entry.outcome,
                            entry.retention,
                            result,
                            entry.attempts,
                        )
                    )
            await asyncio.gather(
                *(self.deliver_outcomes(of_queue, outcomes) for of_queue, outcomes in by_queue.items())
            )
            keys = self._store.script_keys("ack_outbox", queue)
            await self._redis.run_many(
                [ScriptCall("ack_outbox", keys, [entry.run, entry.number, *entry.dependents]) for entry in taken]
            )
            delivered.update(by_queue)

    async def deliver_all(
        self, queue: str, *, include: str = "free", on_delivered: Callable[[str], None] | None = None
    ) -> None:
        """Delivers the outbox of a queue, then those of the dependents' queues: cancelled dependents have dependents.

        `on_delivered` is called with the queue of dependents, `WORKFLOWS` included.
        """
        queues = {queue}
        while queues:
            delivered: set[str] = set()
            for name in sorted(queues):
                delivered |= await self.deliver_outbox(name, include=include)
            for name in delivered:
                if on_delivered is not None:
                    on_delivered(name)
            queues = delivered - {WORKFLOWS}

    # --- creating ----------------------------------------------------------------------------------------------

    async def _attempt(self, queue: str, jobs: dict[int, JobWithParents]) -> dict[int, EnqueueResult]:
        """Index -> result; jobs whose id was taken, or which were discarded meanwhile, are missing."""
        repeated = await self._find_repeated(queue, jobs)
        wanted = {index: job for index, job in jobs.items() if index not in repeated}
        if not wanted:
            return repeated
        prepared, held = await self.prepare_dependents(queue, wanted)
        edges = [Edge(queue, one.run, parent) for one in prepared for parent in one.parents]
        try:
            await self.register_dependents(edges)
            # After the registration: if that is refused, existing runs stay unchanged.
            made = await self._enqueue_same_id(queue, {index: wanted[index] for index in held})
        except BaseException:
            await asyncio.shield(self.discard_prepared_runs(queue, [one.run for one in prepared], edges))
            raise
        tokens = [wanted[one.position].job.idempotency_token for one in prepared]
        runs = [f"{one.run}!{token}" if token else one.run for one, token in zip(prepared, tokens, strict=True)]
        outcomes = await self.publish_prepared_runs(queue, runs)
        for one, outcome in zip(prepared, outcomes, strict=True):
            if outcome == "visible":
                made[one.position] = EnqueueResult(one.id, one.run)
            elif outcome == "blob":
                made[one.position] = EnqueueResult(one.id, one.run, "blob")
        return made | repeated

    async def _find_repeated(self, queue: str, jobs: dict[int, JobWithParents]) -> dict[int, EnqueueResult]:
        """The jobs whose idempotency token was used before, with the run that it made, ended or not."""
        indexes = [index for index, (job, _) in jobs.items() if job.idempotency_token]
        keys = [self._store.keys.queue(queue, "once", jobs[index].job.idempotency_token) for index in indexes]
        runs = await self._redis.commands([["GET", key] for key in keys]) if keys else []
        return {
            index: EnqueueResult(jobs[index].job.id, run.decode(), "again")
            for index, run in zip(indexes, runs, strict=True)
            if run is not None
        }

    async def prepare_dependents(
        self,
        queue: str,
        wanted: dict[int, JobWithParents],
        *,
        kind: str = "job",
        keep_ms: int = 0,
        max_payload: int = MAX_PAYLOAD,
    ) -> tuple[list[PreparedJob], list[int]]:
        """Stores jobs invisibly. Returns them, and the keys of those whose id has an unfinished run.

        Unpublished jobs are discarded after `keep_ms` and a minute. A job whose arguments exceed `max_payload` bytes
        with the results of its parents in them is cancelled then.
        """
        suffixes = [make_suffix(secrets.randbits(40)) for _ in wanted]
        words: list[Argument] = []
        for (job, parents), suffix in zip(wanted.values(), suffixes, strict=True):
            names = " ".join(parent.script_argument for parent in parents[:SLICE])
            words += (job.id, suffix, job.priority, job.due, job.expiry, job.body, names)
        async with self._store.numbered_call(queue) as number:
            head: list[Argument] = [number, keep_ms, kind, max_payload]
            answer = await self._redis.run(
                "prepare_dependents", self._store.script_keys("prepare_dependents", queue), [*head, *words]
            )
        first = int(answer[0])
        held = {int(index) for index in answer[1:]}
        prepared: list[PreparedJob] = []
        for index, (position, (job, parents)) in enumerate(wanted.items()):
            if index not in held:
                run = encode_run(first + len(prepared) + 1)
                prepared.append(PreparedJob(position, job.id or f"{run}-{suffixes[index]}", run, parents))
        for one in prepared:
            for start in range(SLICE, len(one.parents), SLICE):
                names = " ".join(parent.script_argument for parent in one.parents[start : start + SLICE])
                await self._redis.run(
                    "add_parents_to_prepared_run",
                    self._store.script_keys("add_parents_to_prepared_run", queue, reply=secrets.token_hex(8)),
                    [one.run, names, max_payload],
                )
        return prepared, [position for index, position in enumerate(wanted) if index in held]

    async def register_dependents(self, edges: Sequence[Edge]) -> None:
        """Registers dependents with their parents, and delivers the outcomes of ended ones. Raises JobNotFound."""
        by_queue: dict[str, list[Edge]] = defaultdict(list)
        for edge in edges:
            by_queue[edge.parent.ref.queue].append(edge)
        outcomes: dict[str, list[ParentOutcome]] = defaultdict(list)
        for parent_queue, of_queue in by_queue.items():
            keys = self._store.script_keys("register_dependents", parent_queue)
            done = 0
            while done < len(of_queue):  # one call may do fewer, where jobs or results are long
                part = of_queue[done : done + SLICE]
                answer = await self._redis.run("register_dependents", keys, _edge_words(part))
                done += len(answer)
                for edge, reply in zip(part, answer, strict=False):
                    found = _missing_parent(edge) if reply == b"missing" else reply
                    state, number, retention, result = found.split(b" ", 3)
                    if state != b"waiting":
                        words = (number.decode(), state.decode(), retention.decode(), result, "1")
                        outcomes[edge.queue].append(ParentOutcome(edge.run, edge.name, *words))
        for queue, delivered in outcomes.items():
            await self.deliver_outcomes(queue, delivered)

    async def publish_prepared_runs(self, queue: str, runs: Sequence[str]) -> list[str]:
        """Publishes prepared runs: "visible", "missing" (discarded) or "in_use" (its id was taken) for each."""
        outcomes: list[str] = []
        while len(outcomes) < len(runs):  # one call may do fewer, where jobs are long
            part = runs[len(outcomes) : len(outcomes) + PUBLISH_BATCH]
            outcomes += await self._store.publish_prepared_runs(queue, part)
        return outcomes

    async def discard_prepared_runs(self, queue: str, runs: Sequence[str], edges: Sequence[Edge]) -> None:
        """Removes prepared runs and their registrations."""
        for start in range(0, len(edges), SLICE):
            by_queue: dict[str, list[Edge]] = defaultdict(list)
            for edge in edges[start : start + SLICE]:
                by_queue[edge.parent.ref.queue].append(edge)
            for parent_queue, part in by_queue.items():
                keys = self._store.script_keys("unregister_dependents", parent_queue)
                await self._redis.run("unregister_dependents", keys, _edge_words(part))
        for start in range(0, len(runs), SLICE):
            await self._redis.run(
                "discard_prepared_runs",
                self._store.script_keys("discard_prepared_runs", queue),
                runs[start : start + SLICE],
            )

    async def _enqueue_same_id(self, queue: str, jobs: dict[int, JobWithParents]) -> dict[int, EnqueueResult]:
        """Applies `on_same_id` to jobs whose ids have unfinished runs."""
        results = await self._store.enqueue(queue, [job for job, _ in jobs.values()])
        return {index: result for index, result in zip(jobs, results, strict=True) if result.outcome != "untied"}

    # --- outcomes ----------------------------------------------------------------------------------------------

    async def apply_parent_outcomes(self, queue: str, outcomes: Sequence[ParentOutcome]) -> None:
        """Applies outcomes of parents to the dependents in one queue."""
        keys = self._store.script_keys("apply_parent_outcomes", queue)
        for part in slices(outcomes, _weight):
            while part:  # one call may do fewer, where jobs are long
                words: list[Argument] = [queue, self._store.keys.inbox_prefix]
                for outcome in part:
                    words += outcome[:6]
                part = part[int(await self._redis.run("apply_parent_outcomes", keys, words)) :]

    async def deliver_outcomes(self, queue: str, outcomes: Sequence[ParentOutcome]) -> None:
        """Delivers outcomes of parents to the dependents in a queue, or to workflows."""
        if queue != WORKFLOWS:
            await self.apply_parent_outcomes(queue, outcomes)
            return
        keys = [self._store.keys.shared(key) for key in script("record_step_outcomes").keys]
        for part in slices(outcomes, _workflow_weight):
            words: list[Argument] = [self._store.keys.inbox_prefix]
            for workflow, name, number, outcome, _retention, result, attempts in part:
                words += (workflow, name, number, outcome, attempts, result)
            await self._redis.run("record_step_outcomes", keys, words)

    async def _take_outbox(self, queue: str, include: str) -> tuple[bool, list[_OutboxEntry]]:
        """Takes outcomes for delivery. Returns whether there is more to examine, and those taken."""
        keys = self._store.script_keys("take_outbox", queue)
        more, *answer = await self._redis.run("take_outbox", keys, [SLICE, HOLD_MS, include])
        taken: list[_OutboxEntry] = []
        for at in range(0, len(answer), 7):
            run, number, outcome, attempts, retention = (word.decode() for word in answer[at : at + 5])
            dependents = answer[at + 6].decode().split("\n")
            taken.append(_OutboxEntry(run, number, outcome, attempts, retention, answer[at + 5], dependents))
        return more == b"more", taken


class _OutboxEntry(NamedTuple):
    """The outcome of a parent, for some of its dependents."""

    run: str
    number: str
    outcome: str
    attempts: str
    retention: str
    result: bytes
    dependents: list[str]


def _missing_parent(edge: Edge) -> bytes:
    """The reply to use for a parent that does not exist. Raises JobNotFound where that is not allowed."""
    if edge.queue == WORKFLOWS:
        return b"deleted 0  "
    if edge.parent.if_gone == "refused":
        raise JobNotFound(edge.parent.name)
    return b"completed 0  "


def _edge_words(edges: Sequence[Edge]) -> list[Argument]:
    words: list[Argument] = []
    for edge in edges:
        wants = "=" if edge.parent.placeholder else ""
        words += (edge.parent.ref.id, edge.parent.ref.run or "", f"{edge.queue} {edge.run} {edge.name}{wants}")
    return words


def preparation_weight(job: NewJob, parents: int) -> int:
    """What preparing a job costs the server, in units of `SLICE`."""
    return 1 + min(SLICE, parents) + len(job.body) // RESULT_WEIGHT_BYTES


def _weight(outcome: ParentOutcome) -> int:
    """What delivering an outcome costs the server: a failure or a large result costs as much as several others."""
    kind = 1 if outcome.outcome == "completed" else FAILURE_WEIGHT
    return kind + len(outcome.result) // RESULT_WEIGHT_BYTES


def _workflow_weight(outcome: ParentOutcome) -> int:
    return WORKFLOW_WEIGHT + len(outcome.result) // RESULT_WEIGHT_BYTES


def slices(items: Sequence[T], weight_of: Callable[[T], int]) -> Iterator[list[T]]:
    """Splits items into parts that one call may carry, by their weight."""
    part: list[T] = []
    weight = 0
    for item in items:
        if part and weight + weight_of(item) > SLICE:
            yield part
            part, weight = [], 0
        part.append(item)
        weight += weight_of(item)
    if part:
        yield part
