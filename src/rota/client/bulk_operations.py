"""Bulk operations: cancel, delete, redrive or update every job that matches, or a chosen set, in the background.

An operation is stored in the server. It processes the jobs page by page, from the newest to the oldest, so that jobs
enqueued meanwhile are left out, and reports the jobs that were refused. A driver that dies leaves at most one page that
is processed again, which changes nothing: processed jobs no longer match.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final, Literal, get_args

import msgspec

from rota.client.job import ArgumentEncoder, Job
from rota.client.job_listing import Filters, MaskedText, checked_state, find_jobs, read_jobs
from rota.client.page_limit import checked_limit
from rota.client.redrive_jobs_and_workflow_steps import closed_workflows, redrive
from rota.client.session import Session, Sessions
from rota.client.sync_methods import sync_method
from rota.core.ids import JobRef, checked_queue, checked_text
from rota.core.job_options import checked_priority
from rota.core.job_record import JobRecord
from rota.core.state_transitions import JobState
from rota.errors import InvalidOption, OperationNotFound, RotaError
from rota.store.bulk_operation_records import (
    MAX_FAILURES_LISTED,
    MAX_REDRIVEN_LISTED,
    BulkFailure,
    OperationInfo,
)
from rota.store.reads import Page, merge_shards
from rota.store.redis.error_replies import SERVER_ERRORS

Verb = Literal["cancel", "delete", "redrive", "update"]
#: For each job "", or the reason why it was refused.
Outcomes = list[str]
Act = Callable[[Sequence[JobRecord]], Coroutine[Any, Any, Outcomes]]
#: (cursor, limit) -> a page of the jobs to process.
Finder = Callable[[str | None, int], Coroutine[Any, Any, Page]]

PAGE: Final = 100
#: Characters of the name of who started an operation.
MAX_BY: Final = 200
#: How often a driver that waits for its rate limit renews its hold and checks whether it has to stop.
RENEW_S: Final = 1.0
#: Jobs that can be chosen one by one for an operation.
MAX_CHOSEN: Final = 10_000
#: Verb -> states of the jobs that it applies to.
_STATES: Final[Mapping[str, Sequence[JobState]]] = {
    "cancel": (JobState.SCHEDULED, JobState.BLOCKED, JobState.PENDING, JobState.PROCESSING),
    "update": (JobState.SCHEDULED, JobState.BLOCKED, JobState.PENDING),
    "redrive": (JobState.FAILED,),
    "delete": tuple(JobState),
}
_WHERE: Final = ("state", "queue", "task", "tag", "fields", "worker", "error", "group", "since", "until", "text")
#: In `where`: the fields whose values are not searched for the text, see `MaskedText`.
MASKED: Final = "masked"
#: In `where`: the only tasks whose jobs are changed, with wildcards, for callers that may not run all.
ONLY_TASKS: Final = "only_tasks"


class RedriveOutcome(msgspec.Struct, frozen=True):
    """What became of the first thousand jobs that an operation redrove."""

    succeeded: int = 0
    failed_again: int = 0
    #: Waiting or running.
    unfinished: int = 0
    #: Cancelled, or no longer kept: those that completed are kept for an hour by default.
    gone: int = 0


class Operations:
    """Bulk operations on jobs: `rota.operations`."""

    def __init__(self, sessions: Sessions, encoder: ArgumentEncoder) -> None:
        self._sessions = sessions
        self._driver = OperationDriver(sessions, encoder)

    async def start(
        self,
        verb: Verb,
        *,
        where: Mapping[str, Any] | None = None,
        jobs: Sequence[Job[Any] | str] | None = None,
        dry_run: bool = False,
        per_second: float | None = None,
        reason: str = "",
        priority: str | int | None = None,
        delay: float | None = None,
        by: str = "",
    ) -> OperationInfo:
        """Stores an operation and returns it; a worker, a server or `run` carries it out.

        `where` selects jobs with the filters of `rota.jobs`; at least one is needed. Or `jobs` names them, 10,000 at
        most: those that are gone, or in a state that does not allow the operation, are skipped. A `dry_run` only
        counts. `reason` is for a cancel, `priority` and `delay` (seconds from when each is changed) for an update;
        `by` says who started it.
        """
        if verb not in get_args(Verb):
            raise InvalidOption("verb", f"{verb!r} is none of {', '.join(get_args(Verb))}")
        if (where is None) == (jobs is None):
            raise InvalidOption("where", "select the jobs with either where or jobs")
        kept = {} if where is None else checked_where(where)
        refs = [] if jobs is None else _checked_jobs(jobs)
        if per_second is not None and not per_second > 0:
            raise InvalidOption("per_second", f"must be more than 0, not {per_second!r}")
        arguments: dict[str, Any] = {}
        if verb == "update":
            if priority is None and delay is None:
                raise InvalidOption("update", "needs a priority or a delay")
            arguments = {"priority": None if priority is None else checked_priority(priority), "delay": delay}
        elif verb == "cancel":
            arguments = {"reason": checked_text(reason, "reason")}
        session = await self._sessions.checked()
        info = OperationInfo(
            id=secrets.token_hex(8),
            verb=verb,
            where=kept,
            arguments=arguments,
            by=checked_text(by, "by")[:MAX_BY],
            is_dry_run=dry_run,
            per_second=per_second,
            created_at=await session.views.now(),
            expected=len(refs) if refs else await _expected(session, kept),
            chosen=len(refs) if refs else None,
            queues=sorted({ref.queue for ref in refs}) if refs else [kept["queue"]] if "queue" in kept else [],
        )
        await session.operations.open(info, [str(ref) for ref in refs])
        return info

    async def get(self, operation_id: str) -> OperationInfo:
        """Returns an operation. Raises OperationNotFound; an operation that has ended is kept for a week."""
        info = await (await self._sessions.checked()).operations.read(operation_id)
        if info is None:
            raise OperationNotFound(operation_id)
        return info

    async def list(self, *, limit: int = 50) -> Sequence[OperationInfo]:
        """Returns the latest operations, the newest first."""
        checked_limit(limit)
        return await (await self._sessions.checked()).operations.recent(limit)

    async def outcome(self, operation_id: str) -> RedriveOutcome:
        """Returns what became of the jobs that a redrive brought back."""
        session = await self._sessions.checked()
        refs = [JobRef.parse(name) for name in await session.operations.redriven(operation_id)]
        counts = Counter(_fate(record) for record in await session.read_records(refs))
        return RedriveOutcome(*(counts[name] for name in RedriveOutcome.__struct_fields__))

    async def stop(self, operation_id: str) -> None:
        """Stops an operation: jobs that were processed stay so. Does nothing to an operation that has ended."""
        if not (await self.get(operation_id)).has_ended:
            await (await self._sessions.checked()).operations.stop(operation_id)

    async def run(self, operation_id: str) -> OperationInfo:
        """Carries out an operation here, or waits while another process does; returns it once it has ended."""
        driver = secrets.token_hex(8)
        operations = (await self._sessions.checked()).operations
        while not (info := await self.get(operation_id)).has_ended:
            if await operations.take_due(driver, wanted=operation_id):
                # Read again: its previous driver may have saved progress since.
                await self._driver.drive(await self.get(operation_id), driver)
            else:
                await asyncio.sleep(0.5)
        return info

    start_sync = sync_method(start)
    get_sync = sync_method(get)
    list_sync = sync_method(list)
    outcome_sync = sync_method(outcome)
    stop_sync = sync_method(stop)
    run_sync = sync_method(run)


class OperationDriver:
    """Carries out bulk operations. Any process may have one; each operation has one driver at a time."""

    def __init__(self, sessions: Sessions, encoder: ArgumentEncoder) -> None:
        self._sessions = sessions
        self._encoder = encoder

    async def run_waiting(self) -> int:
        """Carries out the operations that have no driver. Returns their number."""
        driver = secrets.token_hex(8)
        operations = (await self._sessions.checked()).operations
        taken = await operations.take_due(driver)
        for operation_id in taken:
            info = await operations.read(operation_id)
            if info is not None:
                await self.drive(info, driver)
        return len(taken)

    async def drive(self, info: OperationInfo, driver: str) -> None:
        """Processes an operation until it is done, was stopped, or another driver has taken it."""
        operations = (await self._sessions.checked()).operations
        if info.state == "stopping":
            await operations.save(info, driver, "stopped")
            return
        act = None if info.is_dry_run else self._act(info)
        size = PAGE if info.per_second is None else max(1, min(PAGE, int(info.per_second)))
        find = await self._finder(info)
        redriven = await operations.redriven(info.id) if info.verb == "redrive" else []
        while True:
            page = await find(info.cursor, size)
            states = _STATES[info.verb]
            jobs = [job for job in page.jobs if job.enqueued_at <= info.created_at and job.state in states]
            refused: list[BulkFailure] = []
            if act is not None and jobs:
                outcomes = await act(jobs)
                refused = [BulkFailure(str(job.ref), why) for job, why in zip(jobs, outcomes, strict=True) if why]
                if info.verb == "redrive" and len(redriven) < MAX_REDRIVEN_LISTED:
                    redriven += [str(job.ref) for job, why in zip(jobs, outcomes, strict=True) if not why]
            info = msgspec.structs.replace(
                info,
                matched=info.matched + len(jobs),
                done=info.done + (len(jobs) - len(refused) if act is not None else 0),
                failed=info.failed + len(refused),
                failures=[*info.failures, *refused][:MAX_FAILURES_LISTED],
                cursor=page.cursor,
            )
            ended = "completed" if page.cursor is None else ""
            answer = await operations.save(info, driver, ended, redriven=redriven)
            if answer == "stop":
                await operations.save(info, driver, "stopped")
            if page.cursor is None or answer != "saved":
                return
            if (
                info.per_second is not None
                and jobs
                and not await self._pause(info, driver, len(jobs) / info.per_second)
            ):
                return

    async def _pause(self, info: OperationInfo, driver: str, seconds: float) -> bool:
        """Waits and keeps the operation. Returns False when it was stopped, or another driver has taken it."""
        operations = (await self._sessions.checked()).operations
        while seconds > RENEW_S:
            await asyncio.sleep(RENEW_S)
            seconds -= RENEW_S
            answer = await operations.save(info, driver)
            if answer == "stop":
                await operations.save(info, driver, "stopped")
            if answer != "saved":
                return False
        await asyncio.sleep(seconds)
        return True

    async def _finder(self, info: OperationInfo) -> Finder:
        """Returns the function that reads the jobs of an operation from a cursor on."""
        if info.chosen is None:
            return partial(find_jobs, self._sessions, _filters(info.where), info.where)
        names = await (await self._sessions.checked()).operations.jobs(info.id)
        return partial(read_jobs, self._sessions, [JobRef.parse(name) for name in names])

    def _act(self, info: OperationInfo) -> Act:
        async def each(jobs: Sequence[JobRecord]) -> Outcomes:
            return [await self._one(info, job) for job in jobs]

        return self._redrive if info.verb == "redrive" else each

    async def _one(self, info: OperationInfo, record: JobRecord) -> str:
        """Applies the operation to one job. Returns "" or the reason why it was refused.

        Raises StoreError if the server is away, full or denies the call: no job is the reason, and none is passed over.
        """
        job = Job[Any](self._sessions, self._encoder, record.ref)
        try:
            if info.verb == "cancel":
                await job.cancel(info.arguments.get("reason", ""))
            elif info.verb == "delete":
                await job.delete()
            else:
                priority, delay = info.arguments.get("priority"), info.arguments.get("delay")
                await job.update(priority=priority, delay=delay)
        except SERVER_ERRORS:
            raise
        except RotaError as error:
            return str(error)
        return ""

    async def _redrive(self, jobs: Sequence[JobRecord]) -> Outcomes:
        session = await self._sessions.checked()
        closed = await closed_workflows(session, jobs)
        why = {
            job.ref: f"it belongs to workflow {job.options.workflow}, which is {closed[job.options.workflow]}"
            for job in jobs
            if job.options.workflow in closed
        }
        outcomes = await redrive(session, [job for job in jobs if job.ref not in why])
        for ref, outcome in outcomes.items():
            if outcome != "redriven":
                why[ref] = {"missing": "it no longer exists", "in_use": "its id has a newer run"}.get(outcome, outcome)
        return [why.get(job.ref, "") for job in jobs]


def _fate(record: JobRecord | None) -> str:
    if record is None or record.state is JobState.CANCELLED:
        return "gone"
    if record.state is JobState.COMPLETED:
        return "succeeded"
    return "failed_again" if record.state is JobState.FAILED else "unfinished"


async def _expected(session: Session, where: Mapping[str, Any]) -> int:
    """Returns the number of jobs that an operation can match at most, for its progress."""
    queue, state = where.get("queue"), where.get("state")
    infos = merge_shards(await session.views.queue_infos(await session.shards.names_of_all(queue)))
    return sum(info.counts[state] if state else sum(info.counts.values()) for info in infos)


def checked_where(where: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the filters of an operation as they are stored, in plain JSON. Raises InvalidOption."""
    for name in where:
        if name not in (*_WHERE, MASKED, ONLY_TASKS):
            raise InvalidOption("where", f"{name!r} is none of {', '.join(_WHERE)}")
    kept = {name: value for name, value in where.items() if value is not None and value != {}}
    if not kept:
        raise InvalidOption("where", "has no filter: to select all jobs, name a state or a queue")
    if "state" in kept:
        kept["state"] = checked_state(kept["state"]).value
    if "queue" in kept:
        checked_queue(kept["queue"])
    for name in ("since", "until"):
        if isinstance(kept.get(name), datetime):
            kept[name] = kept[name].isoformat()
    _filters(kept)
    return kept


def _checked_jobs(jobs: Sequence[Job[Any] | str]) -> list[JobRef]:
    """Returns the chosen jobs, each once."""
    refs = list(dict.fromkeys(JobRef.parse(job) if isinstance(job, str) else job.ref for job in jobs))
    if not 1 <= len(refs) <= MAX_CHOSEN:
        raise InvalidOption("jobs", f"names {len(refs):,} jobs: 1 to {MAX_CHOSEN:,} can be chosen; for more use where")
    return refs


def _filters(where: Mapping[str, Any]) -> Filters:
    named = {name: where[name] for name in _WHERE[2:] if name in where and name not in ("since", "until")}
    if MASKED in where:
        named["text_of"] = MaskedText(**where[MASKED])
    named["only_tasks"] = where.get(ONLY_TASKS)
    return Filters.of(since=_time(where.get("since"), "since"), until=_time(where.get("until"), "until"), **named)


def _time(text: str | None, option: str) -> datetime | None:
    try:
        return None if text is None else datetime.fromisoformat(text)
    except (TypeError, ValueError):
        raise InvalidOption(option, f"{text!r} is not a time: write it as 2026-12-24T18:00:00Z") from None
