"""The workers of the demo as the autoscaler starts and drains them, read with `rota.workers()` and `rota.scaling`."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from itertools import takewhile

from examples.demo.tasks import rota
from rota import WorkerInfo


@dataclass(slots=True)
class Pool:
    """The workers that are there now, and what the autoscaler has done so far."""

    alive: list[WorkerInfo] = field(default_factory=list[WorkerInfo])
    #: Workers that have been there so far.
    joined: set[str] = field(default_factory=set[str])
    #: How many workers the autoscaler has started.
    started: int = 0
    #: Workers that were drained: they finished their jobs and left.
    drained: set[str] = field(default_factory=set[str])
    has_drained: asyncio.Event = field(default_factory=asyncio.Event)
    _latest: str = ""

    async def refresh(self) -> list[str]:
        """Reads workers and decisions. Returns a message for each change."""
        return [*await self._read_decisions(), *await self._read_workers()]

    async def _read_decisions(self) -> list[str]:
        newest_first = (await rota.scaling.decisions()).decisions
        messages: list[str] = []
        for decision in reversed(list(takewhile(lambda one: one.id != self._latest, newest_first))):
            self._latest = decision.id
            self.started += decision.launch_count
            why = f"{decision.high + decision.normal} jobs wait, {_workers(decision.wanted)} wanted"
            for verb, count in (("starts", decision.launch_count), ("drains", decision.drain_count)):
                if count:
                    messages.append(f"the autoscaler {verb} {_workers(count)}: {why}")
        return messages

    async def _read_workers(self) -> list[str]:
        workers = await rota.workers()
        self.alive = [worker for worker in workers if worker.status == "ALIVE"]
        self.joined |= {worker.id for worker in self.alive}
        left = {worker.id for worker in workers if worker.status != "ALIVE" and worker.info.get("was_drained")}
        new = sorted(left - self.drained)
        self.drained |= left
        if left:
            self.has_drained.set()
        return [f"worker {pid_of(worker)} has drained and leaves" for worker in new]

    def summary(self) -> str:
        """Returns what the autoscaler has done, in one line."""
        return f"autoscaler: {_workers(self.started)} started, {len(self.drained)} left drained"


def pid_of(worker: str) -> int:
    """Returns the process id of a worker. Its id is host, process id and a random suffix."""
    return int(worker.rsplit("-", 2)[1])


def _workers(count: int) -> str:
    return f"{count} worker" if count == 1 else f"{count} workers"
