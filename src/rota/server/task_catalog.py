"""The catalog of known tasks: those declared by the server's application, and those announced by workers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rota.client.announced_task_stand_ins import FRESH_S, make_stand_in
from rota.client.rota import Rota, enqueuer_of
from rota.client.session import checked_session
from rota.client.tasks import Task
from rota.core.json_schema_validator import find_mismatch, is_array
from rota.errors import InvalidArguments, InvalidOption

#: Maximum number of cached unknown names.
MAX_UNKNOWN: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTask:
    """A task for which jobs can be enqueued."""

    task: Task[Any, Any, Any]
    #: "program", "worker", or "" for a name that no worker has announced.
    source: str
    #: JSON Schema of the named arguments.
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
        fault = find_mismatch(self.schema, named)
        if fault is not None:
            path = f"data.{fault.field}" if fault.field else "data"
            raise InvalidArguments(self.task.name, f"{path}: {fault.reason}", field=fault.field, reason=fault.reason)


class TaskCatalog:
    """Finds tasks by name, with a cache of announced ones."""

    def __init__(self, rota: Rota) -> None:
        self._rota = rota
        self._declared: dict[str, KnownTask] = {}
        self._announced: dict[str, KnownTask] = {}
        self._unknown: dict[str, KnownTask] = {}
        self._fresh_until = 0.0
        self._refreshing: asyncio.Task[None] | None = None

    async def find(self, name: str) -> KnownTask:
        """Returns a task by name. An unknown name is accepted: a worker that has the task may start later."""
        if name in self._rota.tasks:
            return self._of_program(self._rota.tasks.get(name))
        known = (await self._fresh()).get(name) or self._unknown.get(name)
        if known is None:
            if len(self._unknown) >= MAX_UNKNOWN:
                self._unknown.clear()
            known = self._unknown[name] = self.undeclared(name)
        return known

    def undeclared(self, name: str) -> KnownTask:
        """Returns what is known of a task that nothing declares: its name."""
        return KnownTask(task=self._unknown_task(name), source="")

    async def has(self, name: str) -> bool:
        """True if the task is declared here or announced by a worker."""
        return name in self._rota.tasks or name in await self._fresh()

    def _unknown_task(self, name: str) -> Task[Any, Any, Any]:
        try:
            return make_stand_in(enqueuer_of(self._rota), name, {})
        except InvalidOption as error:  # the field of a request that names the task
            raise InvalidOption("type", error.reason) from error

    async def all(self) -> list[KnownTask]:
        """Returns all declared and announced tasks, ordered by name."""
        announced = await self._fresh()
        found = announced | {task.name: self._of_program(task) for task in self._rota.tasks}
        return [found[name] for name in sorted(found)]

    async def load(self) -> None:
        """Reads the announced tasks, unless they were read moments ago."""
        await self._fresh()

    def positional(self, name: str) -> Sequence[str]:
        """Returns the names of a task's positional parameters, as `load` has read them."""
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
        announced = await (await checked_session(self._rota)).views.tasks()
        self._announced = {name: _of_worker(self._rota, name, one) for name, one in announced.items()}
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


def _of_worker(rota: Rota, name: str, announced: Mapping[str, Any]) -> KnownTask:
    return KnownTask(
        task=make_stand_in(enqueuer_of(rota), name, announced),
        source="worker",
        schema=announced.get("schema"),
        positional=announced.get("positional", ()),
        doc=announced.get("doc", ""),
        run_in=announced.get("run_in", ""),
    )
