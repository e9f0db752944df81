"""Tasks: declared functions, calls of them that can be enqueued, and the registry of one `Rota`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import update_wrapper
from types import EllipsisType
from typing import Any, Concatenate, Final, Generic, ParamSpec, Protocol, Self, TypeVar, overload

import msgspec

from rota.client.blob_transfer import Upload, replace_blobs
from rota.client.context import Context, SilentReporter
from rota.client.durability import Durability, checked_durability
from rota.client.failure_handlers import SUFFIX, FailureHandler, HandlerDecorator, RunIn
from rota.client.job import Job
from rota.client.session import Sessions
from rota.client.sync_methods import sync_method
from rota.client.task_arguments import Signature, UnresolvedAnnotation, place_injected
from rota.core.debounce_and_throttle import Debounce, Throttle
from rota.core.dependencies import Parent, checked_parents
from rota.core.encrypted_values import Codec, check_not_marked, encrypt_arguments
from rota.core.ids import DEFAULT_QUEUE, JobRef, checked_id, checked_new_queue, checked_task_name
from rota.core.job_index_terms import checked_index, indexed_fields, make_terms
from rota.core.job_options import DEFAULT_OPTIONS, Keep, Options, Priority, due_time, make_options
from rota.core.job_record import AttemptCounts, ErrorRecord, JobRecord
from rota.core.job_record_codec import ContainsStepResult, encode_arguments, encode_body
from rota.core.retry import Retry, Seconds
from rota.core.same_id_policy import Ignore, OnSameId, Reject, Update
from rota.core.state_transitions import JobState
from rota.core.workflow_record_and_decisions import StepResult
from rota.errors import (
    ConfigurationError,
    IdInUse,
    InvalidArguments,
    InvalidOption,
    PayloadTooLarge,
    TaskConflict,
    UnknownTask,
)
from rota.store.enqueue_batcher import IGNORE, NewJob

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
C = TypeVar("C")
H = TypeVar("H")
UPDATE: Final = Update()
#: As many jobs as one worker can run at once.
MAX_PER_WORKER: Final = 10_000


class Call(msgspec.Struct, Generic[R], eq=False):
    """One call of a task that can be enqueued: the task, its arguments, its options. Checked when it is created."""

    task: Task[Any, R, Any]
    job: NewJob
    queue: str
    options: Options
    on_same_id: OnSameId
    #: The jobs that it depends on.
    parents: tuple[Parent, ...]
    #: When its enqueue returns; None: the client's default.
    durability: Durability | None
    #: Results of steps among its arguments: such a call can only be a step of their workflow.
    results: tuple[StepResult, ...] = ()
    #: Blobs among its arguments, which are stored before it.
    uploads: tuple[Upload, ...] = ()

    def traced(self, trace: dict[str, str]) -> Call[R]:
        """Returns the same call with a trace context, which its job carries to the worker."""
        return self._with_options(msgspec.structs.replace(self.options, trace=trace))

    def attributed(self, caller: str) -> Call[R]:
        """Returns the same call with the name of its caller, which its job and history show."""
        return self._with_options(msgspec.structs.replace(self.options, enqueued_by=caller))

    def _with_options(self, options: Options) -> Call[R]:
        body = encode_body(options, self.task.name, self.job.body.split(b"\n", 2)[2])
        return msgspec.structs.replace(self, job=self.job._replace(body=body), options=options)

    def once(self, token: str) -> Self:
        """Makes this call idempotent: for a day, every enqueue with that idempotency token returns the same run.

        A job without an id of its own gets the token as its id.
        """
        on_same_id = self.on_same_id if self.job.id else IGNORE
        self.job = self.job._replace(
            id=self.job.id or token, on_same_id=on_same_id, idempotency_token=checked_id(token)
        )
        return self

    def in_shard(self, queue: str, parents: tuple[Parent, ...]) -> Call[R]:
        """Returns the same call in one shard of its queue, with its parents located in theirs."""
        return msgspec.structs.replace(self, queue=queue, parents=parents)

    def __repr__(self) -> str:
        return f"<Call of {self.task.name} for queue {self.queue}>"


class Client(Protocol):
    """What a task needs of the `Rota` that declares it. `enqueue.Enqueuer` is above this module."""

    sessions: Sessions
    tasks: Registry
    #: Queue -> default options of its jobs, and of the failure handlers of its jobs.
    queue_defaults: dict[str, Mapping[str, Any]]
    failure_defaults: dict[str, Mapping[str, Any]]

    async def enqueue(self, call: Call[R]) -> Job[R]:
        """Stores one call as a job."""
        ...

    async def enqueue_many(self, calls: Iterable[Call[R]]) -> list[Job[R] | IdInUse]:
        """Stores many calls as jobs."""
        ...


class TaskWithOptions(Generic[P, R]):
    """A task with options for the jobs that are enqueued through it: `send.using(...)`."""

    def __init__(self, task: Task[P, R, Any], given: Mapping[str, Any]) -> None:
        self.task = task
        self._sessions = task.client.sessions
        defaults = task.client.queue_defaults.get(given.get("queue", task.queue), {})
        options = {**defaults, **task.defaults, **given}
        self._token = _apply_debounce_or_throttle(task.name, options, given)
        self._queue = checked_new_queue(options.pop("queue", task.queue))
        self._id = "" if options.get("id") is None else checked_id(options["id"])
        self._due = due_time(options.pop("delay", None), options.pop("run_at", None))
        self._on_same_id = _on_same_id(options)
        options.pop("id", None)
        self._durability: Durability | None = _durability(options)
        self._parents = checked_parents(options.pop("after", ()))
        self.options = make_options(options) if options else DEFAULT_OPTIONS
        if self._parents:
            self.options = msgspec.structs.replace(self.options, after=tuple(map(str, self._parents)))
        if self.options.tags:
            self.options = msgspec.structs.replace(self.options, terms=make_terms(self.options.tags, {}))
        self._expiry = _expiry(self.options)
        #: The record up to its arguments, the same for every call.
        self._head = encode_body(self.options, task.name, b"")

    def call(self, /, *args: P.args, **kwargs: P.kwargs) -> Call[R]:
        """Returns the call, checked and encoded, for `enqueue_many`."""
        task = self.task
        given: tuple[Any, ...] = args
        named: dict[str, Any] = kwargs
        results: Sequence[StepResult] = ()
        uploads: tuple[Upload, ...] = ()
        if task.signature.has_blobs:
            given, named, uploads = replace_blobs(self._sessions, task.name, args, kwargs)
        try:
            arguments = task.signature.encode(given, named)
        except ContainsStepResult:
            arguments, results = task.signature.encode_with_results(given, named)
        tasks = task.client.tasks
        tasks.check_size(task.name, arguments)
        if tasks.codec is not None:
            placeholders = [result.placeholder for result in results]
            arguments = encrypt_arguments(tasks.codec, task.name, arguments, placeholders)
        options, head = self.options, self._head
        if task.index or uploads:
            by_name = task.signature.named(given, named)
            fields = {name: by_name[name] for name in task.index if name in by_name}
            blobs = tuple(upload.reference.blob for upload in uploads)
            options = msgspec.structs.replace(options, terms=make_terms(options.tags, fields), blobs=blobs)
            head = encode_body(options, task.name, b"")
        body = head + arguments
        job = NewJob(self._id, options.priority, self._due, self._expiry, body, self._on_same_id, self._token)
        return Call(
            task, job, self._queue, options, self._on_same_id, self._parents, self._durability, tuple(results), uploads
        )

    async def enqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """Stores a job that calls the task; returns once it is stored."""
        return await self.task.client.enqueue(self.call(*args, **kwargs))

    enqueue_sync = sync_method(enqueue)


class Task(Generic[P, R, C]):
    """A declared function. Calling it just runs it; `enqueue` stores a job that will."""

    def __init__(
        self,
        client: Client,
        function: Callable[..., Any],
        *,
        name: str | None,
        queue: str,
        run_in: RunIn | None,
        index: Sequence[str],
        defaults: Mapping[str, Any],
        per_worker: int | None = None,
        signature: Signature | None = None,
    ) -> None:
        is_async = _is_async(function, "rota.task")
        self.client = client
        self._sessions = client.sessions
        self.function = function
        self.name = checked_task_name(name or function.__name__)
        if self.name.endswith(SUFFIX):
            raise InvalidOption("name", f"{self.name!r}: names that end in {SUFFIX} are those of failure handlers")
        self.queue = checked_new_queue(queue)
        self.run_in: RunIn = _run_in(self.name, run_in, is_async=is_async)
        #: How many of its jobs one worker runs at once; None: as many as the worker has slots.
        self.per_worker = _checked_per_worker(self.name, per_worker)
        self.defaults = dict(defaults)
        #: Parameters by whose values its jobs can be searched.
        self.index = checked_index(index, list(inspect.signature(function).parameters))
        self.failure_handler: FailureHandler | None = None
        self._signature = signature
        update_wrapper(self, function, updated=())  # the function's own attributes must not hide those of the task
        self._plain = TaskWithOptions(self, {})

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> C:
        """Calls the function directly, without a job.

        A `Context` that is not given is created. Parameters with `Depends` have to be passed; a TypeError names those
        that are missing.
        """
        contexts = [d.name for d in self.signature.dependencies if d.provides is None and d.name not in kwargs]
        given: Sequence[Any] = args
        named: dict[str, Any] = kwargs
        if contexts and not any(isinstance(argument, Context) for argument in args):
            given, named = place_injected(self.function, dict.fromkeys(contexts, detached_context(self)), args, kwargs)
        self._check_provided(given, named)
        return self.function(*given, **named)

    def _check_provided(self, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        provided = {d.name: d.provides.provider for d in self.signature.dependencies if d.provides is not None}
        if not provided:
            return
        passed = inspect.signature(self.function).bind_partial(*args, **kwargs).arguments
        missing = [name for name in provided if name not in passed]
        if missing:
            providers = ", ".join(getattr(provided[name], "__name__", repr(provided[name])) for name in missing)
            raise TypeError(
                f"task {self.name!r} is called directly, without a worker to inject what {providers} provides: "
                f"pass {', '.join(f'{name}=…' for name in missing)}"
            )

    def using(
        self,
        *,
        id: str | None = None,
        queue: str | None = None,
        priority: Priority | None = None,
        delay: Seconds | None = None,
        run_at: datetime | None = None,
        retry: Retry | int | None = None,
        max_stalls: int | None = None,
        at_most_once: bool | None = None,
        timeout: Seconds | EllipsisType | None = ...,
        progress_timeout: Seconds | None = None,
        expires: Seconds | datetime | None = None,
        keep: Keep | Seconds | None = None,
        tags: Iterable[str] | None = None,
        meta: dict[str, Any] | None = None,
        lock: str | None = None,
        after: Iterable[Any] | None = None,
        on_same_id: OnSameId | None = None,
        debounce: Debounce | None = None,
        throttle: Throttle | None = None,
        durability: Durability | None = None,
    ) -> TaskWithOptions[P, R]:
        """Returns the task with other options for the jobs that are enqueued through it."""
        given: dict[str, Any] = {
            "id": id,
            "queue": queue,
            "priority": priority,
            "delay": delay,
            "run_at": run_at,
            "retry": retry,
            "max_stalls": max_stalls,
            "at_most_once": at_most_once,
            "progress_timeout": progress_timeout,
            "expires": expires,
            "keep": keep,
            "tags": tags,
            "meta": meta,
            "lock": lock,
            "after": after,
            "on_same_id": on_same_id,
            "debounce": debounce,
            "throttle": throttle,
            "durability": durability,
        }
        chosen = {option: value for option, value in given.items() if value is not None}
        if timeout is not ...:  # None is a choice here: no timeout
            chosen["timeout"] = timeout
        return TaskWithOptions(self, chosen)

    def call(self, /, *args: P.args, **kwargs: P.kwargs) -> Call[R]:
        """Returns the call, checked and encoded, for `enqueue_many`."""
        return self._plain.call(*args, **kwargs)

    async def enqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """Stores a job that calls this task with its default options; returns once it is stored."""
        return await self.client.enqueue(self._plain.call(*args, **kwargs))

    enqueue_sync = sync_method(enqueue)

    @overload
    def on_failure(
        self, function: Callable[Concatenate[ErrorRecord, JobRecord, P], H]
    ) -> Callable[Concatenate[ErrorRecord, JobRecord, P], H]: ...
    @overload
    def on_failure(
        self, function: Callable[Concatenate[Context, ErrorRecord, JobRecord, P], H]
    ) -> Callable[Concatenate[Context, ErrorRecord, JobRecord, P], H]: ...
    @overload
    def on_failure(self, function: Callable[[ErrorRecord, JobRecord], H]) -> Callable[[ErrorRecord, JobRecord], H]: ...
    @overload
    def on_failure(
        self, function: Callable[[Context, ErrorRecord, JobRecord], H]
    ) -> Callable[[Context, ErrorRecord, JobRecord], H]: ...
    @overload
    def on_failure(
        self,
        *,
        run_in: RunIn | None = ...,
        priority: Priority = ...,
        retry: Retry | int = ...,
        max_stalls: int = ...,
        at_most_once: bool = ...,
        timeout: Seconds | None = ...,
        progress_timeout: Seconds = ...,
        keep: Keep | Seconds = ...,
        tags: Iterable[str] = ...,
        meta: dict[str, Any] = ...,
    ) -> HandlerDecorator[P]: ...
    def on_failure(
        self, function: Callable[..., Any] | None = None, *, run_in: RunIn | None = None, **options: Any
    ) -> Any:
        """Declares the failure handler of this task: `@send.on_failure`, with or without options.

        The function takes `(error, job)`, an `ErrorRecord` and the `JobRecord` that failed, and optionally the task's
        own parameters. It runs as a job of its own in `<queue>-fail`, which the script that fails the job creates, and
        is attempted 100 times unless `retry=` is given. It stays a plain function. Raises TaskConflict when the task
        has another one.
        """

        def declare(declared: Callable[..., Any]) -> Callable[..., Any]:
            is_async = _is_async(declared, f"{self.name}{SUFFIX}")
            other = self.failure_handler
            if other is not None and _origin(other) != _origin_of(declared):
                raise TaskConflict(f"task {self.name!r} already has a failure handler: {'.'.join(_origin(other))}")
            chosen = _run_in(f"{self.name}{SUFFIX}", run_in, is_async=is_async)
            handler = FailureHandler(
                self, declared, run_in=chosen, options=options, queue_defaults=self.client.failure_defaults
            )
            with suppress(UnresolvedAnnotation):  # a worker checks it when it starts
                _ = handler.signature
            self.failure_handler = handler
            return declared

        return HandlerDecorator[P](declare) if function is None else declare(function)

    @property
    def signature(self) -> Signature:
        """The task's parameters. Where annotations name types that are defined later, they are read on first use."""
        if self._signature is None:
            self._signature = Signature(self.name, self.function)
        return self._signature

    def check_signature(self) -> None:
        """Raises ConfigurationError for parameters that a job cannot have, unless an annotation is not defined yet."""
        with suppress(UnresolvedAnnotation):
            _ = self.signature

    def refresh_defaults(self) -> None:
        """Applies defaults that its queue has been given since."""
        self._plain = TaskWithOptions(self, {})

    @property
    def options(self) -> Options:
        """The options of a job that is enqueued without others."""
        return self._plain.options

    def __repr__(self) -> str:
        return f"<Task {self.name} in queue {self.queue}>"


class TakesAnything(Protocol[P, R_co]):
    """A function whose first parameter accepts anything, as `Any` and `object` do: for type checkers only.

    Such a function would also accept a `Context`, and must not be taken for one with a `Context` parameter.
    """

    @overload
    def __call__(self, first: _NoContext, /, *args: Any, **kwargs: Any) -> Any: ...
    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...


class _NoContext:
    """A type that no function has as a parameter."""


class TaskDecorator:
    """The decorator that `@rota.task(...)` returns: turns a function into a task of the right type."""

    def __init__(self, declare: Callable[[Callable[..., Any]], Task[Any, Any, Any]]) -> None:
        self._declare = declare

    @overload
    def __call__(self, function: TakesAnything[P, Coroutine[Any, Any, R]]) -> Task[P, R, Coroutine[Any, Any, R]]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]]
    ) -> Task[P, R, Coroutine[Any, Any, R]]: ...
    @overload
    def __call__(self, function: TakesAnything[P, R]) -> Task[P, R, R]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Context, P], R]) -> Task[P, R, R]: ...
    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]]) -> Task[P, R, Coroutine[Any, Any, R]]: ...
    @overload
    def __call__(self, function: Callable[P, R]) -> Task[P, R, R]: ...
    def __call__(self, function: Callable[..., Any]) -> Task[Any, Any, Any]:
        """Declares the function."""
        return self._declare(function)


class Registry:
    """The tasks of one `Rota`, by name. Stored data can only name a task that is declared here."""

    def __init__(self, max_payload: int, codec: Codec | None = None) -> None:
        #: Bytes that the arguments of a job may have.
        self.max_payload = max_payload
        #: Encrypts arguments and results.
        self.codec = codec
        self._tasks: dict[str, Task[Any, Any, Any]] = {}

    def add(self, task: Task[Any, Any, Any]) -> None:
        """Declares a task. The same function again (a notebook cell, a reload) replaces itself."""
        other = self._tasks.get(task.name)
        if other is not None and _origin(other) != _origin(task):
            raise TaskConflict(
                f"task {task.name!r} is already declared by {'.'.join(_origin(other))}; give this one another name: "
                f"@rota.task(name=…) on {'.'.join(_origin(task))}"
            )
        self._tasks[task.name] = task

    def get(self, name: str) -> Task[Any, Any, Any]:
        """Returns the task of that name. Raises UnknownTask."""
        task = self._tasks.get(name)
        if task is None:
            known = ", ".join(sorted(self._tasks)) or "none"
            raise UnknownTask(f"no task is called {name!r}; this program declares: {known}")
        return task

    def find(self, name: str) -> Task[Any, Any, Any] | FailureHandler:
        """Returns the task, or failure handler, that a job's record names. Raises UnknownTask."""
        if not name.endswith(SUFFIX):
            return self.get(name)
        task = self.get(name.removesuffix(SUFFIX))
        if task.failure_handler is None:
            raise UnknownTask(f"task {task.name!r} has no failure handler in this program")
        return task.failure_handler

    def encode_arguments(self, task: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        """Returns arguments as they are stored. Those of a declared task are checked; the size always is.

        Raises InvalidArguments, PayloadTooLarge.
        """
        if task.endswith(SUFFIX):
            raise InvalidOption("arguments", "those of a failure handler are made by the job that failed")
        if task in self._tasks:
            encoded = self._tasks[task].signature.encode(args, kwargs)
        else:
            try:
                encoded = encode_arguments(args, kwargs)
            except (TypeError, ValueError, OverflowError, RecursionError) as error:
                raise InvalidArguments(task, f"arguments are not JSON: {error}") from error
            check_not_marked(task, encoded)
        self.check_size(task, encoded)
        return encoded if self.codec is None else encrypt_arguments(self.codec, task, encoded)

    def check_size(self, task: str, arguments: bytes) -> None:
        """Raises PayloadTooLarge for encoded arguments above `max_payload`."""
        if len(arguments) > self.max_payload:
            raise PayloadTooLarge(f"the arguments of task {task!r}", len(arguments), self.max_payload)

    def search_terms(
        self, task: str, options: Options, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[str, ...]:
        """Returns the terms by which a job is found once its arguments are replaced.

        Positional arguments of a task that is not declared here have no known names: the job is not found by them.
        """
        declared = self._tasks.get(task)
        if declared is not None:
            names, named = tuple(declared.index), declared.signature.named(args, kwargs)
        else:
            names, named = tuple(indexed_fields(options.terms)), kwargs
        return make_terms(options.tags, {name: named[name] for name in names if name in named})

    def __contains__(self, name: str) -> bool:
        return name in self._tasks

    def __iter__(self) -> Iterator[Task[Any, Any, Any]]:
        return iter(self._tasks.values())

    def __len__(self) -> int:
        return len(self._tasks)


def declare_task(
    client: Client,
    function: Callable[..., Any],
    *,
    name: str | None = None,
    queue: str = DEFAULT_QUEUE,
    run_in: RunIn | None = None,
    index: Sequence[str] = (),
    per_worker: int | None = None,
    defaults: Mapping[str, Any] | None = None,
) -> Task[Any, Any, Any]:
    """Creates a task and adds it to the registry. Raises TaskConflict when another function has its name."""
    task: Task[Any, Any, Any] = Task(
        client,
        function,
        name=name,
        queue=queue,
        run_in=run_in,
        index=index,
        per_worker=per_worker,
        defaults=defaults or {},
    )
    task.check_signature()
    client.tasks.add(task)
    return task


def check_defaults(defaults: Mapping[str, Any]) -> None:
    """Raises InvalidOption for an option that cannot be a default of a task's or a queue's jobs."""
    options = dict(defaults)
    _durability(options)
    _on_same_id(options)
    make_options(options)


def detached_context(task: Task[Any, Any, Any]) -> Context:
    """Returns the context of a handler that is called directly. There is no job; progress and logs are discarded."""
    record = JobRecord(
        ref=JobRef(task.queue, "direct", "0" * 9),
        task=task.name,
        state=JobState.PROCESSING,
        arguments=b"[]",
        options=task.options,
        counts=AttemptCounts(attempt=1),
        enqueued_at=0,
    )
    return Context(record, reporter=SilentReporter(), fence=0, stops_at=None)


def _is_async(function: Callable[..., Any], wanted_by: str) -> bool:
    if not inspect.isroutine(function):
        raise ConfigurationError(f"{wanted_by} takes a function (def or async def), not {function!r}")
    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        raise ConfigurationError(f"task {function.__qualname__!r} is a generator: a task returns, it does not yield")
    return inspect.iscoroutinefunction(function)


def _origin(declared: Task[Any, Any, Any] | FailureHandler) -> tuple[str, str]:
    return _origin_of(declared.function)


def _origin_of(function: Callable[..., Any]) -> tuple[str, str]:
    return function.__module__, function.__qualname__


def _run_in(name: str, run_in: Any, *, is_async: bool) -> RunIn:
    if run_in is None:
        return "loop" if is_async else "thread"
    if run_in not in ("loop", "thread", "process"):
        raise InvalidOption("run_in", f"task {name!r}: {run_in!r} is none of loop, thread, process")
    if run_in == "loop" and not is_async:
        raise InvalidOption("run_in", f"task {name!r}: a plain def would block the event loop; use thread or process")
    if run_in == "thread" and is_async:
        raise InvalidOption("run_in", f"task {name!r}: an async def runs on the loop, or in a process")
    return run_in


def _checked_per_worker(name: str, per_worker: Any) -> int | None:
    if per_worker is None:
        return None
    if isinstance(per_worker, bool) or not isinstance(per_worker, int) or not 1 <= per_worker <= MAX_PER_WORKER:
        raise InvalidOption(
            "per_worker", f"task {name!r}: takes a whole number from 1 to {MAX_PER_WORKER:,}, not {per_worker!r}"
        )
    return per_worker


def _apply_debounce_or_throttle(task: str, options: dict[str, Any], given: Mapping[str, Any]) -> str:
    """Replaces them by the id, the delay and the policy that they stand for. Returns an idempotency token, or ""."""
    debounce, throttle = options.pop("debounce", None), options.pop("throttle", None)
    chosen = debounce if debounce is not None else throttle
    if chosen is None:
        return ""
    name = "throttle" if debounce is None else "debounce"
    if not isinstance(chosen, Throttle if debounce is None else Debounce):
        raise InvalidOption(name, f"takes {name.capitalize()}(...), not {chosen!r}")
    others = ("id", "delay", "run_at", "after", "on_same_id", *(() if debounce is None else ("throttle",)))
    clash = [other for other in others if given.get(other) is not None]
    if clash:
        raise InvalidOption(name, f"sets the id, the time and what happens on the same id: leave out {clash[0]}")
    options["id"], options["on_same_id"] = chosen.key, chosen.on_same_id
    delay_ms = chosen.wait_ms if isinstance(chosen, Debounce) else chosen.delay_ms
    if delay_ms:
        options["delay"] = delay_ms / 1000
    return "" if isinstance(chosen, Debounce) else chosen.token_of(task)


def _on_same_id(options: dict[str, Any]) -> OnSameId:
    chosen = options.pop("on_same_id", UPDATE)
    if not isinstance(chosen, Update | Ignore | Reject):
        raise InvalidOption("on_same_id", f"takes Update(...), Ignore() or Reject(), not {chosen!r}")
    return chosen


def _durability(options: dict[str, Any]) -> Durability | None:
    """Removes it from the options: it is not stored with the job."""
    return checked_durability(options.pop("durability")) if "durability" in options else None


def _expiry(options: Options) -> str:
    if options.expires_at is not None:
        return str(options.expires_at)
    return "" if options.expires_ms is None else f"+{options.expires_ms}"
