"""The handle of one job: its record, history and result, and the actions on it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from rota.client.dependency_listing import DependencyPage, dependencies_of, dependents_of
from rota.client.page_limit import checked_limit
from rota.client.redrive_jobs_and_workflow_steps import closed_workflows, redrive
from rota.client.session import Session, Sessions
from rota.client.sync_methods import sync_method
from rota.core.attempts_from_history import Attempt, attempts_of
from rota.core.encrypted_values import check_are_kept, decrypt_result, encrypt_arguments, is_encrypted
from rota.core.explain import explain
from rota.core.ids import JobRef, checked_text
from rota.core.job_options import Options, checked_priority, due_time
from rota.core.job_record import HistoryEntry, JobRecord
from rota.core.job_record_codec import decode_result, encode_body, encode_hook
from rota.core.progress_token import ProgressToken, sign_token
from rota.core.retry import Seconds, to_ms
from rota.core.same_id_policy import Update
from rota.core.state_transitions import CancelOutcome, JobState
from rota.errors import IdInUse, JobCancelled, JobFailed, JobNotFound, ResultTimeout, WrongState
from rota.store.progress_secret import read_secret_and_time
from rota.store.reads import LogLine, Snapshot

R = TypeVar("R")


class ArgumentEncoder(Protocol):
    """Encodes new arguments for a stored job. The registry of tasks does; it is above this module."""

    def encode_arguments(self, task: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        """Arguments as they are stored."""
        ...

    def search_terms(
        self, task: str, options: Options, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[str, ...]:
        """The terms by which a job with these arguments is found."""
        ...


class Job(Generic[R]):
    """The handle of one run. Made by `enqueue`, or by `rota.job(id)`, where a bare id means the newest run."""

    __slots__ = ("_encoder", "_ref", "_returns", "_sessions", "enqueued_at", "is_new")

    def __init__(
        self,
        sessions: Sessions,
        encoder: ArgumentEncoder,
        ref: JobRef,
        returns: Any = Any,
        is_new: bool = True,
        enqueued_at: int | None = None,
    ) -> None:
        self._sessions = sessions
        self._encoder = encoder
        self._ref = ref
        self._returns = returns
        #: False where `on_same_id=Ignore()` found this run.
        self.is_new = is_new
        #: When the store created it, ms; None unless this handle was returned by an enqueue.
        self.enqueued_at = enqueued_at

    @property
    def id(self) -> str:
        """`queue:id`."""
        return self._ref.full_id

    @property
    def queue(self) -> str:
        """The queue's name."""
        return self._ref.queue

    @property
    def run(self) -> str | None:
        """The run that this handle is pinned to; None until it is known."""
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

    # --- reading -----------------------------------------------------------------------------------------------

    async def refresh(self) -> JobRecord:
        """Returns the current record. Raises JobNotFound."""
        return (await self._snapshot()).record

    async def state(self) -> JobState:
        """Returns the current state. Raises JobNotFound."""
        return (await self.refresh()).state

    async def explain(self) -> str:
        """Returns one sentence: why the job is in its state, and what happens next."""
        snapshot = await self._snapshot()
        record = snapshot.record
        is_paused, has_workers, embedded = False, True, ""
        times = (record.due_at, record.lease_until)
        if record.state is JobState.PENDING or any(at is not None and at <= snapshot.at for at in times):
            views = self._sessions.current().views
            info = (await views.queue_infos([self.queue]))[0]
            workers = await views.workers()
            is_paused = info.is_paused
            # The worker of a job whose lease has ended may be dead: the registry shows it as alive for 10 s.
            has_workers = any(worker.serves(self.queue) and worker.id != record.worker for worker in workers)
            server = self._sessions.embedded
            embedded = "" if server is None else str(server.directory)
        handled_by = next((entry.note for entry in reversed(snapshot.history) if entry.verb == "failure_job"), "")
        return explain(
            record,
            snapshot.at,
            is_paused=is_paused,
            has_workers=has_workers,
            handled_by=handled_by,
            embedded=embedded,
        )

    async def history(self) -> list[HistoryEntry]:
        """Returns every change of state, oldest first, with time, worker, attempt and error."""
        return full_history(await self._snapshot())

    async def attempts(self) -> list[Attempt]:
        """Returns every attempt, oldest first: its worker, its start and end, and how it ended."""
        snapshot = await self._snapshot()
        return attempts_of(snapshot.record, snapshot.history)

    async def dependencies(self, *, cursor: str | None = None, limit: int = 100) -> DependencyPage:
        """Returns the parents of this job, with their records as far as they are kept."""
        checked_limit(limit)
        record = await self.refresh()
        return await dependencies_of(self._sessions.current(), record, cursor=cursor, limit=limit)

    async def dependents(self, *, cursor: str | None = None, limit: int = 100) -> DependencyPage:
        """Returns the jobs that wait for this one, about `limit` at a time. A completed job has none."""
        checked_limit(limit)
        record = await self.refresh()
        return await dependents_of(self._sessions.current(), record.ref, cursor=cursor, limit=limit)

    async def logs(self, *, start: int = 0) -> list[LogLine]:
        """Returns the lines that the handler logged, from number `start` on."""
        record = await self.refresh()
        return await self._sessions.current().views.log(record.ref, start=start)

    async def progress_token(self, *, expires: Seconds = 3600) -> str:
        """Returns a token with which a browser can follow the progress of this run, for an hour unless given.

        It permits nothing else: neither arguments nor the result can be read with it. Raises JobNotFound.
        """
        lifetime_ms = to_ms(expires, "expires")
        record = await self.refresh()
        session = self._sessions.current()
        secret, now = await read_secret_and_time(session.redis, session.keys)
        return sign_token(secret, ProgressToken(record.ref, now + lifetime_ms))

    async def wait(self, timeout: float | None = None) -> JobRecord:
        """Waits for the end, which the server pushes, and returns the record, however the job ended.

        Raises JobNotFound, or ResultTimeout after `timeout` seconds.
        """
        try:
            async with asyncio.timeout(timeout):
                return await self._ended()
        except TimeoutError as error:
            if timeout is None:
                raise
            # It may have ended in the last moment, or before a wait with a timeout of 0.
            record = await self.refresh()
            if not record.state.is_finished:
                raise ResultTimeout(self.id, record.state.value, timeout) from error
            return record

    async def result(self, timeout: float | None = None) -> R:
        """Waits for the end, which the server pushes, and returns the result.

        Raises JobFailed, JobCancelled, JobNotFound, or ResultTimeout after `timeout` seconds.
        """
        record = await self.wait(timeout)
        if record.state is JobState.COMPLETED:
            # Decrypted when it was read, if that was possible; else this raises with the reason.
            result = decrypt_result(self._sessions.codec, str(record.ref), record.result or b"")
            return decode_result(result, self._returns)
        if record.state is JobState.FAILED:
            raise JobFailed(self.id, record.error)
        raise JobCancelled(self.id, record.reason)

    # --- actions -----------------------------------------------------------------------------------------------

    async def cancel(self, reason: str = "", *, only_waiting: bool = False) -> CancelOutcome:
        """Cancels this run. Returns CANCELLED, or STOPPING when its handler runs: it is stopped within a second.

        With `only_waiting` a running handler is not stopped, and LEFT_RUNNING is returned. Raises WrongState when
        the run has ended, JobNotFound.
        """
        checked_text(reason, "reason")
        session = await self._locate()
        outcome = await session.store.cancel(self._ref, reach="waiting" if only_waiting else "any", reason=reason)
        if outcome == "missing":
            raise JobNotFound(str(self._ref))
        if outcome == "stopping":
            return CancelOutcome.STOPPING
        if outcome == "processing":
            return CancelOutcome.LEFT_RUNNING
        if outcome != "cancelled":
            raise WrongState(self.id, outcome.removeprefix("ended "), "cancel", "it has ended")
        await session.notify_dependents(self.queue)
        return CancelOutcome.CANCELLED

    async def update(
        self,
        *,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        priority: str | int | None = None,
        delay: Seconds | None = None,
        run_at: datetime | None = None,
    ) -> JobRecord:
        """Changes arguments, priority or start time of a waiting run. Returns the changed record.

        Of a dead letter only the arguments can be changed, for its redrive. Options that are not given stay as they
        are; arguments are replaced as a whole. Raises WrongState when the run is being processed or has ended,
        JobNotFound, InvalidJob.
        """
        has_arguments = args is not None or kwargs is not None
        new_args, new_kwargs = tuple(args or ()), dict(kwargs or {})
        parts = Update(
            data=has_arguments,
            run_at=delay is not None or run_at is not None,
            options=priority is not None,
            retry=False,
            max_stalls=False,
            reset_counts=False,
        )
        due = due_time(delay, run_at)
        while True:
            snapshot = await self._snapshot()
            record = snapshot.record
            if record.state is JobState.FAILED and (parts.run_at or parts.options or not parts.data):
                raise WrongState(self.id, "failed", "update", "of a dead letter only the arguments can be changed")
            options, codec = record.options, self._sessions.codec
            if has_arguments and is_encrypted(record.arguments):
                check_are_kept(record.arguments, new_args, new_kwargs)
                if not parts.run_at and not parts.options:
                    return record
                has_arguments, parts = False, replace(parts, data=False)
            arguments = record.arguments
            if codec is not None and not is_encrypted(arguments):
                arguments = encrypt_arguments(codec, record.task, arguments)
            if priority is not None:
                options = msgspec.structs.replace(options, priority=checked_priority(priority))
            if has_arguments:
                arguments = self._encoder.encode_arguments(record.task, new_args, new_kwargs)
                terms = self._encoder.search_terms(record.task, options, new_args, new_kwargs)
                kept = msgspec.json.encode((new_args, new_kwargs), enc_hook=encode_hook)
                blobs = tuple(blob for blob in options.blobs if blob.encode() in kept)
                options = msgspec.structs.replace(options, terms=terms, blobs=blobs)
            outcome = await self._sessions.current().store.update(
                record.ref,
                seen_digest=snapshot.digest,
                parts=parts,
                priority=options.priority,
                due=due,
                expiry=_expiry_of(record),
                body=encode_body(options, record.task, arguments),
            )
            if outcome == "missing":
                raise JobNotFound(str(record.ref))
            if outcome == "updated":
                return await self.refresh()
            if outcome != "changed":  # else another client changed it since it was read: apply this on top
                state = outcome.removeprefix("ended ")
                raise WrongState(self.id, state, "update", "only a job that waits can be changed")

    async def delete(self) -> None:
        """Removes this run and its data; a running handler is stopped. Raises JobNotFound."""
        session = await self._locate()
        if await session.store.delete(self._ref) == "missing":
            raise JobNotFound(str(self._ref))
        await session.notify_dependents(self.queue)

    async def redrive(self) -> None:
        """Makes this dead letter pending again. Raises WrongState unless it failed, IdInUse, JobNotFound.

        A step of a workflow that has ended, or is being undone, is refused too. A step of a limited workflow stays a
        dead letter until that workflow may advance.
        """
        record = await self.refresh()
        session = self._sessions.current()
        workflow = record.options.workflow
        closed = await closed_workflows(session, [record])
        if closed:
            reason = f"it belongs to workflow {workflow}, which is {closed[workflow]}"
            raise WrongState(self.id, record.state.value, "redrive", reason)
        outcome = (await redrive(session, [record]))[record.ref]
        if outcome == "missing":
            raise JobNotFound(str(self._ref))
        if outcome == "in_use":
            newest = Job[Any](self._sessions, self._encoder, JobRef.parse(self.id))
            raise IdInUse(self.id, (await newest.refresh()).ref.run or "")
        if outcome != "redriven":
            state = (await self.state()).value
            raise WrongState(self.id, state, "redrive", "only a dead letter can be redriven")

    # --- for code that is not async ----------------------------------------------------------------------------

    refresh_sync = sync_method(refresh)
    state_sync = sync_method(state)
    explain_sync = sync_method(explain)
    history_sync = sync_method(history)
    attempts_sync = sync_method(attempts)
    dependencies_sync = sync_method(dependencies)
    dependents_sync = sync_method(dependents)
    logs_sync = sync_method(logs)
    progress_token_sync = sync_method(progress_token)
    wait_sync = sync_method(wait)
    result_sync = sync_method(result)
    cancel_sync = sync_method(cancel)
    update_sync = sync_method(update)
    delete_sync = sync_method(delete)
    redrive_sync = sync_method(redrive)

    async def _locate(self) -> Session:
        """Returns the session, once the shard of the job is known."""
        session = await self._sessions.checked()
        self._ref = await session.shards.locate(self._ref)
        return session

    async def _ended(self) -> JobRecord:
        session = await self._locate()
        while True:
            self._ref = await session.waiter.wait_job(self._ref)
            record = await self.refresh()
            if record.state.is_finished:  # else it was redriven meanwhile: wait for its next end
                return record

    async def _snapshot(self) -> Snapshot:
        session = await self._locate()
        snapshot = (await session.views.read_runs(self.queue, [self._ref]))[0]
        if snapshot is None:
            raise JobNotFound(str(self._ref))
        self._ref = snapshot.record.ref
        return snapshot


def full_history(snapshot: Snapshot) -> list[HistoryEntry]:
    """Returns the changes that follow from the record itself, merged with the stored history."""
    record = snapshot.record
    by = record.options.enqueued_by
    note = f"by {by}" if by else ""
    entries = [HistoryEntry(at=record.enqueued_at, verb="enqueue", state="pending", note=note)]
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


def _expiry_of(record: JobRecord) -> str:
    """The time by which it must have started, as the scripts take it."""
    options = record.options
    if options.expires_at is not None:
        return str(options.expires_at)
    return "" if options.expires_ms is None else str(record.enqueued_at + options.expires_ms)


def _claimed(at: int, worker: str, attempt: int) -> HistoryEntry:
    return HistoryEntry(at=at, verb="claim", state="processing", worker=worker, attempt=attempt)
