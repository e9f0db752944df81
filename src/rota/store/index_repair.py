"""Checks and repairs the indexes of a queue: every record, index and counter against the others.

The queue is walked in slices, one short script each, so producers and workers continue meanwhile. A run is checked and
repaired in one step. `LISTED` names the indexes whose entries are checked; a new check of a run is added to `CHECKS` in
`check_runs.lua`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from rota.core.dependencies import Parent
from rota.core.ids import JobRef
from rota.errors import InvalidOption
from rota.store.create_dependents_and_deliver_outcomes import SLICE, WORKFLOWS, Edge
from rota.store.job_store import JobStore
from rota.store.namespace_settings import SettingsStore
from rota.store.redis.retrying_client import Argument

Mode = Literal["check", "repair"]
#: Runs that one call checks, about: 30 µs each. A small hash is read as a whole.
RUNS_PER_CALL: Final = 40
#: Entries of an index that one call checks, and parts of the task index: up to 1,024 runs each.
ENTRIES_PER_CALL: Final = 200
PARTS_PER_CALL: Final = 4
#: Indexes whose entries are checked.
LISTED: Final = (
    *("pending", "scheduled", "blocked", "processing", "completed", "failed", "cancelled", "stopping", "expiring"),
    *("runs", "ids", "named", "locked", "locks", "follows", "results", "errors", "history", "progress", "waiters"),
    *("terms", "has_parents", "steps"),
)


@dataclass(frozen=True, slots=True)
class IndexProblem:
    """What one check found. `run` is a run of the queue, or a part of its task index."""

    queue: str
    run: str
    index: str
    what: str
    #: False for what no repair can restore, or what a worker repairs.
    is_repairable: bool


@dataclass(frozen=True, slots=True)
class CheckedSlice:
    """What one call did: how many runs or entries it checked, and the problems among them."""

    checked: int
    problems: Sequence[IndexProblem]


class IndexRepair:
    """Checks the indexes of queues, and repairs them in the mode "repair"."""

    def __init__(self, store: JobStore) -> None:
        self._store = store

    async def walk(self, queue: str, mode: Mode) -> AsyncIterator[CheckedSlice]:
        """Checks a queue as a whole, slice by slice: its runs, the entries of its indexes, its task index."""
        async for checked in self.walk_runs(queue, mode):
            yield checked
        async for checked in self.walk_entries(queue, mode):
            yield checked
        if mode == "repair":
            await self.register_dependents_again(queue)

    async def walk_entries(self, queue: str, mode: Mode) -> AsyncIterator[CheckedSlice]:
        """Checks the entries of a queue's indexes, slice by slice."""
        for index in LISTED:
            async for checked in self._walk(queue, "check_index_entries", [mode, index], [ENTRIES_PER_CALL]):
                yield CheckedSlice(0, checked.problems)
        async for checked in self._walk_task_index(queue, mode):
            yield checked

    async def walk_runs(self, queue: str, mode: Mode) -> AsyncIterator[CheckedSlice]:
        """Checks the runs of a queue, slice by slice."""
        lease_ms = (await SettingsStore(self._store.redis, self._store.keys).read()).durations.lease_ms
        async for checked in self._walk(queue, "check_runs", [mode], [RUNS_PER_CALL, lease_ms]):
            yield checked

    async def _walk(
        self, queue: str, name: str, before: Sequence[Argument], after: Sequence[Argument]
    ) -> AsyncIterator[CheckedSlice]:
        keys, cursor = self._store.script_keys(name, queue), "0"
        while True:
            words = [queue, self._store.keys.inbox_prefix, *before, cursor, *after]
            found, checked, problems = await self._store.redis.run(name, keys, words)
            yield CheckedSlice(int(checked), _read_problems(queue, problems))
            cursor = found.decode()
            if cursor == "0":
                return

    async def _walk_task_index(self, queue: str, mode: Mode) -> AsyncIterator[CheckedSlice]:
        store = self._store
        parts = await store.redis.command("HKEYS", store.keys.queue(queue, "task_index_sizes"))
        keys = store.script_keys("check_task_index", queue)
        for start in range(0, len(parts), PARTS_PER_CALL):
            words: list[Argument] = [mode, *(part.decode() for part in parts[start : start + PARTS_PER_CALL])]
            yield CheckedSlice(0, _read_problems(queue, await store.redis.run("check_task_index", keys, words)))

    async def register_dependents_again(self, queue: str, renamed: Mapping[tuple[str, str], str] | None = None) -> None:
        """Registers waiting dependents with their parents again, and delivers the outcomes of those that have ended.

        Parents may be in other hash slots, so no script can compare the two sides. Harmless where nothing is wrong.
        `renamed` maps (queue, run) to the run that an import restored it as.
        """
        store = self._store
        key, cursor = store.keys.queue(queue, "blocked"), "0"
        while True:
            answer = await store.redis.command("ZSCAN", key, cursor, "COUNT", SLICE)
            runs = [run.decode() for run in answer[1][::2]]
            found = (
                await store.redis.commands([["HGETALL", store.keys.queue(queue, "parents", run)] for run in runs])
                if runs
                else []
            )
            edges = [
                edge
                for run, parents in zip(runs, found, strict=True)
                for edge in _edges(queue, run, parents, renamed or {})
            ]
            await store.dependencies.register_dependents(edges)
            cursor = answer[0].decode()
            if cursor == "0":
                return


def _edges(queue: str, run: str, parents: Sequence[bytes], renamed: Mapping[tuple[str, str], str]) -> list[Edge]:
    """The edges of a dependent, from its unmet parents: name, and flag, number and placeholder."""
    edges: list[Edge] = []
    for name, value in zip(parents[::2], parents[1::2], strict=True):
        text = value.decode()
        if name.decode().startswith(f"{WORKFLOWS}:"):
            continue  # a workflow is the parent: its driver opens it
        try:
            ref = JobRef.parse(name.decode())
        except InvalidOption:
            continue  # the part of a workflow
        placeholder = text.partition("=")[2]
        if ref.run and (place := renamed.get((ref.queue, ref.run))):
            ref = JobRef(ref.queue, ref.id, place)
        parent = Parent(ref, may_fail=text.startswith("?"), if_gone="satisfied", placeholder=placeholder)
        edges.append(Edge(queue, run, parent, name.decode()))
    return edges


def _read_problems(queue: str, words: Sequence[Any]) -> list[IndexProblem]:
    text = [word.decode(errors="replace") for word in words]
    return [
        IndexProblem(queue, run, index, what.removeprefix("!"), not what.startswith("!"))
        for run, index, what in zip(text[::3], text[1::3], text[2::3], strict=True)
    ]
