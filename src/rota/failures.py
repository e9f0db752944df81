"""Failure handlers: what runs, as a job of its own, when a job has failed for good.

`@send.on_failure` declares one. Workers announce it, the script that fails a job of `send` makes the job that calls it,
and that job runs in the queue's failures, `mail-fail`, as patiently as its own options say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Concatenate, Final, Generic, ParamSpec, TypeVar, overload

from rota.context import Context
from rota.core.codec import encode_options
from rota.core.job import ErrorRecord, JobRecord, Options, make_options
from rota.core.retry import Exponential, Retry
from rota.errors import InvalidOption
from rota.signature import FailureSignature

if TYPE_CHECKING:
    from rota.tasks import RunIn, Task

P = ParamSpec("P")
H = TypeVar("H")

#: What is behind the task's name in the record of a job that handles its failure. Also known to `include/alert.lua`.
SUFFIX: Final = ".on_failure"
#: Whoever has to be told of a failure may be away for a day: then it is told the day after.
RETRY: Final = Retry(attempts=100, backoff=Exponential(base=10, max=900))
#: What a caller decides for one job, and what ties a job to others, is nothing that a failure job could have.
_OPTIONS: Final = frozenset(
    ("priority", "timeout", "progress_timeout", "retry", "max_stalls", "at_most_once", "keep", "tags", "meta")
)


class FailureHandler:
    """A declared failure handler: its function, and the options of the jobs that call it."""

    def __init__(
        self, task: Task[Any, Any, Any], function: Callable[..., Any], *, run_in: RunIn, options: Mapping[str, Any]
    ) -> None:
        check_failure_options(options)
        self.task = task
        self.function = function
        self.name = task.name + SUFFIX
        self.run_in: RunIn = run_in
        self._given = dict(options)

    @cached_property
    def signature(self) -> FailureSignature:
        """Its parameters."""
        return FailureSignature(self.name, self.function, self.task.signature)

    def options_in(self, queue: str) -> Options:
        """The options of its jobs, for a task's jobs of that queue: its own, else the queue's, else the usual ones."""
        return make_options({"retry": RETRY, **self.task.rota.failure_defaults_of(queue), **self._given})

    def announcement(self, queue: str) -> str:
        """The same, as the store is told."""
        return encode_options(self.options_in(queue)).decode()

    def __repr__(self) -> str:
        return f"<FailureHandler of {self.task.name}>"


class HandlerDecorator(Generic[P]):
    """What `@send.on_failure(...)` returns: declares a function, which stays what it is."""

    def __init__(self, declare: Callable[[Callable[..., Any]], Any]) -> None:
        self._declare = declare

    @overload
    def __call__(
        self, function: Callable[Concatenate[ErrorRecord, JobRecord, P], H], /
    ) -> Callable[Concatenate[ErrorRecord, JobRecord, P], H]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[Context, ErrorRecord, JobRecord, P], H], /
    ) -> Callable[Concatenate[Context, ErrorRecord, JobRecord, P], H]: ...
    @overload
    def __call__(self, function: Callable[[ErrorRecord, JobRecord], H], /) -> Callable[[ErrorRecord, JobRecord], H]: ...
    @overload
    def __call__(
        self, function: Callable[[Context, ErrorRecord, JobRecord], H], /
    ) -> Callable[[Context, ErrorRecord, JobRecord], H]: ...
    def __call__(self, function: Callable[..., Any], /) -> Callable[..., Any]:
        """Declares the function."""
        return self._declare(function)


def check_failure_options(options: Mapping[str, Any]) -> None:
    """Refuses what cannot be an option of failure jobs."""
    for option in options:
        if option not in _OPTIONS:
            raise InvalidOption(option, f"failure jobs have no such option; they have {', '.join(sorted(_OPTIONS))}")
    make_options(options)
