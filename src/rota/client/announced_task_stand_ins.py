"""Announced tasks: tasks of other programs, as their workers register them. They can be enqueued here, but not run.

A worker publishes the name, the queue, the default options and the JSON Schema of the arguments of each of its tasks.
The arguments of a job are checked against that schema, and again by the worker with the task's own types.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from rota.client.task_arguments import Signature
from rota.client.tasks import Client, Task
from rota.core.did_you_mean import did_you_mean
from rota.core.ids import DEFAULT_QUEUE, checked_task_name
from rota.core.job_options import Options
from rota.core.job_record_codec import decode_arguments
from rota.core.json_schema_validator import find_mismatch
from rota.errors import InvalidArguments, UnknownTask

#: Cache time of announced tasks. An unknown task, and arguments that do not fit, are looked up again.
FRESH_S: Final = 5.0
#: Reads the announced tasks: name -> what the worker published.
Read = Callable[[], Coroutine[Any, Any, Mapping[str, Mapping[str, Any]]]]


class AnnouncedTasks:
    """Finds announced tasks by name, with a cache."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: Mapping[str, Mapping[str, Any]] = {}
        self._fresh_until = 0.0

    async def get(self, name: str) -> Task[..., Any, Any]:
        """Returns the task of that name. Raises UnknownTask if no worker has announced it."""
        checked_task_name(name)
        if name not in self._known or time.monotonic() >= self._fresh_until:
            await self.refresh()
        announced = self._known.get(name)
        if announced is None:
            names = ", ".join(sorted(self._known)) or "none"
            raise UnknownTask(
                f"no worker on {self._client.sessions.address} has announced the task {name!r}"
                f"{did_you_mean(name, self._known)}; announced tasks: {names}. Start a worker that has it"
            )
        return make_stand_in(self._client, name, announced, CheckedSignature)

    async def refresh(self) -> None:
        """Reads the announced tasks."""
        session = await self._client.sessions.checked()
        self._known = await session.views.tasks()
        self._fresh_until = time.monotonic() + FRESH_S


class AnySignature(Signature):
    """The signature of a task whose function is not here: it accepts any JSON."""

    def __init__(self, task: str, announced: Mapping[str, Any]) -> None:
        super().__init__(task, _stand_in)

    def _check(self, encoded: bytes, *, is_positional: bool) -> None:
        """Accepts all arguments: the worker checks them."""

    def _check_untyped(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Accepts all arguments: they were read from JSON."""


class CheckedSignature(AnySignature):
    """The same, with the schema that a worker has announced: other arguments are refused."""

    def __init__(self, task: str, announced: Mapping[str, Any]) -> None:
        super().__init__(task, announced)
        self.has_blobs = True  # it may have; the schema decides
        self._schema: Mapping[str, Any] = announced.get("schema") or {}
        self._announced_names: Sequence[str] = announced.get("positional", ())

    def encode(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        """Returns arguments as they are stored. Raises InvalidArguments when they do not fit the schema."""
        args, kwargs = self._by_name(args, kwargs)
        encoded = super().encode(args, kwargs)
        positional, named = decode_arguments(encoded)
        if len(positional) <= len(self._announced_names):  # else the task takes any number, which no schema says
            named |= dict(zip(self._announced_names, positional, strict=False))
            fault = find_mismatch(self._schema, named)
            if fault is not None:
                reason = f"{fault.field}: {fault.reason}" if fault.field else fault.reason
                raise InvalidArguments(self._task, reason, field=fault.field, reason=fault.reason)
        return encoded

    def encode_with_results(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[bytes, list[Any]]:
        """Like `encode`, for arguments that contain results of steps: the worker checks them once they exist."""
        return super().encode_with_results(*self._by_name(args, kwargs))

    def named(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Returns arguments by the names of their parameters, where they have one."""
        return dict(zip(self._announced_names, args, strict=False)) | kwargs

    def _by_name(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Next to named arguments, positional ones have to be stored by their names as well."""
        if not (args and kwargs):
            return args, kwargs
        for name in self._announced_names[: len(args)]:
            if name in kwargs:
                raise InvalidArguments(self._task, f"got two values for {name!r}", field=name)
        if len(args) > len(self._announced_names):
            names = ", ".join(self._announced_names) or "none"
            raise InvalidArguments(self._task, f"takes {len(self._announced_names)} positional arguments ({names})")
        return (), self.named(args, kwargs)


def make_stand_in(
    client: Client,
    name: str,
    announced: Mapping[str, Any],
    signature: Callable[[str, Mapping[str, Any]], Signature] = AnySignature,
) -> Task[Any, Any, Any]:
    """Returns a task of which only what workers announce is known. It can be enqueued but not run."""
    defaults = _as_keywords(msgspec.convert(announced["options"], Options)) if "options" in announced else {}
    task: Task[Any, Any, Any] = Task(
        client,
        _stand_in,
        name=checked_task_name(name),
        queue=announced.get("queue", DEFAULT_QUEUE),
        run_in=None,
        index=(),
        defaults=defaults,
        signature=signature(name, announced),
    )
    task.index = tuple(announced.get("index", ()))
    return task


def _stand_in(*args: Any, **kwargs: Any) -> Any:
    raise AssertionError("this process cannot run the task")


def _as_keywords(options: Options) -> dict[str, Any]:
    """Converts effective options to keyword arguments of a task: in seconds, and only those that are set."""
    given: dict[str, Any] = {
        "priority": options.priority,
        "retry": options.retry,
        "max_stalls": options.max_stalls,
        "keep": options.keep,
        "at_most_once": options.at_most_once,
        "tags": options.tags,
        "meta": options.meta,
    }
    if options.progress_timeout_ms is not None:
        given["progress_timeout"] = options.progress_timeout_ms / 1000
    given["timeout"] = None if options.timeout_ms is None else options.timeout_ms / 1000
    if options.lock:
        given["lock"] = options.lock
    if options.expires_ms is not None:
        given["expires"] = options.expires_ms / 1000
    if options.expires_at is not None:
        given["expires"] = datetime.fromtimestamp(options.expires_at / 1000, UTC)
    return given
