"""Failure handlers: functions that run, as a job of their own, when a job has failed for good.

`@send.on_failure` declares one. Workers register it, the script that fails a job of `send` creates the job that calls
it, and that job runs in the failure queue, `mail-fail`, with its own retry options.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Concatenate, Final, Generic, Literal, ParamSpec, Protocol, TypeVar, overload

import msgspec

from rota.client.context import Context
from rota.client.task_arguments import FailureSignature, Signature
from rota.core.job_index_terms import make_terms
from rota.core.job_options import Options, make_options
from rota.core.job_record import ErrorRecord, JobRecord
from rota.core.job_record_codec import encode_options
from rota.core.retry import Exponential, Retry
from rota.errors import InvalidOption

P = ParamSpec("P")
H = TypeVar("H")
RunIn = Literal["loop", "thread", "process"]

#: Suffix of the task's name in the record of a job that handles its failure. `enqueue_failure_jobs.lua` writes it too.
SUFFIX: Final = ".on_failure"
#: Covers a day: a system that has to be notified of a failure may be down that long.
RETRY: Final = Retry(attempts=100, backoff=Exponential(base=10, max=900))
#: Options of failure jobs. Not among them: options of a single enqueue, and dependencies.
_OPTIONS: Final = frozenset(
    ("priority", "timeout", "progress_timeout", "retry", "max_stalls", "at_most_once", "keep", "tags", "meta")
)


class HandledTask(Protocol):
    """The task whose failures are handled; `tasks.Task` is above this module."""

    name: str

    @property
    def signature(self) -> Signature:
        """The task's parameters."""
        ...


class FailureHandler:
    """A declared failure handler: its function, and the options of the jobs that call it."""

    def __init__(
        self,
        task: HandledTask,
        function: Callable[..., Any],
        *,
        run_in: RunIn,
        options: Mapping[str, Any],
        queue_defaults: Mapping[str, Mapping[str, Any]],
    ) -> None:
        check_failure_options(options)
        self.task = task
        self.function = function
        self.name = task.name + SUFFIX
        self.run_in: RunIn = run_in
        self._options = dict(options)
        #: Queue -> default options of its failure jobs.
        self._queue_defaults = queue_defaults

    @cached_property
    def signature(self) -> FailureSignature:
        """The handler's parameters."""
        return FailureSignature(self.name, self.function, self.task.signature)

    def options_in(self, queue: str) -> Options:
        """Options of the failure jobs of that queue: the handler's own, else the queue's, else the defaults."""
        options = make_options({"retry": RETRY, **self._queue_defaults.get(queue, {}), **self._options})
        return msgspec.structs.replace(options, terms=make_terms(options.tags, {}))

    def options_by_queue(self) -> dict[str, str]:
        """The encoded options for each queue with failure defaults; "" stands for every other queue."""
        return {queue: encode_options(self.options_in(queue)).decode() for queue in ("", *self._queue_defaults)}

    def __repr__(self) -> str:
        return f"<FailureHandler of {self.task.name}>"


class HandlerDecorator(Generic[P]):
    """The decorator that `@send.on_failure(...)` returns. Declares a function and returns it unchanged."""

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
    """Raises InvalidOption for an option that failure jobs do not have."""
    for option in options:
        if option not in _OPTIONS:
            raise InvalidOption(option, f"failure jobs have no such option; they have {', '.join(sorted(_OPTIONS))}")
    make_options(options)
