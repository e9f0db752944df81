"""Handles: one job, one queue, the dead letters. Each pins what it names and asks the store when asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from rota.core.attempts import Attempt, attempts_of
from rota.core.codec import decode_result, encode_body
from rota.core.explain import explain
from rota.core.job import (
    HistoryEntry,
    JobRecord,
    JobRef,
    Options,
    checked_priority,
    checked_queue,
    checked_text,
    encode_run,
)
from rota.core.retry import Seconds
from rota.core.states import JobState
from rota.errors import IdInUse, InvalidOption, JobCancelled, JobFailed, JobNotFound, ResultTimeout, WrongState
from rota.relatives import Relatives, dependencies_of, dependents_of
from rota.store.search import Group
from rota.store.store import Store
from rota.store.views import LogLine, Page, QueueInfo, Snapshot, merge_shards
from rota.tasks import moment

if TYPE_CHECKING:
    from rota.client import Rota

R = TypeVar("R")


class Job(Generic[R]):
    """One run of a job. Made by `enqueue`, or by `rota.job(id)`, where a bare id means the newest run."""

    __slots__ = ("_ref", "_returns", "_rota", "enqueued_at", "is_new")

    def __init__(
        self, rota: Rota, ref: JobRef, *, returns: Any = Any, is_new: bool = True, enqueued_at: int | None = None
    ) -> None:
        self._rota = rota
        self._ref = ref
        self._returns = returns
        #: False where `on_same_id=Ignore()` found this run already there.
        self.is_new = is_new
        #: When the store made it, ms, where the answer to an enqueue said so.
        self.enqueued_at = enqueued_at

    @property
    def id(self) -> str:
        """`queue:id`: says which job, and where it lives."""
        return self._ref.full_id

    @property
    def queue(self) -> str:
        """The queue's name."""
        return self._ref.queue

    @property
    def run(self) -> str | None:
        """The run this handle is pinned to; None until it is known."""
        return self._ref.run

    @property
    def ref(self) -> JobRef:
        """Queue, id and run."""
        return self._ref

    def __repr__(self) -> str:
        return f"<Job {self._ref}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Job) and self._ref == other._ref

    def __hash__(self) -> int:
        return hash(self._ref)

    # --- questions ---------------------------------------------------------------------------------------------

    async def refresh(self) -> JobRecord:
        """The record as it is now. Raises JobNotFound."""
        return (await self._snapshot()).record

    async def state(self) -> JobState:
        """Where the job is now. Raises JobNotFound."""
        return (await self.refresh()).state

    async def explain(self) -> str:
        """One sentence: why the job is where it is, and what happens next."""
        snapshot = await self._snapshot()
        record = snapshot.record
        is_paused, has_workers = False, True
        if record.state is JobState.PENDING or (record.due_at is not None and record.due_at <= snapshot.at):
            views = await self._rota.checked_views()
            info = (await views.queue_infos([self.queue]))[0]
            workers = await views.workers()
            is_paused = info.is_paused
            has_workers = any(worker.serves(self.queue) for worker in workers)
        handled_by = next((entry.note for entry in reversed(snapshot.history) if entry.verb == "alert"), "")
        return explain(record, snapshot.at, is_paused=is_paused, has_workers=has_workers, handled_by=handled_by)

    async def history(self) -> list[HistoryEntry]:
        """Every change of state, oldest first, with time, worker, attempt and error."""
        snapshot = await self._snapshot()
        return full_history(snapshot)

    async def attempts(self) -> list[Attempt]:
        """Every execution, the first one first: by which worker, from when to when, and how it ended."""
        snapshot = await self._snapshot()
        return attempts_of(snapshot.record, snapshot.history)

    async def dependencies(self, *, cursor: str | None = None, limit: int = 100) -> Relatives:
        """The jobs that this one comes after, with their records as far as they are kept."""
        record = await self.refresh()
        return await dependencies_of(await self._rota.checked_link(), record, cursor=cursor, limit=_page_size(limit))

    async def dependents(self, *, cursor: str | None = None, limit: int = 100) -> Relatives:
        """The jobs that wait for this one, about `limit` at a time. Once it has completed, they wait no more."""
        record = await self.refresh()
        return await dependents_of(await self._rota.checked_link(), record.ref, cursor=cursor, limit=_page_size(limit))

    async def logs(self, *, start: int = 0) -> list[LogLine]:
        """What the handler logged, from line `start` on."""
        record = await self.refresh()
        return await (await self._rota.checked_views()).log(record.ref, start=start)

    async def result(self, timeout: float | None = None) -> R:
        """Waits for the end, which is pushed, and returns the result.

        Raises JobFailed, JobCancelled, JobNotFound, or ResultTimeout when `timeout` seconds are over first.
        """
        try:
            async with asyncio.timeout(timeout):
                record = await self._ended()
        except TimeoutError as error:
            if timeout is None:
                raise
            # It may have ended at the last moment, or long before a wait of no time at all.
            record = await self.refresh()
            if not record.state.is_finished:
                raise ResultTimeout(self.id, record.state.value, timeout) from error
        if record.state is JobState.COMPLETED:
            return decode_result(record.result, self._returns)
        if record.state is JobState.FAILED:
            raise JobFailed(self.id, record.error)
        raise JobCancelled(self.id, record.reason)

    # --- orders ------------------------------------------------------------------------------------------------

    async def cancel(self, reason: str = "", *, only_waiting: bool = False) -> JobState:
        """Cancels this run. Returns CANCELLED, or PROCESSING if a handler was at work: it is told within a second.

        With `only_waiting` a run that is being processed is left alone, and PROCESSING is returned. Raises
        WrongState when it has ended, JobNotFound when there is none.
        """
        checked_text(reason, "reason")
        store = await self._located()
        outcome = await store.cancel(self._ref, reach="waiting" if only_waiting else "any", reason=reason)
        if outcome == "missing":
            raise JobNotFound(str(self._ref))
        if outcome == "stopping" or outcome == "processing":
            return JobState.PROCESSING
        if outcome != "cancelled":
            raise WrongState(self.id, outcome.removeprefix("ended "), "cancel", "it has ended")
        await self._rota.tell_dependents(self.queue)
        return JobState.CANCELLED

    async def update(
        self, *, args: Sequence[Any] | None = None, kwargs: Mapping[str, Any] | None = None,
        priority: str | int | None = None, delay: Seconds | None = None, run_at: datetime | None = None,
    ) -> JobRecord:  # fmt: skip
        """Changes a run that waits: its arguments, its priority, its time. Returns the record as it is then.

        Of a dead letter only the arguments, for when it is redriven. What is not given stays as it is; arguments are
        replaced as a whole. Raises WrongState when it is being processed or has ended, JobNotFound, InvalidJob.
        """
        has_arguments = args is not None or kwargs is not None
        flags = ("d" if has_arguments else "") + ("o" if priority is not None else "")
        due = moment(delay, run_at)
        flags += "t" if delay is not None or run_at is not None else ""
        store = await self._rota.checked_store()
        while True:
            snapshot = await self._snapshot()
            record = snapshot.record
            if record.state is JobState.FAILED and flags != "d":
                raise WrongState(self.id, "failed", "update", "of a dead letter only the arguments can be changed")
            options, arguments = record.options, record.arguments
            if priority is not None:
                options = msgspec.structs.replace(options, priority=checked_priority(priority))
            if has_arguments:
                arguments = self._rota.encode_arguments(record.task, tuple(args or ()), dict(kwargs or {}))
                terms = self._rota.terms_of(record.task, options, tuple(args or ()), dict(kwargs or {}))
                options = msgspec.structs.replace(options, terms=terms)
            outcome = await store.update(
                record.ref, seen=snapshot.digest, flags=flags, priority=options.priority, due=due,
                expiry=_expiry_of(record), body=encode_body(options, record.task, arguments),
            )  # fmt: skip
            if outcome == "missing":
                raise JobNotFound(str(record.ref))
            if outcome == "updated":
                return await self.refresh()
            if outcome != "changed":  # else somebody else changed it meanwhile: what that one did stays
                state = outcome.removeprefix("ended ")
                raise WrongState(self.id, state, "update", "only a job that waits can be changed")

    async def delete(self) -> None:
        """Removes this run and every trace of it; a handler at work is told to stop. Raises JobNotFound."""
        if await (await self._located()).delete(self._ref) == "missing":
            raise JobNotFound(str(self._ref))
        await self._rota.tell_dependents(self.queue)

    async def redrive(self) -> None:
        """Gives this dead letter another life. Raises WrongState unless it failed, IdInUse, JobNotFound.

        A step of a workflow that has ended, or is being undone, is refused too. One of a limited workflow stays a dead
        letter until that has a place.
        """
        record = await self.refresh()
        over = await self._rota.workflows.over([record])
        if over:
            raise WrongState(
                self.id, record.state.value, "redrive",
                f"it belongs to workflow {record.options.workflow}, which is {over[record.options.workflow]}",
            )  # fmt: skip
        outcome = (await self._rota.workflows.redrive([record]))[record.ref]
        if outcome == "missing":
            raise JobNotFound(str(self._ref))
        if outcome == "in_use":
            raise IdInUse(self.id, (await self._rota.job(self.id).refresh()).ref.run or "")
        if outcome != "redriven":
            state = (await self.state()).value
            raise WrongState(self.id, state, "redrive", "only a dead letter can be redriven")

    # --- twins -------------------------------------------------------------------------------------------------

    def refresh_sync(self) -> JobRecord:
        """`refresh`, for code that is not async."""
        return self._rota.wait_for(self.refresh())

    def state_sync(self) -> JobState:
        """`state`, for code that is not async."""
        return self._rota.wait_for(self.state())

    def explain_sync(self) -> str:
        """`explain`, for code that is not async."""
        return self._rota.wait_for(self.explain())

    def history_sync(self) -> list[HistoryEntry]:
        """`history`, for code that is not async."""
        return self._rota.wait_for(self.history())

    def attempts_sync(self) -> list[Attempt]:
        """`attempts`, for code that is not async."""
        return self._rota.wait_for(self.attempts())

    def dependencies_sync(self, *, cursor: str | None = None, limit: int = 100) -> Relatives:
        """`dependencies`, for code that is not async."""
        return self._rota.wait_for(self.dependencies(cursor=cursor, limit=limit))

    def dependents_sync(self, *, cursor: str | None = None, limit: int = 100) -> Relatives:
        """`dependents`, for code that is not async."""
        return self._rota.wait_for(self.dependents(cursor=cursor, limit=limit))

    def logs_sync(self, *, start: int = 0) -> list[LogLine]:
        """`logs`, for code that is not async."""
        return self._rota.wait_for(self.logs(start=start))

    def result_sync(self, timeout: float | None = None) -> R:
        """`result`, for code that is not async."""
        return self._rota.wait_for(self.result(timeout))

    def cancel_sync(self, reason: str = "", *, only_waiting: bool = False) -> JobState:
        """`cancel`, for code that is not async."""
        return self._rota.wait_for(self.cancel(reason, only_waiting=only_waiting))

    def update_sync(
        self, *, args: Sequence[Any] | None = None, kwargs: Mapping[str, Any] | None = None,
        priority: str | int | None = None, delay: Seconds | None = None, run_at: datetime | None = None,
    ) -> JobRecord:  # fmt: skip
        """`update`, for code that is not async."""
        return self._rota.wait_for(self.update(args=args, kwargs=kwargs, priority=priority, delay=delay, run_at=run_at))

    def delete_sync(self) -> None:
        """`delete`, for code that is not async."""
        self._rota.wait_for(self.delete())

    def redrive_sync(self) -> None:
        """`redrive`, for code that is not async."""
        self._rota.wait_for(self.redrive())

    async def _located(self) -> Store:
        """The store, once it is known which shard of its queue the job is in."""
        link = await self._rota.checked_link()
        self._ref = await link.locate(self._ref)
        return link.store

    async def _ended(self) -> JobRecord:
        await self._located()
        while True:
            self._ref = await self._rota.wait_ended(self._ref)
            record = await self.refresh()
            if record.state.is_finished:  # else it was redriven meanwhile: wait for the end of that
                return record

    async def _snapshot(self) -> Snapshot:
        await self._located()
        snapshot = (await self._rota.views.read(self.queue, [self._ref]))[0]
        if snapshot is None:
            raise JobNotFound(str(self._ref))
        self._ref = snapshot.record.ref
        return snapshot


class Queue:
    """A named line of jobs, and what an operator does to it."""

    def __init__(self, rota: Rota, name: str) -> None:
        self._rota = rota
        self.name = name

    def __repr__(self) -> str:
        return f"<Queue {self.name}>"

    async def pause(self) -> None:
        """Stops claims of this queue for everyone, and nothing else: running handlers go on."""
        await self._pause("paused")

    async def resume(self) -> None:
        """Lets claims go on, at once."""
        await self._pause("open")

    async def info(self) -> QueueInfo:
        """How the queue stands: counts by state, totals, pause, the oldest waiting job."""
        link = await self._rota.checked_link()
        infos = await link.views.queue_infos(await link.names_of(self.name))
        return infos[0] if infos[0].name == self.name else merge_shards(infos)[0]

    async def counts(self) -> dict[str, int]:
        """How many jobs are in each state."""
        return (await self.info()).counts

    async def purge(self) -> int:
        """Deletes the jobs that wait, in slices, and says how many. What is enqueued meanwhile stays out of it."""
        link = await self._rota.checked_link()
        purged = 0
        for info in await link.views.queue_infos(await link.names_of(self.name)):
            newest = encode_run(info.totals["run"])
            while gone := await link.store.purge(info.name, newest=newest):
                purged += gone
            await self._rota.tell_dependents(info.name)
        return purged

    async def _pause(self, wanted: str) -> None:
        link = await self._rota.checked_link()
        for name in await link.names_of(self.name):
            await link.store.pause(name, wanted=wanted)

    def pause_sync(self) -> None:
        """`pause`, for code that is not async."""
        self._rota.wait_for(self.pause())

    def resume_sync(self) -> None:
        """`resume`, for code that is not async."""
        self._rota.wait_for(self.resume())

    def info_sync(self) -> QueueInfo:
        """`info`, for code that is not async."""
        return self._rota.wait_for(self.info())

    def counts_sync(self) -> dict[str, int]:
        """`counts`, for code that is not async."""
        return self._rota.wait_for(self.counts())

    def purge_sync(self) -> int:
        """`purge`, for code that is not async."""
        return self._rota.wait_for(self.purge())


class DeadLetters:
    """The jobs that failed for good."""

    def __init__(self, rota: Rota) -> None:
        self._rota = rota

    async def list(
        self, *, queue: str | None = None, task: str | None = None, error: str | None = None, text: str | None = None,
        cursor: str | None = None, limit: int = 100,
    ) -> Page:  # fmt: skip
        """A page of dead letters, the latest first; `error` is an error class, `text` anything in the record."""
        return await self._rota.jobs(
            JobState.FAILED, queue=queue, task=task, error=error, text=text, cursor=cursor, limit=limit
        )

    async def groups(self, *, queue: str | None = None, samples: int = 3, limit: int = 100) -> Sequence[Group]:
        """Dead letters that failed in the same way: same class of error, and same message but for numbers and names.

        The largest groups first, up to `limit`, each with its latest `samples`. `rota.jobs("failed", queue=…, group=…)`
        lists all of one.
        """
        if isinstance(samples, bool) or not isinstance(samples, int) or not 0 <= samples <= 10:
            raise InvalidOption("samples", f"{samples!r} is not between 0 and 10")
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= 1000:
            raise InvalidOption("limit", f"{limit!r} is not between 1 and 1,000")
        if queue:
            checked_queue(queue)
        link = await self._rota.checked_link()
        names = await link.names_of(queue) if queue else await link.views.queues()
        found = [group for name in names for group in await link.search.groups(name)]
        found.sort(key=lambda group: (-group.count, group.queue, group.id))
        return [await link.search.with_samples(group, samples) for group in found[:limit]] if samples else found[:limit]

    async def redrive(
        self, *, queue: str | None = None, task: str | None = None, error: str | None = None, text: str | None = None,
        limit: int | None = None, per_second: float | None = None,
    ) -> int:  # fmt: skip
        """Redrives every dead letter that matches, at most `limit`, no faster than `per_second`; says how many.

        Steps of workflows that have ended, or are being undone, are left alone; those of a limited one go on when that
        has a place.
        """
        if per_second is not None and not per_second > 0:
            raise InvalidOption("per_second", f"must be more than 0, not {per_second!r}")
        redriven = 0
        async for page in self._pages(queue=queue, task=task, error=error, text=text, limit=limit):
            over = await self._rota.workflows.over(page)
            for part in _slices([record for record in page if record.options.workflow not in over], per_second):
                outcomes = await self._rota.workflows.redrive(part)
                redriven += list(outcomes.values()).count("redriven")
                if per_second is not None:
                    await asyncio.sleep(len(part) / per_second)
        return redriven

    async def delete(
        self, *, queue: str | None = None, task: str | None = None, error: str | None = None, text: str | None = None,
        limit: int | None = None,
    ) -> int:  # fmt: skip
        """Deletes every dead letter that matches, at most `limit`; says how many."""
        deleted = 0
        async for page in self._pages(queue=queue, task=task, error=error, text=text, limit=limit):
            outcomes = await asyncio.gather(*(self._rota.store.delete(record.ref) for record in page))
            deleted += sum(outcome == "deleted" for outcome in outcomes)
        return deleted

    def groups_sync(self, *, queue: str | None = None, samples: int = 3, limit: int = 100) -> Sequence[Group]:
        """`groups`, for code that is not async."""
        return self._rota.wait_for(self.groups(queue=queue, samples=samples, limit=limit))

    def list_sync(
        self, *, queue: str | None = None, task: str | None = None, error: str | None = None, text: str | None = None,
        cursor: str | None = None, limit: int = 100,
    ) -> Page:  # fmt: skip
        """`list`, for code that is not async."""
        return self._rota.wait_for(
            self.list(queue=queue, task=task, error=error, text=text, cursor=cursor, limit=limit)
        )

    def redrive_sync(
        self, *, queue: str | None = None, task: str | None = None, error: str | None = None, text: str | None = None,
        limit: int | None = None, per_second: float | None = None,
    ) -> int:  # fmt: skip
        """`redrive`, for code that is not async."""
        return self._rota.wait_for(
            self.redrive(queue=queue, task=task, error=error, text=text, limit=limit, per_second=per_second)
        )

    def delete_sync(
        self, *, queue: str | None = None, task: str | None = None, error: str | None = None, text: str | None = None,
        limit: int | None = None,
    ) -> int:  # fmt: skip
        """`delete`, for code that is not async."""
        return self._rota.wait_for(self.delete(queue=queue, task=task, error=error, text=text, limit=limit))

    async def _pages(self, *, limit: int | None, **filters: Any) -> AsyncIterator[Sequence[JobRecord]]:
        """Pages until the end. What is acted upon leaves the index, so each page starts where the last one ended."""
        if limit is not None and limit < 0:
            raise InvalidOption("limit", f"must be 0 or more, not {limit!r}")
        cursor: str | None = None
        left = limit
        while left is None or left > 0:
            page = await self._rota.jobs(JobState.FAILED, **filters, cursor=cursor, limit=min(200, left or 200))
            if page.jobs:
                yield page.jobs
            left = None if left is None else left - len(page.jobs)
            cursor = page.cursor
            if cursor is None:
                return


def full_history(snapshot: Snapshot) -> list[HistoryEntry]:
    """The changes that the record itself shows, merged with those written down."""
    record = snapshot.record
    entries = [HistoryEntry(at=record.enqueued_at, verb="enqueue", state="pending")]
    for entry in snapshot.history:
        if entry.since:
            entries.append(_claimed(entry.since, entry.worker, entry.attempt))
        entries.append(entry)
    attempt = record.counts.attempt
    ended = {entry.attempt for entry in snapshot.history if entry.since}
    if record.claimed_at is not None and attempt not in ended:
        entries.append(_claimed(record.claimed_at, record.worker, attempt))
    if record.state is JobState.COMPLETED and record.ended_at is not None:
        entries.append(
            HistoryEntry(at=record.ended_at, verb="complete", state="completed", worker=record.worker, attempt=attempt)
        )
    if (
        record.state is JobState.CANCELLED
        and record.ended_at is not None
        and not any(e.verb == "cancel" for e in entries)
    ):
        entries.append(HistoryEntry(at=record.ended_at, verb="expire", state="cancelled", note=record.reason))
    return sorted(entries, key=lambda entry: entry.at)


def _page_size(limit: int) -> int:
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= 1000:
        raise InvalidOption("limit", f"{limit!r} is not between 1 and 1,000")
    return limit


def _expiry_of(record: JobRecord) -> str:
    """By when it must have started, as the scripts take it."""
    options: Options = record.options
    if options.expires_at is not None:
        return str(options.expires_at)
    return "" if options.expires_ms is None else str(record.enqueued_at + options.expires_ms)


def _claimed(at: int, worker: str, attempt: int) -> HistoryEntry:
    return HistoryEntry(at=at, verb="claim", state="processing", worker=worker, attempt=attempt)


def _slices(records: list[JobRecord], per_second: float | None) -> list[list[JobRecord]]:
    size = len(records) if per_second is None else max(1, int(per_second / 10))
    return [records[start : start + size] for start in range(0, len(records), max(1, size))]
