"""`Rota`: declares tasks, enqueues jobs, and reads and controls them. Creating one opens no connection."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any, Concatenate, Final, Literal, ParamSpec, TypeVar, overload

from rota.client.annotations import Annotations
from rota.client.announced_task_stand_ins import AnnouncedTasks
from rota.client.bulk_operations import Operations
from rota.client.context import Context
from rota.client.dead_letters import DeadLetters
from rota.client.durability import Durability, checked_durability
from rota.client.encryption import Encrypted
from rota.client.enqueue import Enqueuer, OnRefused
from rota.client.events import NO_QUEUE, Event, TaskFilter, follow
from rota.client.export_jobs_schedules_and_workflows import export_lines
from rota.client.external_blobs import ExternalBlobs
from rota.client.failed_attempt import ErrorHook, FailedAttempt
from rota.client.failure_handlers import RunIn, check_failure_options
from rota.client.import_jobs_schedules_and_workflows import ImportReport, import_lines
from rota.client.job import Job
from rota.client.job_listing import Filters, list_jobs
from rota.client.middleware import AMBIENT, Middleware
from rota.client.mirror_to_second_server import RECONCILE_S, Mirror, mirrored_lines
from rota.client.namespace_settings import NamespaceSettings
from rota.client.overview import Overview, read_overview
from rota.client.page_limit import checked_limit
from rota.client.pause_tasks import pause_task, read_paused_tasks, resume_task
from rota.client.queue import Queue
from rota.client.queue_metrics import QueueLoad, read_by_task, read_loads, read_metrics, read_totals
from rota.client.scaling import Scaling
from rota.client.schedules import ScheduleDecorator, Schedules
from rota.client.search_suggestions import SearchSuggestions, read_suggestions
from rota.client.session import Sessions, sessions_of
from rota.client.sync_methods import sync_method
from rota.client.tasks import Call, Registry, TakesAnything, Task, TaskDecorator, check_defaults, declare_task
from rota.client.workflow_builder import WorkflowBuilder
from rota.client.workflows import Workflows
from rota.core.encrypted_values import Codec
from rota.core.ids import DEFAULT_QUEUE, JobRef, checked_new_queue, checked_queue, checked_text
from rota.core.job_options import Keep, Priority
from rota.core.lua_constants import MAX_PAYLOAD
from rota.core.metric_series import Counts, Series
from rota.core.retry import Retry, Seconds, to_seconds
from rota.core.same_id_policy import OnSameId
from rota.core.schedule import Cron, Every, Misfire, Overlap
from rota.core.shards import MAX_SHARDS
from rota.core.state_transitions import JobState
from rota.errors import IdInUse, InvalidArguments, InvalidOption, WorkerNotFound, WrongState
from rota.store.reads import LockPage, Page, PausedTask, QueueInfo, WorkerInfo, merge_shards
from rota.store.redis.retrying_client import MAX_PATIENCE_S

P = ParamSpec("P")
R = TypeVar("R")
H = TypeVar("H", bound=Callable[[FailedAttempt], Any])
Lifespan = Callable[["Rota"], AbstractAsyncContextManager[Any]]

_NAMESPACE: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")


class Rota:
    """A job queue on one server and namespace.

    `url` may be redis://, rediss://, unix://, redis+sentinel:// or redis+cluster://. Without one, ROTA_URL, REDIS_URL
    or REDIS_HOST, REDIS_PORT and REDIS_PASSWORD are read; without those, an embedded Valkey runs in the nearest
    `.rota/` folder upwards from the working directory.

    `blobs` is the URL of a store of your own for the data of `Blob` arguments, as fsspec takes it: "s3://bucket/rota".
    Without it they are stored in the server.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        namespace: str = "rota",
        lifespan: Lifespan | None = None,
        middleware: Sequence[Middleware] = (),
        max_payload: int = MAX_PAYLOAD,
        codec: Codec | None = None,
        blobs: str | None = None,
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
        if not patience <= MAX_PATIENCE_S:
            raise InvalidOption(
                "patience",
                f"must be at most {MAX_PATIENCE_S} s, not {patience!r}: the server recognises a repeated call "
                "for 10 min, and later would carry it out twice; to wait longer, enqueue again with the same id",
            )
        codec = codec or Encrypted.from_environment(os.environ)
        self._sessions = Sessions(
            url,
            namespace,
            codec=codec,
            blobs=None if blobs is None else ExternalBlobs(checked_text(blobs, "blobs")),
            durability=checked_durability(durability),
            replicas=replicas,
            patience=patience,
            clock=clock,
        )
        self.lifespan = lifespan
        self.middleware: list[Middleware] = [*AMBIENT, *middleware]
        #: The functions that `on_error` declared.
        self.error_hooks: list[ErrorHook] = []
        self.tasks = Registry(max_payload, codec)
        self._enqueuer = Enqueuer(self._sessions, self.tasks, self.middleware)
        self._announced = AnnouncedTasks(self._enqueuer)
        self.dead = DeadLetters(self._sessions)
        self.operations = Operations(self._sessions, self.tasks)
        self.workflows = Workflows(self._sessions)
        self.schedules = Schedules(self._enqueuer)
        self.scaling = Scaling(self._sessions)
        self.annotations = Annotations(self._sessions)
        self.settings = NamespaceSettings(self._sessions)

    @property
    def namespace(self) -> str:
        """The prefix of all its keys."""
        return self._sessions.namespace

    @property
    def address(self) -> str:
        """The server's address, without secrets."""
        return self._sessions.address

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
        self,
        *,
        name: str | None = ...,
        queue: str = ...,
        run_in: RunIn | None = ...,
        index: Sequence[str] = ...,
        per_worker: int | None = ...,
        priority: Priority = ...,
        lock: str = ...,
        on_same_id: OnSameId = ...,
        retry: Retry | int = ...,
        max_stalls: int = ...,
        at_most_once: bool = ...,
        timeout: Seconds | None = ...,
        progress_timeout: Seconds = ...,
        expires: Seconds | datetime = ...,
        keep: Keep | Seconds = ...,
        tags: Iterable[str] = ...,
        meta: dict[str, Any] = ...,
        durability: Durability = ...,
    ) -> TaskDecorator: ...
    def task(
        self,
        function: Callable[..., Any] | None = None,
        *,
        name: str | None = None,
        queue: str = DEFAULT_QUEUE,
        run_in: RunIn | None = None,
        index: Sequence[str] = (),
        per_worker: int | None = None,
        **defaults: Any,
    ) -> Any:
        """Declares a function as a task: `@rota.task` or `@rota.task(queue="mail", timeout=30, …)`.

        `index` names parameters by whose values its jobs can be searched: `rota.jobs(fields={"user_id": 7})`. A worker
        runs at most `per_worker` of its jobs at once; other tasks of the queue do not wait for them. The other options
        are the defaults of its jobs. The function stays callable. Raises TaskConflict when another function has that
        name.
        """

        def declare(declared: Callable[..., Any]) -> Task[Any, Any, Any]:
            return declare_task(
                self._enqueuer,
                declared,
                name=name,
                queue=queue,
                run_in=run_in,
                index=index,
                per_worker=per_worker,
                defaults=defaults,
            )

        check_defaults(defaults)
        return TaskDecorator(declare) if function is None else declare(function)

    def cron(
        self,
        expression: str,
        *,
        tz: str = "UTC",
        name: str | None = None,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        misfire: Misfire = "once",
        overlap: Overlap = "queue",
        version: int = 1,
    ) -> ScheduleDecorator:
        """Declares a schedule for a task: `@rota.cron("0 3 * * *", tz="Europe/Oslo")` above `@rota.task`.

        Its name is the task's unless given. It is stored when a worker starts. `misfire` is for ticks that were missed
        because no worker ran: "once" runs the latest, "all" up to a hundred, "skip" none. With overlap="skip" a tick
        creates no job while the previous one has not ended. Of two versions of a declaration the higher one is kept.
        Raises InvalidOption for an invalid expression or an unknown time zone.
        """
        return self.schedules.declare(
            Cron(expression, tz), name=name, args=args, kwargs=kwargs, misfire=misfire, overlap=overlap, version=version
        )

    def every(
        self,
        interval: Seconds,
        *,
        anchor: datetime | None = None,
        name: str | None = None,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        misfire: Misfire = "once",
        overlap: Overlap = "queue",
        version: int = 1,
    ) -> ScheduleDecorator:
        """Declares a schedule with a fixed interval of a second or more: `@rota.every(timedelta(minutes=5))`.

        Intervals are counted from `anchor`, or from 1970: every hour is on the hour. See `cron` for the other options.
        """
        return self.schedules.declare(
            Every(interval, anchor),
            name=name,
            args=args,
            kwargs=kwargs,
            misfire=misfire,
            overlap=overlap,
            version=version,
        )

    def on_error(self, hook: H) -> H:
        """Declares a function that is called for every failed attempt: `@rota.on_error`.

        It gets a `FailedAttempt`: the `error`, the `job`, the number of the `attempt`, and `will_retry`. The error is a
        `Timeout` if the attempt was stopped at its timeout, `ProcessKilled` if its process died, `WorkerLost` if its
        whole worker did; another process calls the hook then. The outcome of the attempt is reported when the hook
        returns, or after two seconds. Errors of hooks are logged and change nothing. A hook is called once in nearly
        all cases; for work that must not be lost, declare an `on_failure` handler of the task, which is a job.
        """
        self.error_hooks.append(hook)
        return hook

    def queue(
        self,
        name: str = DEFAULT_QUEUE,
        *,
        defaults: Mapping[str, Any] | None = None,
        failure_defaults: Mapping[str, Any] | None = None,
        shards: int | None = None,
    ) -> Queue:
        """Returns a queue's handle. `defaults` are options of its jobs; options of task and enqueue override them.

        `failure_defaults` are options of its failure jobs; those given to `on_failure` override them. `shards` spreads
        the queue over the nodes of a cluster; the number is fixed from its first use on.
        """
        checked_queue(name)
        if shards is not None:
            checked_new_queue(name)
            if isinstance(shards, bool) or not isinstance(shards, int) or not 1 <= shards <= MAX_SHARDS:
                raise InvalidOption("shards", f"must be 1 to {MAX_SHARDS}, not {shards!r}")
            self._sessions.declared_shards[name] = shards
        if name.endswith("-fail") and (defaults is not None or failure_defaults is not None):
            base = name.removesuffix("-fail")
            raise InvalidOption("queue", f"options for {name!r} are given as rota.queue({base!r}, failure_defaults=…)")
        if failure_defaults is not None:
            check_failure_options(failure_defaults)
            self._enqueuer.failure_defaults[name] = dict(failure_defaults)
        if defaults is not None:
            check_defaults(defaults)
            self._enqueuer.queue_defaults[name] = dict(defaults)
            for task in self.tasks:
                task.refresh_defaults()
        return Queue(self._sessions, name)

    def workflow(
        self,
        name: str,
        *,
        id: str | None = None,
        on_failure: Literal["undo", "hold"] | None = None,
        resume: Literal["on_start"] | None = None,
        limit: int | None = None,
    ) -> WorkflowBuilder:
        """Builds a workflow: `async with rota.workflow("order") as workflow: …` commits it at the end of the block.

        If a step fails for good, completed steps are undone (`on_failure="undo"`, the default where any step has an
        undo), or the workflow is held until `resume()`. `limit` is the number of workflows of that name that advance
        at once.
        """
        return WorkflowBuilder(
            self._sessions,
            self.middleware,
            name,
            workflow_id=id,
            on_failure=on_failure,
            resume=resume,
            limit=limit,
            max_payload=self.tasks.max_payload,
        )

    # --- enqueueing --------------------------------------------------------------------------------------------

    async def enqueue(self, call: Call[R]) -> Job[R]:
        """Stores one call as a job. Returns once it is stored with the requested durability."""
        return await self._enqueuer.enqueue(call)

    @overload
    async def enqueue_many(self, calls: Iterable[Call[R]], *, on_refused: Literal["raise"] = ...) -> list[Job[R]]: ...
    @overload
    async def enqueue_many(
        self, calls: Iterable[Call[R]], *, on_refused: Literal["return"]
    ) -> list[Job[R] | IdInUse]: ...
    async def enqueue_many(
        self, calls: Iterable[Call[R]], *, on_refused: OnRefused = "raise"
    ) -> list[Job[R]] | list[Job[R] | IdInUse]:
        """Stores many calls in order, in one round trip per queue and 500 jobs; each batch atomically.

        Returns a handle for each. A call whose id is in use, where `Reject()` was requested, raises IdInUse once the
        other calls are stored; with `on_refused="return"` the error takes the place of its handle instead. A batch
        that could not be stored raises; earlier batches of the same call are stored then. Jobs may depend on others of
        the same call, by their ids, in any order.
        """
        return await self._enqueuer.enqueue_all(calls, on_refused)

    async def send(self, task: str, /, *args: Any, **kwargs: Any) -> Job[Any]:
        """Stores a job of a task by its name: `await rota.send("resize", width=640)`.

        The task may be another program's: the arguments are checked against the schema that its workers announce, and
        it gets the queue and options that it declares. For other options, see `announced_task`. Raises UnknownTask if
        no worker has ever announced the task, InvalidArguments if the arguments do not fit.
        """
        found = await self.announced_task(task)
        try:
            call = found.call(*args, **kwargs)
        except InvalidArguments:
            await self._announced.refresh()  # a newer worker may take them
            call = (await self.announced_task(task)).call(*args, **kwargs)
        return await self._enqueuer.enqueue(call)

    async def announced_task(self, name: str) -> Task[..., Any, Any]:
        """Returns a task by its name, to be enqueued: with options, in bulk, or as a step of a workflow.

        `task = await rota.announced_task("resize")`, then `await task.using(delay=60).enqueue(width=640)`. A task that
        this program declares is returned as it is. Raises UnknownTask.
        """
        return self.tasks.get(name) if name in self.tasks else await self._announced.get(name)

    enqueue_sync = sync_method(enqueue)
    send_sync = sync_method(send)
    announced_task_sync = sync_method(announced_task)

    @overload
    def enqueue_many_sync(self, calls: Iterable[Call[R]], *, on_refused: Literal["raise"] = ...) -> list[Job[R]]: ...
    @overload
    def enqueue_many_sync(
        self, calls: Iterable[Call[R]], *, on_refused: Literal["return"]
    ) -> list[Job[R] | IdInUse]: ...
    def enqueue_many_sync(
        self, calls: Iterable[Call[R]], *, on_refused: OnRefused = "raise"
    ) -> list[Job[R]] | list[Job[R] | IdInUse]:
        """`enqueue_many`, for code that is not async."""
        # A generator runs here, not on the background loop: it may use `_sync` methods itself.
        return self._sessions.run_sync(self._enqueuer.enqueue_all(list(calls), on_refused))

    # --- reading -----------------------------------------------------------------------------------------------

    @overload
    def job(self, job_id: str, *, returns: type[R]) -> Job[R]: ...
    @overload
    def job(self, job_id: str, *, returns: Any = ...) -> Job[Any]: ...
    def job(self, job_id: str, *, returns: Any = Any) -> Job[Any]:
        """Returns a handle for `queue:id`, `queue:id@run` or an id of queue `default`. Sends nothing to the server.

        `returns` is the type of its result: `rota.job(id, returns=Invoice)` is a `Job[Invoice]`.
        """
        return Job(self._sessions, self.tasks, JobRef.parse(job_id), returns=returns)

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
        """Returns a page of jobs that meet every given condition, with a cursor for the next page.

        `tag` is one of the job's tags, `fields` are values of parameters that its task declared as `index`, `error` is
        the class of its last error, `group` one of `rota.dead.groups()`. `since` and `until` refer to the end of the
        job for a finished state, else to its enqueue. These conditions are looked up in indexes; `text` is searched in
        the records, of which a page examines a bounded number: `Page.examined`.

        Waiting jobs of one state are listed in the order in which they will start, finished ones latest first. With
        other conditions jobs are listed in the order of their enqueue, the latest first if they are finished or no
        state is given. `order` may be "oldest" or "newest". A job that matches all the time is on exactly one page,
        also if others are added or removed between two pages.
        """
        filters = Filters.of(
            task=task,
            tag=tag,
            fields=fields,
            worker=worker,
            error=error,
            group=group,
            text=text,
            since=since,
            until=until,
        )
        return await list_jobs(
            self._sessions, state, queue=queue, filters=filters, cursor=cursor, limit=limit, order=order
        )

    async def pause_task(self, task: str, *, queue: str | None = None, note: str = "", by: str = "") -> list[str]:
        """Pauses a task across all workers: none of its jobs starts, and the other jobs of its queues go on.

        Returns the queues: the given one, or all that have had jobs of the task. Running attempts continue. `note` and
        `by` say why and who. Raises InvalidOption if no queue has had such a job.
        """
        return await pause_task(await self._sessions.checked(), task, queue=queue, note=note, by=by)

    async def resume_task(self, task: str, *, queue: str | None = None) -> list[str]:
        """Resumes a task in one queue or in all: its jobs start in their order. Returns where it was paused."""
        return await resume_task(await self._sessions.checked(), task, queue=queue)

    async def paused_tasks(self, *, queue: str | None = None) -> list[PausedTask]:
        """Returns the paused tasks, each with who paused it, when and why, and how many of its jobs wait for it."""
        return await read_paused_tasks(await self._sessions.checked(), queue)

    pause_task_sync = sync_method(pause_task)
    resume_task_sync = sync_method(resume_task)
    paused_tasks_sync = sync_method(paused_tasks)

    async def queues(self) -> list[QueueInfo]:
        """Returns counts, totals and state of every queue; the shards of a queue as one."""
        views = (await self._sessions.checked()).views
        return merge_shards(await views.queue_infos(await views.queues()))

    async def locks(
        self, *, queue: str | None = None, lock: str = "", cursor: str | None = None, limit: int = 100
    ) -> LockPage:
        """Returns the locks that are held or wanted, with holder and waiting jobs. About `limit` at a time."""
        checked_limit(limit)
        if queue:
            checked_queue(queue)
        session = await self._sessions.checked()
        queues = await session.shards.names_of_all(queue)
        return await session.views.locks(queues, lock=lock, cursor=cursor, limit=limit)

    async def workers(self) -> list[WorkerInfo]:
        """Returns the workers of the last day, ALIVE or DEAD, and the jobs that each is running."""
        return await (await self._sessions.checked()).views.workers()

    async def drain(self, worker: str) -> str:
        """Asks a worker to claim no more jobs, finish those that it runs, however long that takes, and exit with 0.

        `worker` is the id of one of `workers()`, or the name of a live worker, if it is unique. Returns its id; it is
        shown as draining within moments. Repeating it changes nothing. Raises WorkerNotFound, WrongState when it has
        stopped, InvalidOption when several workers have that name.
        """
        found = await self._find_worker(worker)
        store = (await self._sessions.checked()).store
        _check_worker(found, await store.drain_worker(found), "drain")
        return found

    async def undrain(self, worker: str) -> str:
        """Withdraws `drain`: the worker claims jobs again. Possible until it has drained.

        Takes, returns and raises the same; WrongState when it has drained or stopped.
        """
        found = await self._find_worker(worker)
        store = (await self._sessions.checked()).store
        _check_worker(found, await store.undrain_worker(found), "undrain")
        return found

    async def _find_worker(self, worker: str) -> str:
        workers = await (await self._sessions.checked()).views.workers()
        found = [one.id for one in workers if one.id == worker]
        found = found or [one.id for one in workers if one.status == "ALIVE" and one.name == worker]
        if len(found) > 1:
            raise InvalidOption("worker", f"{worker!r} is the name of {', '.join(sorted(found))}: use one of these ids")
        if not found:
            raise WorkerNotFound(worker)
        return found[0]

    async def metrics(
        self,
        *,
        queue: str | None = None,
        task: str | None = None,
        since: Seconds | datetime = 3600,
        step: Seconds | None = None,
        until: datetime | None = None,
    ) -> Series:
        """Returns a series of counts, wait times and run times since a time, or for that many seconds back.

        It ends at `until`, by default now.
        For one queue or all, one task or all. Minutes are kept for a day, hours for 30 days; the default step is a
        minute where minutes are kept, else an hour. Tasks beyond the first hundred of a queue are summed up as task
        "__other__".
        """
        return await read_metrics(
            await self._sessions.checked(), queue=queue, task=task, since=since, step=step, until=until
        )

    async def metrics_by_task(self, *, queue: str | None = None, since: Seconds = 3600) -> dict[str, dict[str, Counts]]:
        """Returns queue -> task -> counts for that many seconds back, to the minute, or beyond a day to the hour."""
        return await read_by_task(await self._sessions.checked(), queue=queue, since=since)

    async def totals(self, queue: str | None = None) -> dict[str, dict[str, Counts]]:
        """Returns queue -> task -> counts since the first job. Restarts do not reset them."""
        return await read_totals(await self._sessions.checked(), queue)

    async def loads(self, queues: Sequence[str] | None = None) -> list[QueueLoad]:
        """Returns the load of each queue: its jobs, its rates and its workers."""
        return await read_loads(await self._sessions.checked(), queues)

    async def overview(self) -> Overview:
        """Returns the load of all queues, the workers and the stuck workflows; cheap enough to be read every second."""
        return await read_overview(await self._sessions.checked())

    async def suggestions(self) -> SearchSuggestions:
        """Returns suggestions for filters: all queues, tasks and workers; tags and errors from a sample of the jobs."""
        return await read_suggestions(await self._sessions.checked())

    async def check(self) -> None:
        """Checks that the server can be used. Raises StoreError with the reason."""
        await self._sessions.checked()

    async def events(
        self,
        *,
        queues: Sequence[str] | None = None,
        task: str | None = None,
        after: str | None = None,
        beyond: bool = False,
        pace: float = 0.0,
    ) -> AsyncGenerator[Event]:
        """Yields events as they happen. Each has an id that can be passed as `after` to resume.

        Events are hints: the stored state is authoritative. With `task`, only events of its jobs; a job that is gone
        before its first event was read is left out. With `beyond`, also events of workers, workflows and operations,
        which belong to no queue. With `pace`, the server is read no more often than every `pace` seconds.
        """
        chosen = [checked_queue(queue) for queue in queues] if queues else None
        session = await self._sessions.checked()

        async def names() -> Sequence[str]:
            if chosen is None:
                found = await session.views.queues()
            else:
                found = [name for queue in chosen for name in await session.shards.names_of(queue)]
            return [NO_QUEUE, *found] if beyond else found

        of_task = TaskFilter(session.search, checked_text(task, "task")) if task is not None else None
        async for event in follow(session.redis, session.keys, names, after, pace, of_task):
            yield event

    async def export_lines(self) -> AsyncGenerator[str]:
        """Yields every job, schedule and workflow as lines of JSON, while the system runs.

        Each job is written as it was at one moment. One that is enqueued after the export began may be missing.
        """
        async for line in export_lines(await self._sessions.checked()):
            yield line

    async def import_lines(self, lines: Iterable[str] | AsyncIterable[str]) -> ImportReport:
        """Restores the lines of an export, on this or another server. May be repeated: nothing is restored twice.

        A job that was processing counts as one whose worker died. Raises InvalidOption for lines that are not those
        of an export; what was restored before stays.
        """
        return await import_lines(await self._sessions.checked(), lines)

    async def mirror(self, *, to: Rota, reconcile: Seconds = RECONCILE_S) -> None:
        """Keeps a copy of every job, schedule and workflow on the server of `to` current, until it is cancelled.

        It continues where an earlier one stopped, and compares everything every `reconcile` seconds. No worker runs the
        copies. Raises ConfigurationError if this server has lost data, or another mirror has taken over.
        """
        interval = to_seconds(reconcile, "reconcile")
        source, target = await self._sessions.checked(), await sessions_of(to).checked()
        await Mirror(source, target, reconcile_s=interval).run_alone()

    async def mirrored_lines(self) -> AsyncGenerator[str]:
        """Yields the copy of a mirror on this server as lines for `import_lines`. Raises ConfigurationError."""
        async for line in mirrored_lines(await self._sessions.checked()):
            yield line

    jobs_sync = sync_method(jobs)
    queues_sync = sync_method(queues)
    locks_sync = sync_method(locks)
    workers_sync = sync_method(workers)
    drain_sync = sync_method(drain)
    undrain_sync = sync_method(undrain)
    metrics_sync = sync_method(metrics)
    metrics_by_task_sync = sync_method(metrics_by_task)
    totals_sync = sync_method(totals)
    loads_sync = sync_method(loads)
    overview_sync = sync_method(overview)
    suggestions_sync = sync_method(suggestions)
    check_sync = sync_method(check)
    import_lines_sync = sync_method(import_lines)
    mirror_sync = sync_method(mirror)

    # --- closing -----------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Closes the connections of the running loop. The next use opens new ones."""
        await self._sessions.close()

    def close_sync(self) -> None:
        """Closes the connections of the `_sync` methods. Done at the end of a program without being called."""
        self._sessions.close_sync()

    async def __aenter__(self) -> Rota:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _check_worker(worker: str, outcome: str, verb: str) -> None:
    if outcome == "missing":
        raise WorkerNotFound(worker)
    if outcome in ("drained", "stopped"):
        raise WrongState(f"worker {worker}", outcome, verb)


def enqueuer_of(rota: Rota) -> Enqueuer:
    """The client with which tasks of a `Rota` are declared. For the other packages, not part of the public API."""
    return rota._enqueuer  # pyright: ignore[reportPrivateUsage]
