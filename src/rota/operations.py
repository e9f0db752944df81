"""Doing something to every job that matches, or that was chosen: in the background, page by page, whoever drives it.

An operation is kept in the server. It goes over the jobs from the newest to the oldest, so that what comes meanwhile is
out of it, and does to each what is legal; what is refused is reported. A driver that dies leaves at most one page that
is done again, which changes nothing twice: what was done no longer matches.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import msgspec

from rota.core.job import JobRecord, JobRef, checked_priority, checked_text
from rota.core.states import JobState
from rota.errors import InvalidOption, OperationNotFound, RotaError
from rota.listing import Filters, checked_state, find_jobs, read_jobs
from rota.store.operations import NAMED, Failure, OperationInfo
from rota.store.views import Page

if TYPE_CHECKING:
    from rota.client import Rota
    from rota.jobs import Job

Verb = Literal["cancel", "delete", "redrive", "update"]
#: For each job "" or why it could not be done.
Outcomes = list[str]
Act = Callable[[Sequence[JobRecord]], Coroutine[Any, Any, Outcomes]]
#: From a cursor on, so many: a page of the jobs that are meant.
Finder = Callable[[str | None, int], Coroutine[Any, Any, Page]]

PAGE: Final = 100
#: Whoever goes slowly looks so often whether it shall stop, and says that it is still there.
REST_S: Final = 1.0
#: Jobs that can be chosen one by one for an operation.
MAX_CHOSEN: Final = 10_000
#: Verb -> states of the jobs that it can do something to.
_STATES: Final[Mapping[str, Sequence[JobState]]] = {
    "cancel": (JobState.SCHEDULED, JobState.BLOCKED, JobState.PENDING, JobState.PROCESSING),
    "update": (JobState.SCHEDULED, JobState.BLOCKED, JobState.PENDING),
    "redrive": (JobState.FAILED,),
    "delete": tuple(JobState),
}
_WHERE: Final = ("state", "queue", "task", "tag", "fields", "worker", "error", "group", "since", "until", "text")


class Operations:
    """What is done to many jobs at once."""

    def __init__(self, rota: Rota) -> None:
        self._rota = rota

    async def start(
        self, verb: Verb, *, where: Mapping[str, Any] | None = None, jobs: Sequence[Job[Any] | str] | None = None,
        dry_run: bool = False, per_second: float | None = None, reason: str = "", priority: str | int | None = None,
        delay: float | None = None,
    ) -> OperationInfo:  # fmt: skip
        """Writes an operation down; a worker, a server or `run` carries it out.

        `where` says which jobs, in the words of `rota.jobs`; it must ask for something. Or `jobs` names them, 10,000 at
        most: those that are gone, or in a state that does not allow it, are passed over. A `dry_run` only counts.
        `reason` is for a cancel, `priority` and `delay` (seconds from when each is changed) for an update.
        """
        if verb not in get_args(Verb):
            raise InvalidOption("verb", f"{verb!r} is none of {', '.join(get_args(Verb))}")
        if (where is None) == (jobs is None):
            raise InvalidOption("where", "say which jobs: either by where, or by jobs")
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
        link = await self._rota.checked_link()
        info = OperationInfo(
            id=secrets.token_hex(8), verb=verb, where=kept, arguments=arguments, is_dry_run=dry_run,
            per_second=per_second, created_at=await link.views.now(),
            expected=len(refs) if refs else await self._expected(kept), chosen=len(refs) if refs else None,
            queues=sorted({ref.queue for ref in refs}) if refs else [kept["queue"]] if "queue" in kept else [],
        )  # fmt: skip
        await link.operations.open(info, [str(ref) for ref in refs])
        return info

    async def get(self, operation_id: str) -> OperationInfo:
        """How an operation stands. Raises OperationNotFound; one that has ended is kept for a week."""
        info = await (await self._rota.checked_link()).operations.read(operation_id)
        if info is None:
            raise OperationNotFound(operation_id)
        return info

    async def list(self, *, limit: int = 50) -> Sequence[OperationInfo]:
        """The latest operations, the newest first."""
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= 1000:
            raise InvalidOption("limit", f"{limit!r} is not between 1 and 1,000")
        return await (await self._rota.checked_link()).operations.recent(limit)

    async def stop(self, operation_id: str) -> None:
        """Ends an operation before its time: what is done stays done. Nothing happens to one that has ended."""
        if not (await self.get(operation_id)).has_ended:
            await (await self._rota.checked_link()).operations.stop(operation_id)

    async def run(self, operation_id: str) -> OperationInfo:
        """Carries an operation out here, or waits while somebody else does; how it ended."""
        driver = secrets.token_hex(8)
        operations = (await self._rota.checked_link()).operations
        while not (info := await self.get(operation_id)).has_ended:
            if await operations.take(driver, wanted=operation_id):
                # Whoever had it before may have saved something since it was read.
                await self._drive(await self.get(operation_id), driver)
            else:
                await asyncio.sleep(0.5)
        return info

    async def attend(self) -> int:
        """Carries out what nobody else does just now; says how many there were. For workers and servers."""
        driver = secrets.token_hex(8)
        operations = (await self._rota.checked_link()).operations
        taken = await operations.take(driver)
        for operation_id in taken:
            info = await operations.read(operation_id)
            if info is not None:
                await self._drive(info, driver)
        return len(taken)

    # --- twins -------------------------------------------------------------------------------------------------

    def start_sync(self, verb: Verb, **asked: Any) -> OperationInfo:
        """`start`, for code that is not async, with the same parameters."""
        return self._rota.wait_for(self.start(verb, **asked))

    def get_sync(self, operation_id: str) -> OperationInfo:
        """`get`, for code that is not async."""
        return self._rota.wait_for(self.get(operation_id))

    def list_sync(self, *, limit: int = 50) -> Sequence[OperationInfo]:
        """`list`, for code that is not async."""
        return self._rota.wait_for(self.list(limit=limit))

    def stop_sync(self, operation_id: str) -> None:
        """`stop`, for code that is not async."""
        self._rota.wait_for(self.stop(operation_id))

    def run_sync(self, operation_id: str) -> OperationInfo:
        """`run`, for code that is not async."""
        return self._rota.wait_for(self.run(operation_id))

    # --- within ------------------------------------------------------------------------------------------------

    async def _drive(self, info: OperationInfo, driver: str) -> None:
        """Until it is over, was asked to stop, or somebody else has taken it."""
        operations = (await self._rota.checked_link()).operations
        if info.state == "stopping":
            await operations.save(info, driver, "stopped")
            return
        act = None if info.is_dry_run else self._act(info)
        size = PAGE if info.per_second is None else max(1, min(PAGE, int(info.per_second)))
        find = await self._finder(info)
        while True:
            page = await find(info.cursor, size)
            states = _STATES[info.verb]
            jobs = [job for job in page.jobs if job.enqueued_at <= info.created_at and job.state in states]
            refused: list[Failure] = []
            if act is not None and jobs:
                outcomes = await act(jobs)
                refused = [Failure(str(job.ref), why) for job, why in zip(jobs, outcomes, strict=True) if why]
            info = msgspec.structs.replace(
                info,
                matched=info.matched + len(jobs),
                done=info.done + (len(jobs) - len(refused) if act is not None else 0),
                failed=info.failed + len(refused),
                failures=[*info.failures, *refused][:NAMED],
                cursor=page.cursor,
            )
            answer = await operations.save(info, driver, "completed" if page.cursor is None else "")
            if answer == "stop":
                await operations.save(info, driver, "stopped")
            if page.cursor is None or answer != "saved":
                return
            if info.per_second is not None and jobs and not await self._rest(info, driver, len(jobs) / info.per_second):
                return

    async def _rest(self, info: OperationInfo, driver: str, seconds: float) -> bool:
        """Waits, and holds the operation meanwhile. False when it was asked to stop, or somebody else has taken it."""
        operations = (await self._rota.checked_link()).operations
        while seconds > REST_S:
            await asyncio.sleep(REST_S)
            seconds -= REST_S
            answer = await operations.save(info, driver)
            if answer == "stop":
                await operations.save(info, driver, "stopped")
            if answer != "saved":
                return False
        await asyncio.sleep(seconds)
        return True

    async def _finder(self, info: OperationInfo) -> Finder:
        """Reads the jobs that it is about, from a cursor on."""
        connect = self._rota.checked_link
        if info.chosen is None:
            return partial(find_jobs, connect, _filters(info.where), info.where)
        refs = [JobRef.parse(one) for one in await (await connect()).operations.jobs(info.id)]
        return partial(read_jobs, connect, refs)

    def _act(self, info: OperationInfo) -> Act:
        async def each(jobs: Sequence[JobRecord]) -> Outcomes:
            return [await self._one(info, job) for job in jobs]

        return self._redrive if info.verb == "redrive" else each

    async def _one(self, info: OperationInfo, record: JobRecord) -> str:
        """Does it to one job: "" or why it could not be."""
        job = self._rota.job(str(record.ref))
        try:
            if info.verb == "cancel":
                await job.cancel(info.arguments.get("reason", ""))
            elif info.verb == "delete":
                await job.delete()
            else:
                priority, delay = info.arguments.get("priority"), info.arguments.get("delay")
                await job.update(priority=priority, delay=delay)
        except RotaError as error:
            return str(error)
        return ""

    async def _redrive(self, jobs: Sequence[JobRecord]) -> Outcomes:
        over = await self._rota.workflows.over(jobs)
        why = {
            job.ref: f"it belongs to workflow {job.options.workflow}, which is {over[job.options.workflow]}"
            for job in jobs
            if job.options.workflow in over
        }
        outcomes = await self._rota.workflows.redrive([job for job in jobs if job.ref not in why])
        for ref, outcome in outcomes.items():
            if outcome != "redriven":
                why[ref] = {"missing": "it is no more", "in_use": "its id has a newer run"}.get(outcome, outcome)
        return [why.get(job.ref, "") for job in jobs]

    async def _expected(self, where: Mapping[str, Any]) -> int:
        """How many jobs there are at most that it may find: what progress is compared with."""
        infos = [await self._rota.queue(where["queue"]).info()] if "queue" in where else await self._rota.queues()
        state = where.get("state")
        return sum(info.counts[state] if state else sum(info.counts.values()) for info in infos)


def checked_where(where: Mapping[str, Any]) -> dict[str, Any]:
    """What is asked for, as it is kept: in plain JSON."""
    for name in where:
        if name not in _WHERE:
            raise InvalidOption("where", f"{name!r} is none of {', '.join(_WHERE)}")
    kept = {name: value for name, value in where.items() if value is not None and value != {}}
    if not kept:
        raise InvalidOption("where", "asks for nothing: to mean all jobs, name a state or a queue")
    if "state" in kept:
        kept["state"] = checked_state(kept["state"]).value
    for name in ("since", "until"):
        if isinstance(kept.get(name), datetime):
            kept[name] = kept[name].isoformat()
    _filters(kept)
    return kept


def _checked_jobs(jobs: Sequence[Job[Any] | str]) -> list[JobRef]:
    """The jobs that were chosen, each once."""
    refs = list(dict.fromkeys(JobRef.parse(job) if isinstance(job, str) else job.ref for job in jobs))
    if not 1 <= len(refs) <= MAX_CHOSEN:
        raise InvalidOption("jobs", f"names {len(refs):,} jobs: 1 to {MAX_CHOSEN:,} can be chosen; else say where")
    return refs


def _filters(where: Mapping[str, Any]) -> Filters:
    named = {name: where[name] for name in _WHERE[2:] if name in where and name not in ("since", "until")}
    return Filters.of(since=_time(where.get("since"), "since"), until=_time(where.get("until"), "until"), **named)


def _time(text: str | None, option: str) -> datetime | None:
    try:
        return None if text is None else datetime.fromisoformat(text)
    except (TypeError, ValueError):
        raise InvalidOption(option, f"{text!r} is no time: write it as 2026-12-24T18:00:00Z") from None
