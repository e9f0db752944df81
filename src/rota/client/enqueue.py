"""Enqueueing: passes calls through middleware and stores them as jobs, dependency layer by layer, queue by queue."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TypeVar

from rota.client.blob_transfer import BlobTransfer
from rota.client.durability import Durability
from rota.client.job import Job
from rota.client.middleware import Middleware, wrap_store
from rota.client.session import Session, Sessions
from rota.client.tasks import Call, Registry
from rota.core.dependencies import dependency_layers
from rota.core.ids import JobRef
from rota.core.same_id_policy import Ignore
from rota.errors import IdInUse, InvalidJob, InvalidOption, JobNotFound
from rota.store.create_dependents_and_deliver_outcomes import JobWithParents
from rota.store.enqueue_batcher import EnqueueResult, NewJob

R = TypeVar("R")
#: What `enqueue_many` does with calls whose id is in use.
OnRefused = Literal["raise", "return"]

MEMORY: Final[frozenset[Durability]] = frozenset({"memory"})


class Enqueuer:
    """Stores calls as jobs. One per `Rota`; its tasks enqueue through it."""

    def __init__(self, sessions: Sessions, tasks: Registry, middleware: Sequence[Middleware]) -> None:
        self.sessions = sessions
        self.tasks = tasks
        self.middleware = middleware
        self._blobs = BlobTransfer(sessions)
        #: Queue -> default options of its jobs, and of the failure handlers of its jobs.
        self.queue_defaults: dict[str, Mapping[str, Any]] = {}
        self.failure_defaults: dict[str, Mapping[str, Any]] = {}

    async def enqueue(self, call: Call[R]) -> Job[R]:
        """Stores one call. Raises IdInUse where its id is in use and `Reject()` was requested."""
        # Without middleware `enqueue_many` is `_store`: a coroutine less for every job.
        (job,) = await (self.enqueue_many((call,)) if self.middleware else self._store((call,)))
        if isinstance(job, IdInUse):
            raise job
        return job

    async def enqueue_all(
        self, calls: Iterable[Call[R]], on_refused: OnRefused
    ) -> list[Job[R]] | list[Job[R] | IdInUse]:
        """See `Rota.enqueue_many`."""
        if on_refused not in ("raise", "return"):
            raise InvalidOption("on_refused", f"{on_refused!r} is neither raise nor return")
        outcomes = await self.enqueue_many(calls)
        if on_refused == "return":
            return outcomes
        refused = [outcome for outcome in outcomes if isinstance(outcome, IdInUse)]
        if refused:
            stored = len(outcomes) - len(refused)
            refused[0].add_note(
                f"{len(refused)} of {len(outcomes)} calls were refused, {stored} stored: "
                'on_refused="return" returns the errors in place of their jobs'
            )
            raise refused[0]
        return [outcome for outcome in outcomes if isinstance(outcome, Job)]

    async def enqueue_many(self, calls: Iterable[Call[R]]) -> list[Job[R] | IdInUse]:
        """Stores calls. Returns a handle for each, or IdInUse where its id is in use and `Reject()` was requested."""
        wanted = list(calls)
        for middleware in self.middleware:
            wanted = [await middleware.enqueue(call) for call in wanted]
        return await wrap_store(self.middleware, self._store)(wanted)

    async def _store(self, calls: Sequence[Call[R]]) -> list[Job[R] | IdInUse]:
        if not calls:
            return []
        session = self.sessions.current()
        default = session.durability.default
        durability, is_ready, has_parents, has_blobs = MEMORY, True, False, False
        cancels_running = False
        for call in calls:  # the path of every job: plain loops cost it less than comprehensions
            if not isinstance(call, Call) or call.results:
                raise _refusal(call)
            wanted: Durability = call.durability or default
            if wanted not in durability:
                durability = durability | frozenset[Durability]((wanted,))
            if is_ready and not session.is_ready_for(call.queue, wanted):
                is_ready = False
            if call.parents:
                has_parents = True
            if call.uploads:
                has_blobs = True
            if call.job.id and call.on_same_id.cancel_running:
                cancels_running = True
        replication_ids: Mapping[str, str] = {}
        if not is_ready:
            replication_ids = await session.prepare({call.queue: None for call in calls}, durability)
            await self.sessions.warn_if_no_worker_runs()
        shards: list[str] = []
        jobs: list[NewJob] = []
        for call in calls:
            shards.append(session.shards.choose(call.queue, call.job.id, call.options.lock))
            jobs.append(call.job)
        if has_blobs:
            return await self._store_with_blobs(session, shards, calls, durability, replication_ids)
        if has_parents or (len(calls) > 1 and len(set(shards)) > 1):
            results = await _store_groups(session, shards, calls, durability, replication_ids)
        else:
            results = await session.store.enqueue(shards[0], jobs)
            if durability is not MEMORY:
                await session.durability.confirm(shards[:1], durability, replication_ids)
        if cancels_running:
            await _cancel_running(session, shards, calls, results)
        return list(map(self._handle, calls, shards, results))

    async def _store_with_blobs(
        self,
        session: Session,
        shards: Sequence[str],
        calls: Sequence[Call[R]],
        durability: frozenset[Durability],
        replication_ids: Mapping[str, str],
    ) -> list[Job[R] | IdInUse]:
        """Stores the blobs first. Those that no job has taken when this ends, for whatever reason, are removed."""
        try:
            for call, shard in zip(calls, shards, strict=True):
                await self._blobs.upload(session, shard, call.task.name, call.uploads)
            results = await _store_groups(session, shards, calls, durability, replication_ids)
            await _cancel_running(session, shards, calls, results)
            return list(map(self._handle, calls, shards, results))
        finally:
            for call, shard in zip(calls, shards, strict=True):
                if call.uploads:
                    await asyncio.shield(self._blobs.discard(session, shard, call.uploads))

    def _handle(self, call: Call[R], queue: str, result: EnqueueResult) -> Job[R] | IdInUse:
        ref = JobRef(queue, result.id, result.run)
        outcome = result.outcome
        if outcome in ("made", "updated", "again") or (outcome == "in_use" and isinstance(call.on_same_id, Ignore)):
            returns = call.task.signature.returns
            return Job(self.sessions, self.tasks, ref, returns, outcome == "made", result.at or None)
        if result.outcome == "blob":
            raise InvalidJob(
                f"the blobs of {call!r} have expired, or belong to another job: create the call again with task.call(…)"
            )
        return IdInUse(ref.full_id, result.run, outcome)


async def _cancel_running(
    session: Session, shards: Sequence[str], calls: Sequence[Call[Any]], results: Sequence[EnqueueResult]
) -> None:
    """Cancels the runs that the stored jobs follow up. If that fails, the follow-ups start when these runs end."""
    refs = [
        JobRef(shard, result.id, result.run)
        for shard, call, result in zip(shards, calls, results, strict=True)
        if call.on_same_id.cancel_running and result.outcome in ("made", "updated")
    ]
    reason = "its id was enqueued again with cancel_running"
    await asyncio.gather(*(session.store.cancel(ref, reach="earlier", reason=reason) for ref in refs))


def _refusal(call: Any) -> InvalidJob:
    if not isinstance(call, Call):
        return InvalidJob(f"only calls can be enqueued, as in send.call(...), not {call!r}")
    return InvalidJob(f"{call!r} takes the result of a step: it can only be a step of that workflow")


async def _store_groups(
    session: Session,
    shards: Sequence[str],
    calls: Sequence[Call[Any]],
    durability: frozenset[Durability],
    replication_ids: Mapping[str, str],
) -> Sequence[EnqueueResult]:
    """Stores calls of several shards, or with parents, dependency layer by layer. Returns the result of each."""
    stored: dict[int, EnqueueResult] = {}
    # A dependent is registered in the queues of its parents: without that it would wait forever.
    linked: set[str] = set()
    if durability is not MEMORY:
        parents = [parent for call in calls for parent in call.parents]
        linked = {(await session.shards.locate_parent(parent)).ref.queue for parent in parents}
        replication_ids = {**replication_ids, **await session.prepare_links(linked, durability)}
    for layer in await _layers(session, calls):
        by_shard: dict[str, list[int]] = {}
        for index in layer:
            by_shard.setdefault(shards[index], []).append(index)
        storing = (_store_group(session, shard, [calls[index] for index in of]) for shard, of in by_shard.items())
        for indexes, results in zip(by_shard.values(), await asyncio.gather(*storing), strict=True):
            stored |= dict(zip(indexes, results, strict=True))
        await session.durability.confirm({*by_shard, *linked}, durability, replication_ids)
    return [stored[index] for index in range(len(calls))]


async def _layers(session: Session, calls: Sequence[Call[Any]]) -> Sequence[Sequence[int]]:
    """Indexes of a batch in the order in which they are stored: parents in the batch before their dependents."""
    names = [f"{call.queue}:{call.job.id}" if call.job.id else "" for call in calls]
    needed = [[str(parent.ref) for parent in call.parents] for call in calls]
    layers = dependency_layers(names, needed)
    if len(layers) > 1:
        # An unknown parent has to be refused before the first layer is stored.
        own = set(names)
        parents = [parent for call in calls for parent in call.parents if str(parent.ref) not in own]
        refs = [parent.ref for parent in parents if parent.if_gone == "refused"]
        for ref, record in zip(refs, await session.read_records(refs), strict=True):
            if record is None:
                raise JobNotFound(str(ref))
    return layers


async def _store_group(session: Session, shard: str, calls: Sequence[Call[Any]]) -> Sequence[EnqueueResult]:
    """Stores the jobs of one shard: dependents through the dependency store, which takes more calls."""
    dependents = {
        index: JobWithParents(call.job, [await session.shards.locate_parent(parent) for parent in call.parents])
        for index, call in enumerate(calls)
        if call.parents
    }
    others = [index for index in range(len(calls)) if index not in dependents]
    stored: dict[int, EnqueueResult] = {}
    if dependents:
        results = await session.dependencies.enqueue_dependents(shard, list(dependents.values()))
        stored |= dict(zip(dependents, results, strict=True))
    if others:
        results = await session.store.enqueue(shard, [calls[index].job for index in others])
        stored |= dict(zip(others, results, strict=True))
    return [stored[index] for index in range(len(calls))]
