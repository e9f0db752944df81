"""Which tasks there are: those of the program, if the server was given one, and those that workers announced."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from rota.client import Rota
from rota.core.job import DEFAULT_QUEUE, Options, checked_task_name
from rota.core.json_schema import mismatch
from rota.core.values import is_array
from rota.errors import InvalidArguments
from rota.signature import Signature
from rota.tasks import Task

#: What workers announced is looked up again after this.
FRESH_S: Final = 5.0
#: Names that nobody announced are remembered up to this number.
MAX_STRANGERS: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTask:
    """A task that jobs can be enqueued for, with what is known of it."""

    task: Task[Any, Any, Any]
    #: "program", "worker", or "" for a name that nobody has announced.
    source: str
    #: Of its named arguments.
    schema: Mapping[str, Any] | None = None
    positional: Sequence[str] = ()
    doc: str = ""
    run_in: str = ""

    def check(self, data: Any) -> None:
        """Refuses arguments that do not fit the announced schema. A program's own tasks check for themselves."""
        if self.source != "worker" or self.schema is None:
            return
        named: Any = data
        if is_array(data):
            if len(data) > len(self.positional):
                return  # it may take any number, which the schema does not say
            named = dict(zip(self.positional, data, strict=False))
        fault = mismatch(self.schema, named)
        if fault is not None:
            raise InvalidArguments(self.task.name, f"data.{fault}" if "." in fault.split(":")[0] else f"data: {fault}")


class Catalog:
    """Finds tasks by name."""

    def __init__(self, rota: Rota) -> None:
        self._rota = rota
        self._declared: dict[str, KnownTask] = {}
        self._announced: dict[str, KnownTask] = {}
        self._strangers: dict[str, KnownTask] = {}
        self._fresh_until = 0.0
        self._refreshing: asyncio.Task[None] | None = None

    async def find(self, name: str) -> KnownTask:
        """What is known of a task. A name that nobody announced is a task as well: a worker may come that has it."""
        if name in self._rota.tasks:
            return self._of_program(self._rota.tasks.get(name))
        known = (await self._fresh()).get(name) or self._strangers.get(name)
        if known is None:
            if len(self._strangers) >= MAX_STRANGERS:
                self._strangers.clear()
            known = self._strangers[name] = KnownTask(task=_stand_in_task(self._rota, name, DEFAULT_QUEUE), source="")
        return known

    async def all(self) -> list[KnownTask]:
        """Every task that the program declares or a worker announced, by name."""
        announced = await self._fresh()
        found = announced | {task.name: self._of_program(task) for task in self._rota.tasks}
        return [found[name] for name in sorted(found)]

    def positional(self, name: str) -> Sequence[str]:
        """Names of a task's positional arguments, as far as they are known without asking."""
        if name in self._rota.tasks:
            return self._rota.tasks.get(name).signature.positional
        known = self._announced.get(name)
        return known.positional if known is not None else ()

    def _of_program(self, task: Task[Any, Any, Any]) -> KnownTask:
        known = self._declared.get(task.name)
        if known is None or known.task is not task:
            known = self._declared[task.name] = _of_program(task)
        return known

    async def _fresh(self) -> dict[str, KnownTask]:
        if time.monotonic() >= self._fresh_until:
            if self._refreshing is None or self._refreshing.done():
                self._refreshing = asyncio.create_task(self._refresh())
            await asyncio.shield(self._refreshing)
        return self._announced

    async def _refresh(self) -> None:
        said = await (await self._rota.checked_views()).tasks()
        self._announced = {name: _of_worker(self._rota, name, one) for name, one in said.items()}
        self._fresh_until = time.monotonic() + FRESH_S


def _of_program(task: Task[Any, Any, Any]) -> KnownTask:
    return KnownTask(
        task=task,
        source="program",
        schema=task.signature.schema(),
        positional=task.signature.positional,
        doc=(task.function.__doc__ or "").strip().partition("\n")[0],
        run_in=task.run_in,
    )


def _of_worker(rota: Rota, name: str, said: Mapping[str, Any]) -> KnownTask:
    defaults = _as_given(msgspec.convert(said.get("options", {}), Options))
    return KnownTask(
        task=_stand_in_task(rota, name, said.get("queue", DEFAULT_QUEUE), defaults),
        source="worker",
        schema=said.get("schema"),
        positional=said.get("positional", ()),
        doc=said.get("doc", ""),
        run_in=said.get("run_in", ""),
    )


def _stand_in_task(rota: Rota, name: str, queue: str, defaults: Mapping[str, Any] | None = None) -> Task[Any, Any, Any]:
    """A task of which only the name, the queue and the defaults are known. It is not declared: nothing here runs it."""

    def stand_in(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("only a worker runs it")

    task: Task[Any, Any, Any] = Task(
        rota, stand_in, name=checked_task_name(name), queue=queue, run_in=None, defaults=defaults or {}
    )
    task.signature = _Anything(name, stand_in)
    return task


class _Anything(Signature):
    """The parameters of a task of which nothing is known here: whatever is JSON will do."""

    def _check(self, encoded: bytes, *, is_positional: bool) -> None:
        """The worker has the last word."""


def _as_given(options: Options) -> dict[str, Any]:
    """Effective options in the form in which a program gives them: seconds, and only what is set."""
    given: dict[str, Any] = {
        "priority": options.priority, "retry": options.retry, "max_stalls": options.max_stalls, "keep": options.keep,
        "at_most_once": options.at_most_once, "tags": options.tags, "meta": options.meta,
    }  # fmt: skip
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
