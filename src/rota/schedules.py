"""Schedules: declared beside the code of their task, or put at run time; and what an operator does to them."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from itertools import islice, pairwise
from types import CodeType
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, Protocol, TypeGuard, TypeVar, overload

import msgspec

from rota.context import Context
from rota.core.codec import decode_arguments, decode_options, encode_body
from rota.core.history import HOUR_MS
from rota.core.job import DEFAULT_OPTIONS, JobRecord, JobRef, base_of, checked_queue
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
    in_words,
    tick_id,
    ticks,
    zone_of,
)
from rota.errors import ConfigurationError, InvalidOption, ScheduleNotFound, ScheduleOutdated, StoreUnsupported
from rota.jobs import Job
from rota.store.schedules import ScheduleStore, StoredSchedule
from rota.store.views import Views, WorkerInfo
from rota.tasks import Call, TakesAnything, Task

if TYPE_CHECKING:
    from rota.client import Rota

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
C = TypeVar("C")

logger = logging.getLogger("rota.schedules")

#: Runs to come that a `ScheduleInfo` shows.
SHOWN_RUNS: Final = 5
#: A tick that came longer before another one is not looked for.
LOOK_BACK_MS: Final = 400 * 86_400_000
#: How far `ahead` looks, in hours, and for how many schedules.
MOST_AHEAD: Final = 7 * 24
COUNTED_SCHEDULES: Final = 1_000
#: Queues whose hours are asked for in one go.
ASKED_QUEUES: Final = 20


class ScheduleInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule as it stands. Times are in the zone of its rule."""

    name: str
    queue: str
    rule: ScheduleRule
    task: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    misfire: Misfire
    overlap: Overlap
    version: int
    #: It stands in the code of a worker, and comes back when one starts; else it was put at run time.
    is_declared: bool
    #: It was declared, and of the workers that live none declares it now, though one serves its queue.
    is_orphaned: bool
    is_paused: bool
    #: The next few; none while it is paused. The first may be over, when no worker serves its queue.
    next_runs: tuple[datetime, ...]
    last_run: datetime | None
    #: The job that the last tick made, `queue:id`; it may be kept no longer.
    last_job: str | None
    #: Jobs made by ticks.
    fired: int
    #: Ticks that were missed and not made up for, as its misfire policy says; after a long time, at least so many.
    dropped: int
    #: Ticks that made no job because the one before had not ended, as its overlap policy says.
    skipped: int

    @property
    def id(self) -> str:
        """`queue:name`, which says where it lives."""
        return f"{self.queue}:{self.name}"

    @property
    def words(self) -> str:
        """Its rule as a person says it: “at 03:00 every day, Europe/Oslo”."""
        return in_words(self.rule)

    def standing(self, zone: tzinfo | None = None) -> dict[str, Any]:
        """Its policies, and how it stands, as the command line and the HTTP API say it. Times have their offset."""
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
    """One tick of a schedule. `record` is None where it made no job, or that is no longer kept."""

    at: datetime
    job: str
    record: JobRecord | None


class Ahead(msgspec.Struct, frozen=True, kw_only=True):
    """What the next hours bring, by queue. The first hour has begun: only what is left of it counts."""

    #: The server's time, and when the first hour began; ms.
    at: int
    since: int
    hours: int
    #: Queue -> runs of its schedules in each hour; a queue without any is left out. Each may make a job.
    runs: dict[str, list[int]]
    #: Queue -> scheduled jobs that fall due in each hour, retries among them; those that are overdue in the first.
    due: dict[str, list[int]]
    #: Schedules that are not in it, as there are more than a thousand.
    uncounted: int


# --- declaring ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Declaration:
    """A schedule in the code: a task, a rule, and what its jobs are called with."""

    name: str
    task: Task[Any, Any, Any]
    rule: ScheduleRule
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    misfire: Misfire
    overlap: Overlap
    version: int

    def schedule(self) -> Schedule:
        """As it is stored. Raises InvalidArguments when the task cannot be called like that."""
        return _schedule(
            self.name, self.rule, self.task.call(*self.args, **self.kwargs), misfire=self.misfire,
            overlap=self.overlap, version=self.version, is_declared=True,
        )  # fmt: skip


class Declarations:
    """The schedules that a program declares, by name. Nothing is stored before a worker of the program starts."""

    def __init__(self) -> None:
        self._by_name: dict[str, Declaration] = {}

    def add(self, declared: Declaration) -> None:
        """Declares a schedule. That of the same function again (a notebook cell, a reload) replaces itself."""
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
    """A function written in Python, for type checkers alone: a task can be called as well, and is not one."""

    @property
    def __code__(self) -> CodeType: ...
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...


class ScheduleDecorator:
    """What `@rota.cron(...)` and `@rota.every(...)` return: gives a task a schedule; a function becomes a task."""

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
        """Declares the schedule; a plain function becomes a task first."""
        return self._declare(task)


# --- at run time -------------------------------------------------------------------------------------------------


class Schedules:
    """The schedules in the store. Each is named `queue:name`, or by its name alone where only one queue has it."""

    def __init__(self, rota: Rota) -> None:
        self._rota = rota
        self.declared = Declarations()

    def declare(
        self, rule: ScheduleRule, *, name: str | None, args: Sequence[Any], kwargs: Mapping[str, Any] | None,
        misfire: Misfire, overlap: Overlap, version: int,
    ) -> ScheduleDecorator:  # fmt: skip
        """See `Rota.cron` and `Rota.every`."""
        if name is not None:
            checked_schedule_name(name)
        checked_misfire(misfire)
        checked_overlap(overlap)
        checked_version(version)

        def declare(function: Any) -> Task[Any, Any, Any]:
            task: Task[Any, Any, Any] = function if _is_task(function) else self._rota.task(function)
            self.declared.add(
                Declaration(
                    name=checked_schedule_name(task.name) if name is None else name,
                    task=task,
                    rule=rule,
                    args=tuple(args),
                    kwargs=dict(kwargs or {}),
                    misfire=misfire,
                    overlap=overlap,
                    version=version,
                )
            )
            return task

        return ScheduleDecorator(declare)

    async def put(
        self, name: str, rule: ScheduleRule, call: Call[Any], *, misfire: Misfire = "once",
        overlap: Overlap = "queue", version: int = 1,
    ) -> ScheduleInfo:  # fmt: skip
        """Makes a schedule in the queue of the call, or changes the one of that name there.

        While the rule stays the same, so does the next run; a schedule that is paused stays so. Raises
        ScheduleOutdated, and changes nothing, when the one that is stored has a higher version.
        """
        asked = _schedule(name, rule, call, misfire=misfire, overlap=overlap, version=version, is_declared=False)
        # The queue is listed, and the server found fit, as for an enqueue.
        store = await self._store()
        wanted = await (await self._rota.checked_link()).settle(asked)
        outcome, stored = await store.put(wanted)
        if outcome == "older":
            raise ScheduleOutdated(wanted.full_name, version, stored)
        return await self.get(wanted.full_name)

    async def change(
        self, name: str, *, rule: ScheduleRule | None = None, args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None, misfire: Misfire | None = None, overlap: Overlap | None = None,
    ) -> ScheduleInfo:  # fmt: skip
        """Changes a schedule that is there; what is not given stays, and arguments are replaced as a whole.

        One that is declared gets a higher version, so that the code which declares it does not take the change back.
        Raises ScheduleNotFound.
        """
        _, stored = await self._find(name)
        known, _ = _decode(stored)
        body = known.body
        if args is not None or kwargs is not None:
            body = self._body(known, tuple(args or ()), dict(kwargs or {}))
        wanted = msgspec.structs.replace(
            known,
            rule=checked_rule(known.rule if rule is None else rule),
            body=body,
            misfire=checked_misfire(known.misfire if misfire is None else misfire),
            overlap=checked_overlap(known.overlap if overlap is None else overlap),
            version=checked_version(known.version + 1 if known.is_declared else known.version),
        )
        outcome, version = await (await self._store()).put(wanted)
        if outcome == "older":  # somebody else changed it in the meantime
            raise ScheduleOutdated(wanted.full_name, wanted.version, version)
        return await self.get(wanted.full_name)

    def _body(self, known: Schedule, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        """Record of its jobs with other arguments."""
        text = known.body.split(b"\n", 1)[0]
        options = decode_options(text) if text else DEFAULT_OPTIONS
        terms = self._rota.terms_of(known.task, options, args, kwargs)
        arguments = self._rota.encode_arguments(known.task, args, kwargs)
        return encode_body(msgspec.structs.replace(options, terms=terms), known.task, arguments)

    async def runs(self, name: str, *, limit: int = 10) -> list[ScheduledRun]:
        """Its latest ticks, the latest first, by its rule as it is now; each with its job, if that is still kept."""
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= 100:
            raise InvalidOption("limit", f"{limit!r} is not between 1 and 100")
        _, stored = await self._find(name)
        known, state = _decode(stored)
        moments: list[int] = []
        tick = state.last_tick
        while tick is not None and len(moments) < limit:
            moments.append(tick)
            tick = known.rule.latest(tick - LOOK_BACK_MS, tick - 1)
        refs = [JobRef(known.queue, tick_id(known.name, moment)) for moment in moments]
        found = await (await self._rota.checked_views()).read(known.queue, refs, detail="brief") if refs else []
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
        """One schedule. Raises ScheduleNotFound."""
        _, stored = await self._find(name)
        known, state = _decode(stored)
        return _info(known, state, stored.tick, await (await self._rota.checked_views()).workers())

    async def list(self, *, queue: str | None = None) -> list[ScheduleInfo]:
        """All schedules, or those of one queue, by name. One that cannot be read is left out, with a warning."""
        found = await self._all(queue)
        workers = await (await self._rota.checked_views()).workers() if found else []
        return [_info(known, state, tick, workers) for known, state, tick in found]

    async def ahead(self, *, queue: str | None = None, hours: int = MOST_AHEAD) -> Ahead:
        """What the next hours bring, a week at most: runs of schedules by their rules, and scheduled jobs.

        Nothing is walked through: runs are counted by arithmetic, jobs in the index of what falls due.
        """
        if isinstance(hours, bool) or not isinstance(hours, int) or not 1 <= hours <= MOST_AHEAD:
            raise InvalidOption("hours", f"{hours!r} is not between 1 and {MOST_AHEAD}")
        link = await self._rota.checked_link()
        now = await link.views.now()
        found = [(known, tick) for known, _, tick in await self._all(queue) if tick is not None]
        runs: dict[str, list[int]] = {}
        for known, tick in found[:COUNTED_SCHEDULES]:
            # One that is overdue runs as soon as a worker sees it.
            counts = count_by_hour(known.rule, max(now, tick - 1), now // HOUR_MS, hours)
            counts[0] += tick <= now
            if any(counts):
                _add(runs, known.queue, counts)
            await asyncio.sleep(0)  # others have their turn
        names = await link.names_of(checked_queue(queue)) if queue else await link.views.queues()
        due: dict[str, list[int]] = {}
        for start in range(0, len(names), ASKED_QUEUES):
            part = await _due_by_hour(link.views, names[start : start + ASKED_QUEUES], now // HOUR_MS, hours)
            for name, counts in part.items():
                _add(due, name, counts)
        return Ahead(
            at=now, since=now // HOUR_MS * HOUR_MS, hours=hours, runs=runs, due=due,
            uncounted=max(0, len(found) - COUNTED_SCHEDULES),
        )  # fmt: skip

    async def pause(self, name: str) -> None:
        """Stops its ticks. What would have come meanwhile is not made up for. Raises ScheduleNotFound."""
        await self._set(name, "paused")

    async def resume(self, name: str) -> None:
        """Lets it tick again, from now on. Raises ScheduleNotFound."""
        await self._set(name, "open")

    async def run_now(self, name: str) -> Job[Any]:
        """Makes one of its jobs now, also while it is paused; its ticks stay as they are. Raises ScheduleNotFound."""
        store = await self._store()
        while True:
            now, stored = await self._find(name)
            known, state = _decode(stored)
            job_id = f"{tick_id(known.name, now)}-{secrets.token_hex(2)}"
            run = await store.run(known, state.revision, job_id)
            if run == "missing":
                raise ScheduleNotFound(name)
            if run not in ("changed", "in_use"):  # else it was changed since it was read, or the dice fell badly
                return Job(self._rota, JobRef(known.queue, job_id, run))

    async def remove(self, name: str) -> None:
        """Forgets it; its jobs stay. One that is declared comes back with the next worker. Raises ScheduleNotFound."""
        _, stored = await self._find(name)
        if not await (await self._store()).remove(stored.queue, stored.name):
            raise ScheduleNotFound(name)

    # --- twins -------------------------------------------------------------------------------------------------

    def put_sync(
        self, name: str, rule: ScheduleRule, call: Call[Any], *, misfire: Misfire = "once",
        overlap: Overlap = "queue", version: int = 1,
    ) -> ScheduleInfo:  # fmt: skip
        """`put`, for code that is not async."""
        return self._rota.wait_for(self.put(name, rule, call, misfire=misfire, overlap=overlap, version=version))

    def change_sync(
        self, name: str, *, rule: ScheduleRule | None = None, args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None, misfire: Misfire | None = None, overlap: Overlap | None = None,
    ) -> ScheduleInfo:  # fmt: skip
        """`change`, for code that is not async."""
        return self._rota.wait_for(
            self.change(name, rule=rule, args=args, kwargs=kwargs, misfire=misfire, overlap=overlap)
        )

    def runs_sync(self, name: str, *, limit: int = 10) -> Sequence[ScheduledRun]:
        """`runs`, for code that is not async."""
        return self._rota.wait_for(self.runs(name, limit=limit))

    def get_sync(self, name: str) -> ScheduleInfo:
        """`get`, for code that is not async."""
        return self._rota.wait_for(self.get(name))

    def list_sync(self, *, queue: str | None = None) -> Sequence[ScheduleInfo]:
        """`list`, for code that is not async."""
        return self._rota.wait_for(self.list(queue=queue))

    def ahead_sync(self, *, queue: str | None = None, hours: int = MOST_AHEAD) -> Ahead:
        """`ahead`, for code that is not async."""
        return self._rota.wait_for(self.ahead(queue=queue, hours=hours))

    def pause_sync(self, name: str) -> None:
        """`pause`, for code that is not async."""
        self._rota.wait_for(self.pause(name))

    def resume_sync(self, name: str) -> None:
        """`resume`, for code that is not async."""
        self._rota.wait_for(self.resume(name))

    def run_now_sync(self, name: str) -> Job[Any]:
        """`run_now`, for code that is not async."""
        return self._rota.wait_for(self.run_now(name))

    def remove_sync(self, name: str) -> None:
        """`remove`, for code that is not async."""
        self._rota.wait_for(self.remove(name))

    # --- within ------------------------------------------------------------------------------------------------

    async def _store(self) -> ScheduleStore:
        return ScheduleStore((await self._rota.checked_store()).gateway, self._rota.keys)

    async def _queues(self, queue: str) -> Sequence[str]:
        """Where schedules may be: in one queue, or in all that have any."""
        if queue:
            return await (await self._rota.checked_link()).names_of(checked_queue(queue))
        return await (await self._store()).queues()

    async def _all(self, queue: str | None) -> Sequence[tuple[Schedule, ScheduleState, int | None]]:
        """All that can be read, each with its next tick."""
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
        """The server's time, and the schedule of that name."""
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
            raise InvalidOption("name", f"{name!r} may mean {names}: say which")
        return found[0]

    async def _set(self, name: str, wanted: str) -> None:
        store = await self._store()
        outcome = "changed"
        while outcome == "changed":  # since it was read: its next tick must be that of its rule as it is now
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
    name: str, rule: ScheduleRule, call: Call[Any], *, misfire: Misfire, overlap: Overlap, version: int,
    is_declared: bool,
) -> Schedule:  # fmt: skip
    if call.job.id or call.job.due:
        given = "id" if call.job.id else "delay"
        raise InvalidOption(given, "a schedule's jobs have their ids and times from its ticks: leave it out")
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


def _info(known: Schedule, state: ScheduleState, tick: int | None, workers: Sequence[WorkerInfo]) -> ScheduleInfo:
    zone = zone_of(known.rule)
    coming = () if tick is None else (tick, *islice(ticks(known.rule, tick), SHOWN_RUNS - 1))
    args, kwargs = decode_arguments(known.arguments)
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
    """Of the queues that have any, how many scheduled jobs fall due in each hour."""
    before = first * HOUR_MS - 1
    waiting = await views.due_within(names, before, [hours * 3600])
    asked = [name for name in names if any(waiting[name].values())]
    until = await views.due_within(asked, before, [hour * 3600 for hour in range(1, hours + 1)]) if asked else {}
    return {name: [b - a for a, b in pairwise((0, *counts.values()))] for name, counts in until.items()}


def _add(sums: dict[str, list[int]], queue: str, counts: Sequence[int]) -> None:
    """Adds those of a shard to those of its queue."""
    sums[base_of(queue)] = [a + b for a, b in zip(sums.get(base_of(queue), [0] * len(counts)), counts, strict=True)]


def _is_orphaned(known: Schedule, workers: Sequence[WorkerInfo]) -> bool:
    """While nobody serves the queue, nobody can be said to have left the schedule out."""
    alive = [worker.info for worker in workers if worker.status == "ALIVE"]
    is_served = any(known.queue in info.get("queues", ()) for info in alive)
    return is_served and not any(known.full_name in info.get("schedules", ()) for info in alive)
