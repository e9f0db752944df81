"""`Rota`: declares tasks, enqueues jobs, and asks about them. Making one opens no socket and starts nothing."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import secrets
import weakref
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Concatenate, Final, Literal, ParamSpec, TypeVar, overload

from rota.context import Context
from rota.core.codec import encode_arguments
from rota.core.history import Counted, Series
from rota.core.job import (
    DEFAULT_QUEUE,
    MAX_SHARDS,
    JobRef,
    Options,
    checked_new_queue,
    checked_queue,
    checked_text,
)
from rota.core.retry import Seconds
from rota.core.same_id import Ignore, OnSameId
from rota.core.schedule import Cron, Every, Misfire, Overlap
from rota.core.states import JobState
from rota.core.terms import indexed_fields, terms_of
from rota.drafts import Draft
from rota.enqueueing import store_call, store_calls
from rota.errors import IdInUse, InvalidOption, PayloadTooLarge, StoreError, WorkerNotFound, WrongState
from rota.events import EVERYWHERE, Event, OfTask, follow
from rota.failures import SUFFIX, check_failure_options
from rota.history import Load, read_by_task, read_history, read_loads, read_totals
from rota.jobs import DeadLetters, Job, Queue
from rota.link import Durability, Link, checked_durability
from rota.listing import Filters, list_jobs
from rota.middleware import AMBIENT, Middleware, wrap_enqueue, wrap_store
from rota.operations import Operations
from rota.overview import Overview, read_overview
from rota.portal import Portal
from rota.schedules import ScheduleDecorator, Schedules
from rota.store.address import Address, find_address
from rota.store.door import Made
from rota.store.flows import Flows
from rota.store.gateway import Gateway
from rota.store.keys import Keys
from rota.store.store import Store
from rota.store.ties import FLOWS
from rota.store.views import LockPage, Page, QueueInfo, Views, WorkerInfo, merge_shards
from rota.suggestions import Suggestions, read_suggestions
from rota.tasks import Call, Registry, RunIn, TakesAnything, Task, TaskDecorator, check_defaults
from rota.workflows import Workflows

if TYPE_CHECKING:
    from rota.embedded import EmbeddedServer

logger = logging.getLogger("rota.client")
P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Lifespan = Callable[["Rota"], AbstractAsyncContextManager[Any]]

MAX_PAYLOAD: Final = 2**20
_NAMESPACE: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")


class Rota:
    """A job queue on one server and namespace.

    `url` may be redis://, rediss://, unix://, redis+sentinel:// or redis+cluster://. Without one, ROTA_URL, REDIS_URL
    or REDIS_HOST, REDIS_PORT and REDIS_PASSWORD are looked at; without those, an embedded Valkey runs in the nearest
    `.rota/` folder upwards from the working directory.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        namespace: str = "rota",
        lifespan: Lifespan | None = None,
        middleware: Sequence[Middleware] = (),
        max_payload: int = MAX_PAYLOAD,
        patience: float = 5.0,
        durability: Durability = "memory",
        replicas: int = 1,
        clock: str = "",
    ) -> None:
        if not isinstance(namespace, str) or not _NAMESPACE.fullmatch(namespace):
            raise InvalidOption("namespace", f"{namespace!r} is not 1 to 64 of A-Z a-z 0-9 - _ .")
        for option, value, least in (
            ("replicas", replicas, 1),
            ("max_payload", max_payload, 1),
            ("patience", patience, 0),
        ):
            if value < least:
                raise InvalidOption(option, f"must be at least {least}, not {value!r}")
        self._url = url
        self.keys = Keys(namespace)
        self.namespace = namespace
        self.lifespan = lifespan
        self.middleware = [*AMBIENT, *middleware]
        self.max_payload = max_payload
        self.tasks = Registry()
        self.dead = DeadLetters(self)
        self.operations = Operations(self)
        self.workflows = Workflows(self)
        self.schedules = Schedules(self)
        self._patience = patience
        self._durability: Durability = checked_durability(durability)
        self._replicas = replicas
        self._clock = clock
        self._queue_defaults: dict[str, dict[str, Any]] = {}
        self._failure_defaults: dict[str, dict[str, Any]] = {}
        #: Queue -> how many shards the program declares for it.
        self.shards: dict[str, int] = {}
        self._portal = Portal(self.close)
        self._links: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Link] = weakref.WeakKeyDictionary()

    # --- declaring ---------------------------------------------------------------------------------------------

    @overload
    def task(self, function: TakesAnything[P, Coroutine[Any, Any, R]]) -> Task[P, R, Coroutine[Any, Any, R]]: ...
    @overload
    def task(
        self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]]
    ) -> Task[P, R, Coroutine[Any, Any, R]]: ...
    @overload
    def task(self, function: TakesAnything[P, R]) -> Task[P, R, R]: ...
    @overload
    def task(self, function: Callable[Concatenate[Context, P], R]) -> Task[P, R, R]: ...
    @overload
    def task(self, function: Callable[P, Coroutine[Any, Any, R]]) -> Task[P, R, Coroutine[Any, Any, R]]: ...
    @overload
    def task(self, function: Callable[P, R]) -> Task[P, R, R]: ...
    @overload
    def task(
        self, *, name: str | None = ..., queue: str = ..., run_in: RunIn | None = ..., index: Sequence[str] = ...,
        priority: str | int = ..., lock: str = ..., on_same_id: OnSameId = ...,
        retry: Any = ..., max_stalls: int = ..., at_most_once: bool = ..., timeout: float | timedelta | None = ...,
        progress_timeout: float | timedelta = ..., expires: float | timedelta = ..., keep: Any = ...,
        tags: Iterable[str] = ..., meta: dict[str, Any] = ..., durability: Durability = ...,
    ) -> TaskDecorator: ...  # fmt: skip
    def task(
        self, function: Callable[..., Any] | None = None, *, name: str | None = None, queue: str = DEFAULT_QUEUE,
        run_in: RunIn | None = None, index: Sequence[str] = (), **defaults: Any,
    ) -> Any:  # fmt: skip
        """Declares a function as a task: `@rota.task` or `@rota.task(queue="mail", timeout=30, …)`.

        `index` names parameters by whose values its jobs can be found: `rota.jobs(fields={"user_id": 7})`. The other
        options are the defaults of its jobs. The function stays a plain callable. Raises TaskConflict when
        another function has that name.
        """

        def declare(declared: Callable[..., Any]) -> Task[Any, Any, Any]:
            task: Task[Any, Any, Any] = Task(
                self, declared, name=name, queue=queue, run_in=run_in, index=index, defaults=defaults
            )
            self.tasks.add(task)
            return task

        check_defaults(defaults)
        return TaskDecorator(declare) if function is None else declare(function)

    def cron(
        self, expression: str, *, tz: str = "UTC", name: str | None = None, args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None, misfire: Misfire = "once", overlap: Overlap = "queue",
        version: int = 1,
    ) -> ScheduleDecorator:  # fmt: skip
        """Declares when a task's jobs are to be made: `@rota.cron("0 3 * * *", tz="Europe/Oslo")` above `@rota.task`.

        Its name is the task's unless given. Nothing is stored before a worker starts. `misfire` says what becomes of
        ticks that nobody was there for: "once" runs the latest, "all" up to a hundred, "skip" none. With
        overlap="skip" a tick makes no job while the one before has not ended. Of two versions of a declaration the
        higher one stays. Raises InvalidOption for an expression that makes no sense, or a zone that does not exist.
        """
        return self.schedules.declare(
            Cron(expression, tz), name=name, args=args, kwargs=kwargs, misfire=misfire, overlap=overlap, version=version
        )

    def every(
        self, interval: Seconds, *, anchor: datetime | None = None, name: str | None = None,
        args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, misfire: Misfire = "once",
        overlap: Overlap = "queue", version: int = 1,
    ) -> ScheduleDecorator:  # fmt: skip
        """The same at equal distances, a second or more: `@rota.every(timedelta(minutes=5))`.

        They are counted from `anchor`, or from 1970: every hour is on the hour. See `cron` for the rest.
        """
        return self.schedules.declare(
            Every(interval, anchor), name=name, args=args, kwargs=kwargs, misfire=misfire, overlap=overlap,
            version=version,
        )  # fmt: skip

    def queue(
        self,
        name: str = DEFAULT_QUEUE,
        *,
        defaults: Mapping[str, Any] | None = None,
        failure_defaults: Mapping[str, Any] | None = None,
        shards: int | None = None,
    ) -> Queue:
        """A queue's handle. `defaults` are options for jobs enqueued there, below those of task and enqueue.

        `failure_defaults` are options for the failure handlers of its jobs, below those given to `on_failure`.
        `shards` spreads the queue over the nodes of a cluster: it has that many from its first use on.
        """
        checked_queue(name)
        if shards is not None:
            checked_new_queue(name)
            if isinstance(shards, bool) or not isinstance(shards, int) or not 1 <= shards <= MAX_SHARDS:
                raise InvalidOption("shards", f"must be 1 to {MAX_SHARDS}, not {shards!r}")
            self.shards[name] = shards
        if name.endswith("-fail") and (defaults is not None or failure_defaults is not None):
            base = name.removesuffix("-fail")
            raise InvalidOption("queue", f"options for {name!r} are given as rota.queue({base!r}, failure_defaults=…)")
        if failure_defaults is not None:
            check_failure_options(failure_defaults)
            self._failure_defaults[name] = dict(failure_defaults)
        if defaults is not None:
            check_defaults(defaults)
            self._queue_defaults[name] = dict(defaults)
            for task in self.tasks:
                task.refresh_defaults()
        return Queue(self, name)

    def defaults_of(self, queue: str) -> dict[str, Any]:
        """The defaults that a queue was given."""
        return self._queue_defaults.get(queue, {})

    def failure_defaults_of(self, queue: str) -> dict[str, Any]:
        """The defaults that the failure handlers of a queue's jobs were given."""
        return self._failure_defaults.get(queue, {})

    @property
    def failure_queues(self) -> list[str]:
        """The queues that have such defaults."""
        return list(self._failure_defaults)

    # --- enqueueing --------------------------------------------------------------------------------------------

    async def enqueue(self, call: Call[R]) -> Job[R]:
        """Stores one call as a job; returns once it is stored, as durably as asked for."""
        if self.middleware:
            job = (await self.enqueue_many([call]))[0]
        else:
            queue, made = await store_call(self._link_of_loop(), call, self._durability)
            job = self._handle(call, queue, made)
        if isinstance(job, IdInUse):
            raise job
        return job

    async def enqueue_many(self, calls: Iterable[Call[R]]) -> list[Job[R] | IdInUse]:
        """Stores many calls, in order, in one round trip per queue and 500 jobs; each batch as a whole.

        Returns a handle for each, or IdInUse where its id was taken and `Reject()` asked for. A batch that could not
        be stored raises; earlier batches of the same call are stored then. Jobs may come after others of the same call,
        by their ids, in whatever order they are given.
        """
        wanted = list(calls)
        for middleware in self.middleware:
            wanted = [await wrap_enqueue(middleware, call) for call in wanted]
        return await wrap_store(self.middleware, self._store_calls)(wanted)

    async def _store_calls(self, wanted: Sequence[Call[R]]) -> list[Job[R] | IdInUse]:
        stored = await store_calls(self._link_of_loop(), wanted, self._durability)
        return [self._handle(call, queue, made) for call, (queue, made) in zip(wanted, stored, strict=True)]

    # --- asking ------------------------------------------------------------------------------------------------

    def job(self, job_id: str, *, returns: Any = Any) -> Job[Any]:
        """A handle for `queue:id`, `queue:id@run` or a bare id of queue `default`. Asks nothing yet."""
        return Job(self, JobRef.parse(job_id), returns=returns)

    async def jobs(
        self,
        state: JobState | str | None = None,
        *,
        queue: str | None = None,
        task: str | None = None,
        tag: str | None = None,
        fields: Mapping[str, Any] | None = None,
        worker: str | None = None,
        error: str | None = None,
        group: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        text: str | None = None,
        cursor: str | None = None,
        limit: int = 100,
        order: str | None = None,
    ) -> Page:
        """A page of jobs that are all that is asked for, with a cursor for the next one.

        `tag` is one of the job's tags, `fields` are values of parameters that its task declared as `index`, `error` is
        the class of its last error, `group` one of `rota.dead.groups()`. `since` and `until` are about the time at
        which it ended, where a finished state is asked for, else at which it was enqueued. All these are looked up;
        `text` is looked for in the records, of which a page examines a bounded number: `examined` says how many.

        Waiting jobs of one state come in the order in which they will start, finished ones latest first; where anything
        else is asked for, jobs come as they were enqueued, and the finished ones latest first. `order` may say "oldest"
        or "newest". However jobs come and go between two pages, one that matches all along is on exactly one of them.
        """
        filters = Filters.of(
            task=task, tag=tag, fields=fields, worker=worker, error=error, group=group, text=text, since=since,
            until=until,
        )  # fmt: skip
        return await list_jobs(
            self.checked_link, state, queue=queue, filters=filters, cursor=cursor, limit=limit, order=order
        )

    async def queues(self) -> list[QueueInfo]:
        """How every queue stands; one that has shards as a whole."""
        views = (await self._link()).views
        return merge_shards(await views.queue_infos(await views.queues()))

    async def locks(
        self, *, queue: str | None = None, lock: str = "", cursor: str | None = None, limit: int = 100
    ) -> LockPage:
        """The locks that are held or wanted: whose each is, and who waits. About `limit` at a time."""
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= 1000:
            raise InvalidOption("limit", f"{limit!r} is not between 1 and 1,000")
        link = await self._link()
        queues = await link.names_of(checked_queue(queue)) if queue else await link.views.queues()
        return await link.views.locks(queues, lock=lock, cursor=cursor, limit=limit)

    async def workers(self) -> list[WorkerInfo]:
        """The workers heard of in the last day, ALIVE or DEAD, and what each is running."""
        return await (await self._link()).views.workers()

    async def drain(self, worker: str) -> str:
        """Asks a worker to take no more jobs, finish what it runs, however long that takes, and leave with code 0.

        `worker` is one of `workers()`, or the name that it was given, if one worker of that name lives. Returns its id;
        it shows as draining within moments. Asked again, nothing changes. Raises WorkerNotFound, WrongState when it has
        stopped, InvalidOption when several are called that.
        """
        link = await self._link()
        workers = await link.views.workers()
        found = [one.id for one in workers if one.id == worker]
        found = found or [one.id for one in workers if one.status == "ALIVE" and one.name == worker]
        if len(found) > 1:
            raise InvalidOption("worker", f"{worker!r} may mean {', '.join(sorted(found))}: say which")
        outcome = await link.store.drain(found[0]) if found else "missing"
        if outcome == "missing":
            raise WorkerNotFound(worker)
        if outcome == "stopped":
            raise WrongState(f"worker {found[0]}", "stopped", "drain")
        return found[0]

    async def history(
        self, *, queue: str | None = None, task: str | None = None, since: Seconds | datetime = 3600,
        step: Seconds | None = None,
    ) -> Series:  # fmt: skip
        """What has happened since a time, or for so many seconds back: counts, wait and run times, from step to step.

        Of one queue or of all, of one task or of all. Minutes are known for a day, hours for 30 days; a step is a
        minute where that goes, else an hour, unless given. Of tasks beyond the first hundred of a queue only the sum
        is known, as task "__other__".
        """
        return await read_history(await self._link(), queue=queue, task=task, since=since, step=step)

    async def history_by_task(
        self, *, queue: str | None = None, since: Seconds = 3600
    ) -> dict[str, dict[str, Counted]]:
        """Queue -> task -> what was counted of it for so many seconds back, to the minute, or beyond a day the hour."""
        return await read_by_task(await self._link(), queue=queue, since=since)

    async def totals(self, queue: str | None = None) -> dict[str, dict[str, Counted]]:
        """Queue -> task -> all that was ever counted, whoever has been restarted since."""
        return await read_totals(await self._link(), queue)

    async def loads(self, queues: Sequence[str] | None = None) -> list[Load]:
        """How much there is to do in each queue, how fast it comes and goes, and who works on it."""
        return await read_loads(await self._link(), queues)

    async def overview(self) -> Overview:
        """How everything stands, at one glance; cheap enough to be asked for every second."""
        return await read_overview(await self._link())

    async def suggestions(self) -> Suggestions:
        """Words to complete a filter with: all queues, tasks and workers; tags and errors from a sample of the jobs."""
        return await read_suggestions(await self._link())

    async def check(self) -> None:
        """Asks the server whether it can be used. Raises StoreError that says why not."""
        await self._link_of_loop().check()

    async def events(
        self, *, queues: Sequence[str] | None = None, task: str | None = None, after: str | None = None,
        beyond: bool = False, pace: float = 0.0,
    ) -> AsyncGenerator[Event]:  # fmt: skip
        """What happens, as it happens: hints, with ids that can be resumed with `after`. The state is the truth.

        With a `task` only what happens to its jobs; of one that is gone before it was first heard of, nothing. With
        `beyond` also what belongs to no queue: workers, workflows and operations. With a `pace` the server is asked
        no more often than every so many seconds, however much happens.
        """
        chosen = [checked_queue(queue) for queue in queues] if queues else None
        link = await self._link()

        async def names() -> Sequence[str]:
            if chosen is None:
                found = await link.views.queues()
            else:
                found = [name for queue in chosen for name in await link.names_of(queue)]
            return [EVERYWHERE, *found] if beyond else found

        of_task = OfTask(link.search, checked_text(task, "task")) if task is not None else None
        async for event in follow(link.gateway, self.keys, names, after, pace, of_task):
            yield event

    def encode_arguments(self, task: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        """Arguments as they are stored. Those of a task that this program declares are checked; all for their size."""
        if task.endswith(SUFFIX):
            raise InvalidOption("arguments", "those of a failure handler are made by the job that failed")
        if task in self.tasks:
            encoded = self.tasks.get(task).signature.encode(args, kwargs)
        else:
            encoded = encode_arguments(args, kwargs)
        if len(encoded) > self.max_payload:
            raise PayloadTooLarge(f"the arguments of task {task!r}", len(encoded), self.max_payload)
        return encoded

    def terms_of(
        self, task_name: str, options: Options, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[str, ...]:
        """What a job is found by once its arguments are replaced.

        Of a task that is not declared here, the names of its positional arguments are not known: a job that is given
        such ones is no longer found by them.
        """
        if task_name in self.tasks:
            task = self.tasks.get(task_name)
            names, named = tuple(task.index), task.signature.named(args, kwargs)
        else:
            names, named = tuple(indexed_fields(options.terms)), kwargs
        return terms_of(options.tags, {name: named[name] for name in names if name in named})

    async def tell_dependents(self, queue: str) -> None:
        """Passes on what has become of a queue's jobs to those that come after them. Any worker would, in time."""
        try:
            link, told = await self._link(), set[str]()
            await link.ties.post_all(queue, whose="all", on_told=told.add)
            if FLOWS in told:
                # No worker has heard of it: one would look only seconds later.
                await link.flows.drive_due()
        except StoreError as error:
            # What was asked for is done; the news waits in the outbox for whoever comes next.
            logger.debug("dependents of queue %s were not told: %s", queue, error)

    def workflow(
        self,
        name: str,
        *,
        id: str | None = None,
        on_failure: Literal["undo", "hold"] | None = None,
        resume: Literal["on_start"] | None = None,
        limit: int | None = None,
    ) -> Draft:
        """A workflow to be built: `async with rota.workflow("order") as flow: …`, committed where the block ends.

        If a step fails for good, what was done is undone (`on_failure="undo"`, as it is where any step has an undo),
        or the workflow is held until `resume()`. `limit`: how many of that name advance at once.
        """
        return Draft(self, name, workflow_id=id, on_failure=on_failure, resume=resume, limit=limit)

    async def wait_flow_ended(self, workflow_id: str) -> None:
        """Waits until a workflow has ended, or waits for a human."""
        await (await self._link()).wait_flow_ended(workflow_id)

    async def checked_flows(self) -> Flows:
        """The workflows' side of the store, once the server has been found fit."""
        return (await self._link()).flows

    async def checked_link(self) -> Link:
        """What the running loop shares, once the server has been found fit."""
        return await self._link()

    async def wait_ended(self, ref: JobRef) -> JobRef:
        """Waits until a run has ended, and returns it pinned. Raises JobNotFound when there is none, or no longer."""
        return await (await self._link()).wait_ended(ref)

    # --- life --------------------------------------------------------------------------------------------------

    @property
    def store(self) -> Store:
        """The write side, on the running loop."""
        return self._link_of_loop().store

    @property
    def views(self) -> Views:
        """The read side, on the running loop."""
        return self._link_of_loop().views

    async def checked_store(self) -> Store:
        """The write side, once the server has been found fit."""
        return (await self._link()).store

    async def checked_views(self) -> Views:
        """The read side, once the server has been found fit."""
        return (await self._link()).views

    def connect(self, participant: str, *, patience: float | None = None) -> Store:
        """A store of its own for a worker on the running loop; `participant` names it."""
        return self._make_link(participant, patience).store

    @property
    def embedded(self) -> EmbeddedServer | None:
        """The embedded server, where there is no other."""
        return _shared_embedded(find_address(self._url, os.environ))

    @property
    def address(self) -> str:
        """Where the server is, without secrets."""
        return str(find_address(self._url, os.environ))

    def connection(self) -> dict[str, Any]:
        """What another process of this program needs to reach the same server: for its own pipes, never for show."""
        return {"url": self._url, "namespace": self.namespace, "clock": self._clock}

    def move(self, *, url: str | None, namespace: str) -> None:
        """Uses another server and namespace from now on. What is open has to be closed first. For tests."""
        self._url = url
        self.namespace = namespace
        self.keys = Keys(namespace)

    async def close(self) -> None:
        """Closes the connections of the running loop. The next call opens new ones."""
        link = self._links.pop(asyncio.get_running_loop(), None)
        if link is not None:
            await link.close()

    def close_sync(self) -> None:
        """Closes what the `_sync` twins opened. At the end of a program that is done without being asked for."""
        self._portal.close()

    async def __aenter__(self) -> Rota:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def wait_for(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine of this client from code that is not async: what every `_sync` twin does."""
        return self._portal.wait_for(coroutine)

    # --- twins -------------------------------------------------------------------------------------------------

    def enqueue_sync(self, call: Call[R]) -> Job[R]:
        """`enqueue`, for code that is not async."""
        return self.wait_for(self.enqueue(call))

    def enqueue_many_sync(self, calls: Iterable[Call[R]]) -> list[Job[R] | IdInUse]:
        """`enqueue_many`, for code that is not async."""
        return self.wait_for(self.enqueue_many(list(calls)))

    def jobs_sync(
        self, state: JobState | str | None = None, *, queue: str | None = None, task: str | None = None,
        tag: str | None = None, fields: Mapping[str, Any] | None = None, worker: str | None = None,
        error: str | None = None, group: str | None = None, since: datetime | None = None,
        until: datetime | None = None, text: str | None = None, cursor: str | None = None, limit: int = 100,
        order: str | None = None,
    ) -> Page:  # fmt: skip
        """`jobs`, for code that is not async."""
        return self.wait_for(
            self.jobs(
                state, queue=queue, task=task, tag=tag, fields=fields, worker=worker, error=error, group=group,
                since=since, until=until, text=text, cursor=cursor, limit=limit, order=order,
            )
        )  # fmt: skip

    def queues_sync(self) -> list[QueueInfo]:
        """`queues`, for code that is not async."""
        return self.wait_for(self.queues())

    def locks_sync(
        self, *, queue: str | None = None, lock: str = "", cursor: str | None = None, limit: int = 100
    ) -> LockPage:
        """`locks`, for code that is not async."""
        return self.wait_for(self.locks(queue=queue, lock=lock, cursor=cursor, limit=limit))

    def workers_sync(self) -> list[WorkerInfo]:
        """`workers`, for code that is not async."""
        return self.wait_for(self.workers())

    def drain_sync(self, worker: str) -> str:
        """`drain`, for code that is not async."""
        return self.wait_for(self.drain(worker))

    def history_sync(
        self, *, queue: str | None = None, task: str | None = None, since: Seconds | datetime = 3600,
        step: Seconds | None = None,
    ) -> Series:  # fmt: skip
        """`history`, for code that is not async."""
        return self.wait_for(self.history(queue=queue, task=task, since=since, step=step))

    def history_by_task_sync(self, *, queue: str | None = None, since: Seconds = 3600) -> dict[str, dict[str, Counted]]:
        """`history_by_task`, for code that is not async."""
        return self.wait_for(self.history_by_task(queue=queue, since=since))

    def totals_sync(self, queue: str | None = None) -> dict[str, dict[str, Counted]]:
        """`totals`, for code that is not async."""
        return self.wait_for(self.totals(queue))

    def loads_sync(self, queues: Sequence[str] | None = None) -> list[Load]:
        """`loads`, for code that is not async."""
        return self.wait_for(self.loads(queues))

    def overview_sync(self) -> Overview:
        """`overview`, for code that is not async."""
        return self.wait_for(self.overview())

    def suggestions_sync(self) -> Suggestions:
        """`suggestions`, for code that is not async."""
        return self.wait_for(self.suggestions())

    def check_sync(self) -> None:
        """`check`, for code that is not async."""
        self.wait_for(self.check())

    # --- within ------------------------------------------------------------------------------------------------

    def _handle(self, call: Call[R], queue: str, made: Made) -> Job[R] | IdInUse:
        """What the caller gets for what has become of his job."""
        ref = JobRef(queue, made.id, made.run)
        outcome = made.outcome
        if outcome in ("made", "updated", "again") or (outcome == "in_use" and isinstance(call.on_same_id, Ignore)):
            returns = call.task.signature.returns
            return Job(self, ref, returns=returns, is_new=outcome == "made", enqueued_at=made.at or None)
        return IdInUse(ref.full_id, made.run, outcome)

    async def _link(self) -> Link:
        link = self._link_of_loop()
        await link.check()
        return link

    def _link_of_loop(self) -> Link:
        loop = asyncio.get_running_loop()
        link = self._links.get(loop)
        if link is None:
            for other in [other for other in self._links if other.is_closed()]:
                del self._links[other]  # it ended without a `close`: its connections go with it
            link = self._links[loop] = self._make_link(f"client-{secrets.token_hex(6)}", None)
        return link

    def _make_link(self, participant: str, patience: float | None) -> Link:
        address = find_address(self._url, os.environ)
        gateway = Gateway(
            address,
            embedded=_shared_embedded(address),
            patience=self._patience if patience is None else patience,
            clock=self._clock,
        )
        return Link(Store(gateway, self.keys, participant), self._durability, self._replicas, self.shards)


def _shared_embedded(address: Address) -> EmbeddedServer | None:
    if address.kind != "embedded":
        return None
    from rota.embedded import shared_server  # only where it is needed: it starts processes

    return shared_server()
