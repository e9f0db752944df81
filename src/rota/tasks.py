"""Declaring tasks: a function, its name, and the defaults of the jobs that call it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property, update_wrapper
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Final,
    Generic,
    Literal,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    overload,
)

import msgspec

from rota.context import Context, SilentReporter
from rota.core.after import Parent, checked_parents
from rota.core.codec import HoldsResult, encode_body
from rota.core.job import (
    DEFAULT_OPTIONS,
    Counts,
    ErrorRecord,
    JobRecord,
    JobRef,
    Options,
    checked_id,
    checked_new_queue,
    checked_task_name,
    checked_time_ms,
    make_options,
)
from rota.core.retry import to_ms
from rota.core.same_id import Ignore, OnSameId, Reject, Update
from rota.core.states import JobState
from rota.core.terms import checked_index, terms_of
from rota.core.workflow import StepResult
from rota.errors import ConfigurationError, InvalidOption, PayloadTooLarge, TaskConflict, UnknownTask
from rota.failures import SUFFIX, FailureHandler, HandlerDecorator
from rota.link import Durability, checked_durability
from rota.signature import Signature
from rota.store.door import NewJob

if TYPE_CHECKING:
    from rota.client import Rota
    from rota.jobs import Job

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
C = TypeVar("C")
H = TypeVar("H")
RunIn = Literal["loop", "thread", "process"]
UPDATE: Final = Update()


class Call(msgspec.Struct, Generic[R], eq=False):
    """One call of a task, ready to be enqueued: the task, its arguments, its options. Checked when it is made."""

    task: Task[Any, R, Any]
    job: NewJob
    queue: str
    options: Options
    on_same_id: OnSameId
    #: What it comes after.
    parents: tuple[Parent, ...]
    #: What its receipt must be worth; None: what the client's are.
    durability: Durability | None
    #: Results of steps that stand among its arguments: such a call can only be a step of their workflow.
    results: tuple[StepResult, ...] = ()

    def traced(self, trace: dict[str, str]) -> Call[R]:
        """The same call; its job carries that trace to whoever runs it."""
        options = msgspec.structs.replace(self.options, trace=trace)
        body = encode_body(options, self.task.name, self.job.body.split(b"\n", 2)[2])
        return msgspec.structs.replace(self, job=self.job._replace(body=body), options=options)

    def once(self, token: str) -> Self:
        """Makes this call one that is carried out once: for a day, whoever enqueues with that token gets its run.

        Without an id of its own the job is called after the token.
        """
        flags = "-" if not self.job.id else self.job.flags
        self.job = self.job._replace(id=self.job.id or token, flags=f"{flags}!{checked_id(token)}")
        return self

    def moved(self, queue: str, parents: tuple[Parent, ...]) -> Call[R]:
        """The same call, in one shard of its queue, and with what it comes after found in its own."""
        return msgspec.structs.replace(self, queue=queue, parents=parents)

    def __repr__(self) -> str:
        return f"<Call of {self.task.name} for queue {self.queue}>"


class Prepared(Generic[P, R]):
    """A task together with options for the jobs that are made through it."""

    def __init__(self, task: Task[P, R, Any], given: Mapping[str, Any]) -> None:
        self.task = task
        options = {**task.rota.defaults_of(given.get("queue", task.queue)), **task.defaults, **given}
        self._queue = checked_new_queue(options.pop("queue", task.queue))
        self._id = "" if options.get("id") is None else checked_id(options["id"])
        self._due = moment(options.pop("delay", None), options.pop("run_at", None))
        self._on_same_id = _on_same_id(options)
        options.pop("id", None)
        self._durability: Durability | None = _durability(options)
        self._parents = checked_parents(options.pop("after", ()))
        self.options = make_options(options) if options else DEFAULT_OPTIONS
        if self._parents:
            self.options = msgspec.structs.replace(self.options, after=tuple(map(str, self._parents)))
        if self.options.tags:
            self.options = msgspec.structs.replace(self.options, terms=terms_of(self.options.tags, {}))
        self._expiry = _expiry(self.options)
        self._flags = self._on_same_id.flags
        #: The record up to its arguments, the same for every call.
        self._head = encode_body(self.options, task.name, b"")

    def call(self, /, *args: P.args, **kwargs: P.kwargs) -> Call[R]:
        """The call, checked and encoded, for `enqueue_many`."""
        task = self.task
        results: Sequence[StepResult] = ()
        try:
            arguments = task.signature.encode(args, kwargs)
        except HoldsResult:
            arguments, results = task.signature.encode_with_results(args, kwargs)
        limit = task.rota.max_payload
        if len(arguments) > limit:
            raise PayloadTooLarge(f"the arguments of task {task.name!r}", len(arguments), limit)
        options, head = self.options, self._head
        if task.index:
            named = task.signature.named(args, kwargs)
            fields = {name: named[name] for name in task.index if name in named}
            options = msgspec.structs.replace(options, terms=terms_of(options.tags, fields))
            head = encode_body(options, task.name, b"")
        job = NewJob(self._id, options.priority, self._due, self._expiry, head + arguments, self._flags)
        return Call(
            task, job, self._queue, options, self._on_same_id, self._parents, self._durability, tuple(results)
        )  # fmt: skip

    async def enqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """Stores a job that calls the task; returns once it is stored."""
        return await self.task.rota.enqueue(self.call(*args, **kwargs))

    def enqueue_sync(self, /, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """`enqueue`, for code that is not async."""
        return self.task.rota.wait_for(self.enqueue(*args, **kwargs))


class Task(Generic[P, R, C]):
    """A declared function. Calling it just runs it; `enqueue` stores a job that will."""

    def __init__(
        self,
        rota: Rota,
        function: Callable[..., Any],
        *,
        name: str | None,
        queue: str,
        run_in: RunIn | None,
        index: Sequence[str] = (),
        defaults: Mapping[str, Any],
    ) -> None:
        is_async = _is_async(function, "rota.task")
        self.rota = rota
        self.function = function
        self.name = checked_task_name(name or function.__name__)
        if self.name.endswith(SUFFIX):
            raise InvalidOption("name", f"{self.name!r}: names that end in {SUFFIX} are those of failure handlers")
        self.queue = checked_new_queue(queue)
        self.run_in: RunIn = _run_in(self.name, run_in, is_async=is_async)
        self.defaults = dict(defaults)
        #: Parameters by whose values its jobs can be found.
        self.index = checked_index(index, list(inspect.signature(function).parameters))
        self.failure_handler: FailureHandler | None = None
        update_wrapper(self, function, updated=())  # the function's own attributes must not hide those of the task
        self._plain = Prepared(self, {})

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> C:
        """Runs the function here and now, as if it had not been declared a task.

        A `Context` that is not given is made up. What `Depends` would provide has to be passed: TypeError says what.
        """
        contexts = [d.name for d in self.signature.dependencies if d.provides is None and d.name not in kwargs]
        given: tuple[Any, ...] = args
        named: dict[str, Any] = kwargs
        if contexts and not any(isinstance(argument, Context) for argument in args):
            made_up = dict.fromkeys(contexts, detached_context(self))
            given, named = _beside(self.function, made_up, args, kwargs)
        self._check_provided(given, named)
        return self.function(*given, **named)

    def _check_provided(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        provided = {d.name: d.provides.provider for d in self.signature.dependencies if d.provides is not None}
        if not provided:
            return
        passed = inspect.signature(self.function).bind_partial(*args, **kwargs).arguments
        missing = [name for name in provided if name not in passed]
        if missing:
            providers = ", ".join(getattr(provided[name], "__name__", repr(provided[name])) for name in missing)
            raise TypeError(
                f"task {self.name!r} is called directly, with no worker to fill in what {providers} provides: "
                f"pass {', '.join(f'{name}=…' for name in missing)}"
            )

    def using(
        self,
        *,
        id: str | None = None,
        queue: str | None = None,
        priority: str | int | None = None,
        delay: Any = None,
        run_at: datetime | None = None,
        retry: Any = None,
        max_stalls: int | None = None,
        at_most_once: bool | None = None,
        timeout: Any = ...,
        progress_timeout: Any = None,
        expires: Any = None,
        keep: Any = None,
        tags: Any = None,
        meta: dict[str, Any] | None = None,
        lock: str | None = None,
        after: Iterable[Any] | None = None,
        on_same_id: OnSameId | None = None,
        durability: Durability | None = None,
    ) -> Prepared[P, R]:
        """The same task with other options for the jobs made through it (spec: job options)."""
        given = {
            "id": id, "queue": queue, "priority": priority, "delay": delay, "run_at": run_at, "retry": retry,
            "max_stalls": max_stalls, "at_most_once": at_most_once, "progress_timeout": progress_timeout,
            "expires": expires, "keep": keep, "tags": tags, "meta": meta, "lock": lock, "after": after,
            "on_same_id": on_same_id,
            "durability": durability,
        }  # fmt: skip
        chosen = {option: value for option, value in given.items() if value is not None}
        if timeout is not ...:  # None is a choice here: no timeout
            chosen["timeout"] = timeout
        return Prepared(self, chosen)

    def call(self, /, *args: P.args, **kwargs: P.kwargs) -> Call[R]:
        """The call, checked and encoded, for `enqueue_many`."""
        return self._plain.call(*args, **kwargs)

    async def enqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """Stores a job that calls this task with its default options; returns once it is stored."""
        return await self.rota.enqueue(self._plain.call(*args, **kwargs))

    def enqueue_sync(self, /, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """`enqueue`, for code that is not async."""
        return self._plain.enqueue_sync(*args, **kwargs)

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
        self, *, run_in: RunIn | None = ..., priority: str | int = ..., retry: Any = ..., max_stalls: int = ...,
        at_most_once: bool = ..., timeout: float | timedelta | None = ...,
        progress_timeout: float | timedelta = ..., keep: Any = ..., tags: Iterable[str] = ...,
        meta: dict[str, Any] = ...,
    ) -> HandlerDecorator[P]: ...  # fmt: skip
    def on_failure(
        self, function: Callable[..., Any] | None = None, *, run_in: RunIn | None = None, **options: Any
    ) -> Any:
        """Declares what runs when a job of this task has failed for good: `@send.on_failure`, with options or without.

        The function takes `(error, job)`, an `ErrorRecord` and the `JobRecord` that failed, and, if it wants them, the
        task's own parameters. It runs as a job of its own in `<queue>-fail`, made in the very step that fails the
        other, and is tried 100 times unless `retry=` says otherwise. It stays a plain function. Raises TaskConflict
        when the task has another one.
        """

        def declare(declared: Callable[..., Any]) -> Callable[..., Any]:
            is_async = _is_async(declared, f"{self.name}{SUFFIX}")
            other = self.failure_handler
            if other is not None and _origin(other) != _origin_of(declared):
                raise TaskConflict(f"task {self.name!r} already has a failure handler: {'.'.join(_origin(other))}")
            chosen = _run_in(f"{self.name}{SUFFIX}", run_in, is_async=is_async)
            self.failure_handler = FailureHandler(self, declared, run_in=chosen, options=options)
            return declared

        return HandlerDecorator[P](declare) if function is None else declare(function)

    @cached_property
    def signature(self) -> Signature:
        """The task's parameters."""
        return Signature(self.name, self.function)

    def refresh_defaults(self) -> None:
        """Takes up defaults that its queue has been given since."""
        self._plain = Prepared(self, {})

    @property
    def options(self) -> Options:
        """The options of a job that is enqueued with no others."""
        return self._plain.options

    def __repr__(self) -> str:
        return f"<Task {self.name} in queue {self.queue}>"


class TakesAnything(Protocol[P, R_co]):
    """A function whose first parameter takes anything, as `Any` and `object` do: for type checkers alone.

    Such a function would also take a `Context`, and must not be mistaken for one that asks for it.
    """

    @overload
    def __call__(self, first: _NoContext, /, *args: Any, **kwargs: Any) -> Any: ...
    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...


class _NoContext:
    """What no function asks for by name."""


class TaskDecorator:
    """What `@rota.task(...)` returns: turns a function into a task of the right type."""

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
    """The tasks of one `Rota`, by name. Stored data names a task; it can never name anything else."""

    def __init__(self) -> None:
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
        """The task of that name."""
        task = self._tasks.get(name)
        if task is None:
            known = ", ".join(sorted(self._tasks)) or "none"
            raise UnknownTask(f"no task is called {name!r}; this program declares: {known}")
        return task

    def find(self, name: str) -> Task[Any, Any, Any] | FailureHandler:
        """What a job's record names: a task, or the failure handler of one."""
        if not name.endswith(SUFFIX):
            return self.get(name)
        task = self.get(name.removesuffix(SUFFIX))
        if task.failure_handler is None:
            raise UnknownTask(f"task {task.name!r} has no failure handler in this program")
        return task.failure_handler

    def __contains__(self, name: str) -> bool:
        return name in self._tasks

    def __iter__(self) -> Iterator[Task[Any, Any, Any]]:
        return iter(self._tasks.values())

    def __len__(self) -> int:
        return len(self._tasks)


def check_defaults(defaults: Mapping[str, Any]) -> None:
    """Refuses what cannot be a default of a task's or a queue's jobs."""
    options = dict(defaults)
    _durability(options)
    _on_same_id(options)
    make_options(options)


def detached_context(task: Task[Any, Any, Any]) -> Context:
    """The context of a handler that is called directly: there is no job, and what it reports goes nowhere."""
    record = JobRecord(
        ref=JobRef(task.queue, "direct", "0" * 9), task=task.name, state=JobState.PROCESSING, arguments=b"[]",
        options=task.options, counts=Counts(attempt=1), enqueued_at=0,
    )  # fmt: skip
    return Context(record, reporter=SilentReporter(), fence=0, stops_at=None)


def _beside(
    function: Callable[..., Any], named: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments for a call whose positional ones skip the parameters filled in here."""
    filled = list(args)
    for place, parameter in enumerate(inspect.signature(function).parameters.values()):
        is_positional = parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        if is_positional and parameter.name in named and place <= len(filled):
            filled.insert(place, named.pop(parameter.name))
    return tuple(filled), {**named, **kwargs}


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


def moment(delay: Any, run_at: Any) -> str:
    """When a job may start, as the scripts take it: "" is now."""
    if delay is not None and run_at is not None:
        raise InvalidOption("delay", "give delay or run_at, not both")
    if run_at is not None:
        return str(checked_time_ms(run_at, "run_at"))
    return "" if delay is None else f"+{to_ms(delay, 'delay')}"


def _on_same_id(options: dict[str, Any]) -> OnSameId:
    chosen = options.pop("on_same_id", UPDATE)
    if not isinstance(chosen, Update | Ignore | Reject):
        raise InvalidOption("on_same_id", f"takes Update(...), Ignore() or Reject(), not {chosen!r}")
    return chosen


def _durability(options: dict[str, Any]) -> Durability | None:
    """Takes it out of the options: it is about the receipt, and no part of the job."""
    return checked_durability(options.pop("durability")) if "durability" in options else None


def _expiry(options: Options) -> str:
    if options.expires_at is not None:
        return str(options.expires_at)
    return "" if options.expires_ms is None else f"+{options.expires_ms}"
