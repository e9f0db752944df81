"""Schedules: declared, put, listed, changed, paused and forecast."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from itertools import islice, pairwise
from types import CodeType
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeGuard, TypeVar, overload

import msgspec

from rota.client.blob_transfer import refuse_blobs
from rota.client.context import Context
from rota.client.job import Job
from rota.client.page_limit import checked_limit
from rota.client.sync_methods import sync_method
from rota.client.task_arguments import UnresolvedAnnotation, check_names
from rota.client.tasks import Call, Client, TakesAnything, Task, declare_task
from rota.core.encrypted_values import Codec, check_are_kept, decrypt_arguments, is_encrypted, readable
from rota.core.ids import JobRef, checked_queue
from rota.core.job_options import DEFAULT_OPTIONS
from rota.core.job_record import JobRecord
from rota.core.job_record_codec import decode_arguments, decode_options, encode_body
from rota.core.metric_series import HOUR_MS
from rota.core.schedule import (
    Misfire,
    Overlap,
    Schedule,
    ScheduleRule,
    ScheduleState,
    UnreadableSchedule,
    checked_misfire,
    checked_overlap,
    checked_rule,
    checked_schedule_name,
    checked_version,
    count_by_hour,
    decode_schedule,
    describe_rule,
    tick_id,
    ticks,
    zone_of,
)
from rota.core.shards import base_of
from rota.errors import (
    ConfigurationError,
    InvalidOption,
    ScheduleNotFound,
    ScheduleOutdated,
    StoreUnsupported,
    Undecryptable,
)
from rota.store.compute_in_thread import compute
from rota.store.reads import Views, WorkerInfo
from rota.store.schedules import ScheduleStore, StoredSchedule

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
C = TypeVar("C")

logger = logging.getLogger("rota.schedules")

#: Future runs in a `ScheduleInfo`.
SHOWN_RUNS: Final = 5
#: A tick that is further before the next one is not found.
LOOK_BACK_MS: Final = 400 * 86_400_000
#: Bounds of a forecast: hours, and schedules that are counted.
MAX_FORECAST_HOURS: Final = 7 * 24
COUNTED_SCHEDULES: Final = 1_000
#: Queues whose due jobs are counted in one call.
QUEUES_PER_CALL: Final = 20


class ScheduleInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A stored schedule. Times are in the time zone of its rule."""

    name: str
    queue: str
    rule: ScheduleRule
    task: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    misfire: Misfire
    overlap: Overlap
    version: int
    #: Declared in code, and put again whenever a worker starts; else it was put at run time.
    is_declared: bool
    #: It was declared, and no live worker declares it now, although one serves its queue.
    is_orphaned: bool
    is_paused: bool
    #: The next few runs; none while it is paused. The first is in the past when no worker serves its queue.
    next_runs: tuple[datetime, ...]
    last_run: datetime | None
    #: The job that the last tick created, `queue:id`; it may no longer be kept.
    last_job: str | None
    #: Jobs created by ticks.
    fired: int
    #: Missed ticks that created no job, by the misfire policy; a lower bound after a long outage.
    dropped: int
    #: Ticks that created no job because the previous one had not ended, by the overlap policy.
    skipped: int

    @property
    def id(self) -> str:
        """`queue:name`."""
        return f"{self.queue}:{self.name}"

    @property
    def words(self) -> str:
        """Its rule in English: “at 03:00 every day, Europe/Oslo”."""
        return describe_rule(self.rule)

    def serialize(self, zone: tzinfo | None = None) -> dict[str, Any]:
        """Returns its policies and its state as the command line and the HTTP API show them, with times in `zone`."""
        times = [run.astimezone(zone) if zone is not None else run for run in self.next_runs]
        last = self.last_run.astimezone(zone) if self.last_run is not None and zone is not None else self.last_run
        return {
            "misfire": self.misfire,
            "overlap": self.overlap,
            "version": self.version,
            "is_declared": self.is_declared,
            "is_orphaned": self.is_orphaned,
            "is_paused": self.is_paused,
            "next_runs": [run.isoformat() for run in times],
            "last_run": last.isoformat() if last else None,
            "last_job": self.last_job,
            "fired": self.fired,
            "dropped": self.dropped,
            "skipped": self.skipped,
        }


class ScheduledRun(msgspec.Struct, frozen=True, kw_only=True):
    """One tick of a schedule. `record`, without arguments, is None if there is no job or it is no longer kept."""

    at: datetime
    job: str
    record: JobRecord | None


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """Runs and due jobs of the next hours, by queue. The first hour has begun: only the rest of it is counted."""

    #: The server's time, and when the first hour began; ms.
    at: int
    since: int
    hours: int
    #: Queue -> runs of its schedules in each hour; a queue without any is left out. Each may create a job.
    runs: dict[str, list[int]]
    #: Queue -> scheduled jobs that fall due in each hour, including retries; overdue ones count in the first.
    due: dict[str, list[int]]
    #: Schedules beyond the first thousand, which are not counted.
    uncounted: int


# --- declaring ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Declaration:
    """A schedule declared in code: a task, a rule, and the arguments of its jobs."""

    name: str
    task: Task[Any, Any, Any]
    rule: ScheduleRule
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    misfire: Misfire
    overlap: Overlap
    version: int

    def check(self) -> None:
        """Raises InvalidArguments when the task does not take the arguments, at the line that declares the schedule.

        While an annotation names a type that is defined further down, only the number and the names of the arguments
        are checked; a worker checks their types when it starts.
        """
        try:
            self.schedule()
        except UnresolvedAnnotation:
            check_names(self.task.name, self.task.function, self.args, self.kwargs)

    def schedule(self) -> Schedule:
        """Returns the schedule as it is stored. Raises InvalidArguments when the task does not take the arguments."""
        return _schedule(
            self.name,
            self.rule,
            self.task.call(*self.args, **self.kwargs),
            misfire=self.misfire,
            overlap=self.overlap,
            version=self.version,
            is_declared=True,
        )


class Declarations:
    """The schedules that a program declares, by name. They are stored when a worker of the program starts."""

    def __init__(self) -> None:
        self._by_name: dict[str, Declaration] = {}

    def add(self, declared: Declaration) -> None:
        """Declares a schedule. The same function again (a notebook cell, a reload) replaces it."""
        other = self._by_name.get(declared.name)
        is_again = other is not None and other.task is not declared.task and other.task.name == declared.task.name
        if other is not None and not is_again:
            raise ConfigurationError(
                f"schedule {declared.name!r} is already declared, for task {other.task.name!r}; give this one a name "
                "of its own: name=…"
            )
        self._by_name[declared.name] = declared

    def __iter__(self) -> Iterator[Declaration]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)


class Function(Protocol[P, R_co]):
    """A function written in Python, for type checkers only. Distinguishes it from a task, which is callable too."""

    @property
    def __code__(self) -> CodeType: ...
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...


class ScheduleDecorator:
    """The decorator that `@rota.cron(...)` and `@rota.every(...)` return: gives a task, or a function, a schedule."""

    def __init__(self, declare: Callable[[Any], Task[Any, Any, Any]]) -> None:
        self._declare = declare

    @overload
    def __call__(self, task: Task[P, R, C]) -> Task[P, R, C]: ...
    @overload
    def __call__(self, task: TakesAnything[P, Coroutine[Any, Any, R]]) -> Task[P, R, Coroutine[Any, Any, R]]: ...
    @overload
    def __call__(
        self, task: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]]
    ) -> Task[P, R, Coroutine[Any, Any, R]]: ...
    @overload
    def __call__(self, task: TakesAnything[P, R]) -> Task[P, R, R]: ...
    @overload
    def __call__(self, task: Callable[Concatenate[Context, P], R]) -> Task[P, R, R]: ...
    @overload
    def __call__(self, task: Callable[P, Coroutine[Any, Any, R]]) -> Task[P, R, Coroutine[Any, Any, R]]: ...
    @overload
    def __call__(self, task: Function[P, R]) -> Task[P, R, R]: ...
    def __call__(self, task: Task[Any, Any, Any] | Callable[..., Any]) -> Task[Any, Any, Any]:
        """Declares the schedule. A plain function becomes a task first."""
        return self._declare(task)


# --- at run time -------------------------------------------------------------------------------------------------


class Schedules:
    """The stored schedules: `rota.schedules`. A name is `queue:name`, or `name` where only one queue has it."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._sessions = client.sessions
        self.declared = Declarations()

    def declare(
        self,
        rule: ScheduleRule,
        *,
        name: str | None,
        args: Sequence[Any],
        kwargs: Mapping[str, Any] | None,
        misfire: Misfire,
        overlap: Overlap,
        version: int,
    ) -> ScheduleDecorator:
        """See `Rota.cron` and `Rota.every`."""
        if name is not None:
            checked_schedule_name(name)
        checked_misfire(misfire)
        checked_overlap(overlap)
        checked_version(version)

        def declare(function: Any) -> Task[Any, Any, Any]:
            task: Task[Any, Any, Any] = function if _is_task(function) else declare_task(self._client, function)
            declared = Declaration(
                name=checked_schedule_name(task.name) if name is None else name,
                task=task,
                rule=rule,
                args=tuple(args),
                kwargs=dict(kwargs or {}),
                misfire=misfire,
                overlap=overlap,
                version=version,
            )
            declared.check()
            self.declared.add(declared)
            return task

        return ScheduleDecorator(declare)

    async def put(
        self,
        name: str,
        rule: ScheduleRule,
        call: Call[Any],
        *,
        misfire: Misfire = "once",
        overlap: Overlap = "queue",
        version: int = 1,
    ) -> ScheduleInfo:
        """Creates a schedule in the queue of the call, or changes the one of that name there.

        While the rule stays the same, so does the next run; a paused schedule stays paused. Raises ScheduleOutdated,
        and changes nothing, when the stored schedule has a higher version.
        """
        schedule = _schedule(name, rule, call, misfire=misfire, overlap=overlap, version=version, is_declared=False)
        session = await self._sessions.checked()
        wanted = await session.shards.locate_schedule(schedule)
        outcome, stored = await session.schedules.put(wanted)
        if outcome == "older":
            raise ScheduleOutdated(wanted.full_name, version, stored)
        return await self.get(wanted.full_name)

    async def change(
        self,
        name: str,
        *,
        rule: ScheduleRule | None = None,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        misfire: Misfire | None = None,
        overlap: Overlap | None = None,
    ) -> ScheduleInfo:
        """Changes a stored schedule. Options that are not given stay; arguments are replaced as a whole.

        A declared schedule gets a higher version, so that the code which declares it does not revert the change.
        Raises ScheduleNotFound.
        """
        _, stored = await self._find(name)
        known, _ = _decode(stored)
        body = known.body
        if args is not None or kwargs is not None:
            body = self._changed_body(known, tuple(args or ()), dict(kwargs or {}))
        wanted = msgspec.structs.replace(
            known,
            rule=checked_rule(known.rule if rule is None else rule),
            body=body,
            misfire=checked_misfire(known.misfire if misfire is None else misfire),
            overlap=checked_overlap(known.overlap if overlap is None else overlap),
            version=checked_version(known.version + 1 if known.is_declared else known.version),
        )
        outcome, version = await (await self._store()).put(wanted)
        if outcome == "older":  # another client changed it in the meantime
            raise ScheduleOutdated(wanted.full_name, wanted.version, version)
        return await self.get(wanted.full_name)

    def _changed_body(self, known: Schedule, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        """Returns the record of its jobs with other arguments."""
        stored = _decrypted(known, self._client.tasks.codec)
        if is_encrypted(stored):
            check_are_kept(stored, args, kwargs)
            return known.body
        text = known.body.split(b"\n", 1)[0]
        options = decode_options(text) if text else DEFAULT_OPTIONS
        arguments = self._client.tasks.encode_arguments(known.task, args, kwargs)
        terms = self._client.tasks.search_terms(known.task, options, args, kwargs)
        return encode_body(msgspec.structs.replace(options, terms=terms), known.task, arguments)

    async def runs(self, name: str, *, limit: int = 10) -> list[ScheduledRun]:
        """Returns its latest ticks by its current rule, the latest first, each with its job if that is still kept."""
        checked_limit(limit, 100)
        _, stored = await self._find(name)
        known, state = _decode(stored)
        moments: list[int] = []
        tick = state.last_tick
        while tick is not None and len(moments) < limit:
            moments.append(tick)
            tick = known.rule.latest(tick - LOOK_BACK_MS, tick - 1)
        refs = [JobRef(known.queue, tick_id(known.name, moment)) for moment in moments]
        views = self._sessions.current().views
        found = await views.read_runs(known.queue, refs, detail="brief", max_arguments=0) if refs else []
        zone = zone_of(known.rule)
        return [
            ScheduledRun(
                at=datetime.fromtimestamp(moment / 1000, zone),
                job=ref.full_id,
                record=snapshot.record if snapshot is not None else None,
            )
            for moment, ref, snapshot in zip(moments, refs, found, strict=True)
        ]

    async def get(self, name: str) -> ScheduleInfo:
        """Returns one schedule. Raises ScheduleNotFound."""
        _, stored = await self._find(name)
        known, state = _decode(stored)
        return _info(
            known, state, stored.tick, await self._sessions.current().views.workers(), self._client.tasks.codec
        )

    async def list(self, *, queue: str | None = None) -> list[ScheduleInfo]:
        """Returns all schedules, or those of one queue, by name. Leaves out unreadable ones with a warning."""
        found = await self._all(queue)
        workers = await self._sessions.current().views.workers() if found else []
        codec = self._client.tasks.codec
        return await compute(len(found), lambda: [_info(*one, workers, codec) for one in found])

    async def forecast(self, *, queue: str | None = None, hours: int = MAX_FORECAST_HOURS) -> Forecast:
        """Returns the runs of schedules and the scheduled jobs of the next hours, a week at most.

        Its cost does not depend on their number: runs are computed from the rules, jobs counted in the index of due
        times.
        """
        checked_limit(hours, MAX_FORECAST_HOURS, option="hours")
        session = await self._sessions.checked()
        now = await session.views.now()
        found = [(known, tick) for known, _, tick in await self._all(queue) if tick is not None]
        runs: dict[str, list[int]] = {}
        for known, tick in found[:COUNTED_SCHEDULES]:
            # An overdue schedule runs as soon as a worker looks.
            counts = count_by_hour(known.rule, max(now, tick - 1), now // HOUR_MS, hours)
            counts[0] += tick <= now
            if any(counts):
                _add(runs, known.queue, counts)
            await asyncio.sleep(0)  # lets other tasks run
        names = await session.shards.names_of_all(queue)
        due: dict[str, list[int]] = {}
        for start in range(0, len(names), QUEUES_PER_CALL):
            part = await _due_by_hour(session.views, names[start : start + QUEUES_PER_CALL], now // HOUR_MS, hours)
            for name, counts in part.items():
                _add(due, name, counts)
        return Forecast(
            at=now,
            since=now // HOUR_MS * HOUR_MS,
            hours=hours,
            runs=runs,
            due=due,
            uncounted=max(0, len(found) - COUNTED_SCHEDULES),
        )

    async def pause(self, name: str) -> None:
        """Stops its ticks. Ticks during the pause are not made up for. Raises ScheduleNotFound."""
        await self._set(name, "paused")

    async def resume(self, name: str) -> None:
        """Continues its ticks from now on. Raises ScheduleNotFound."""
        await self._set(name, "open")

    async def run_now(self, name: str) -> Job[Any]:
        """Enqueues one of its jobs now, also while it is paused; its ticks do not change. Raises ScheduleNotFound."""
        store = await self._store()
        while True:
            now, stored = await self._find(name)
            known, state = _decode(stored)
            job_id = f"{tick_id(known.name, now)}-{secrets.token_hex(2)}"
            run = await store.run(known, state.revision, job_id)
            if run == "missing":
                raise ScheduleNotFound(name)
            if run not in ("changed", "in_use"):  # else it was changed since it was read, or the random id exists
                return Job(self._sessions, self._client.tasks, JobRef(known.queue, job_id, run))

    async def remove(self, name: str) -> None:
        """Removes it; its jobs stay. A declared one is put again by the next worker. Raises ScheduleNotFound."""
        _, stored = await self._find(name)
        if not await (await self._store()).remove(stored.queue, stored.name):
            raise ScheduleNotFound(name)

    # --- for code that is not async ----------------------------------------------------------------------------

    put_sync = sync_method(put)
    change_sync = sync_method(change)
    runs_sync = sync_method(runs)
    get_sync = sync_method(get)
    list_sync = sync_method(list)
    forecast_sync = sync_method(forecast)
    pause_sync = sync_method(pause)
    resume_sync = sync_method(resume)
    run_now_sync = sync_method(run_now)
    remove_sync = sync_method(remove)

    # --- within ------------------------------------------------------------------------------------------------

    async def _store(self) -> ScheduleStore:
        return (await self._sessions.checked()).schedules

    async def _queues(self, queue: str) -> Sequence[str]:
        """Returns the shards of one queue, or all queues that have schedules."""
        session = await self._sessions.checked()
        if queue:
            return await session.shards.names_of(checked_queue(queue))
        return await session.schedules.queues()

    async def _all(self, queue: str | None) -> Sequence[tuple[Schedule, ScheduleState, int | None]]:
        """Returns all readable schedules, each with its next tick."""
        store = await self._store()
        found: list[tuple[Schedule, ScheduleState, int | None]] = []
        for name in await self._queues(queue or ""):
            for stored in (await store.read(name, await store.names(name)))[1]:
                try:
                    found.append((*_decode(stored), stored.tick))
                except StoreUnsupported as error:
                    logger.warning("%s", error)
        return found

    async def _find(self, name: str) -> tuple[int, StoredSchedule]:
        """Returns the server's time, and the schedule of that name. Raises ScheduleNotFound."""
        queue, colon, bare = name.rpartition(":")
        checked_schedule_name(bare)
        store = await self._store()
        queues = await self._queues(queue if colon else "")
        answers = await asyncio.gather(*(store.read(one, [bare]) for one in queues))
        found = [(now, stored) for now, of_queue in answers for stored in of_queue]
        if not found:
            raise ScheduleNotFound(name)
        if len(found) > 1:
            names = ", ".join(f"{stored.queue}:{stored.name}" for _, stored in found)
            raise InvalidOption("name", f"{name!r} is the name of {names}: use one of these")
        return found[0]

    async def _set(self, name: str, wanted: str) -> None:
        store = await self._store()
        outcome = "changed"
        while outcome == "changed":  # since it was read: the next tick has to follow from its current rule
            now, stored = await self._find(name)
            known, state = _decode(stored)
            following = known.rule.next_after(now)
            outcome = await store.pause(
                known.queue, known.name, wanted=wanted, revision=state.revision, next_tick=following
            )
        if outcome == "missing":
            raise ScheduleNotFound(name)


def _is_task(function: Any) -> TypeGuard[Task[Any, Any, Any]]:
    return isinstance(function, Task)


def _schedule(
    name: str,
    rule: ScheduleRule,
    call: Call[Any],
    *,
    misfire: Misfire,
    overlap: Overlap,
    version: int,
    is_declared: bool,
) -> Schedule:
    if call.job.id or call.job.due:
        given = "id" if call.job.id else "delay"
        raise InvalidOption(given, "the jobs of a schedule get their ids and times from its ticks: leave it out")
    refuse_blobs("a schedule", call.uploads)
    return Schedule(
        name=checked_schedule_name(name),
        queue=call.queue,
        rule=checked_rule(rule),
        body=call.job.body,
        priority=call.job.priority,
        expiry=call.job.expiry,
        misfire=checked_misfire(misfire),
        overlap=checked_overlap(overlap),
        version=checked_version(version),
        is_declared=is_declared,
    )


def _decode(stored: StoredSchedule) -> tuple[Schedule, ScheduleState]:
    try:
        return decode_schedule(stored.queue, stored.name, stored.record)
    except UnreadableSchedule as error:
        raise StoreUnsupported(f"{error}: a newer version of Rota may have put it; remove it, or upgrade") from error


def _decrypted(known: Schedule, codec: Codec | None) -> bytes:
    """Returns the arguments of its jobs, encrypted if the key is missing."""
    try:
        return decrypt_arguments(codec, known.task, known.arguments)
    except Undecryptable:
        return known.arguments


def _info(
    known: Schedule, state: ScheduleState, tick: int | None, workers: Sequence[WorkerInfo], codec: Codec | None
) -> ScheduleInfo:
    zone = zone_of(known.rule)
    coming = () if tick is None else (tick, *islice(ticks(known.rule, tick), SHOWN_RUNS - 1))
    args, kwargs = decode_arguments(readable(_decrypted(known, codec)))
    return ScheduleInfo(
        name=known.name,
        queue=known.queue,
        rule=known.rule,
        task=known.task,
        args=tuple(args),
        kwargs=kwargs,
        misfire=known.misfire,
        overlap=known.overlap,
        version=known.version,
        is_declared=known.is_declared,
        is_orphaned=known.is_declared and _is_orphaned(known, workers),
        is_paused=state.is_paused,
        next_runs=tuple(datetime.fromtimestamp(one / 1000, zone) for one in coming),
        last_run=None if state.last_tick is None else datetime.fromtimestamp(state.last_tick / 1000, zone),
        last_job=f"{known.queue}:{state.last_id}" if state.last_id else None,
        fired=state.fired,
        dropped=state.dropped,
        skipped=state.skipped,
    )


async def _due_by_hour(views: Views, names: Sequence[str], first: int, hours: int) -> dict[str, list[int]]:
    """Returns the scheduled jobs that fall due in each hour, for the queues that have any."""
    before = first * HOUR_MS - 1
    waiting = await views.due_within(names, before, [hours * 3600])
    queues = [name for name in names if any(waiting[name].values())]
    until = await views.due_within(queues, before, [hour * 3600 for hour in range(1, hours + 1)]) if queues else {}
    return {name: [b - a for a, b in pairwise((0, *counts.values()))] for name, counts in until.items()}


def _add(sums: dict[str, list[int]], queue: str, counts: Sequence[int]) -> None:
    """Adds the counts of a shard to those of its queue."""
    sums[base_of(queue)] = [a + b for a, b in zip(sums.get(base_of(queue), [0] * len(counts)), counts, strict=True)]


def _is_orphaned(known: Schedule, workers: Sequence[WorkerInfo]) -> bool:
    """True when live workers serve the queue and none declares the schedule."""
    alive = [worker.info for worker in workers if worker.status == "ALIVE"]
    is_served = any(known.queue in info.get("queues", ()) for info in alive)
    return is_served and not any(known.full_name in info.get("schedules", ()) for info in alive)
