"""A producer, as a process of its own: `python -m tests.crash.chaos_producer <name> <seed> <jobs>`.

It enqueues jobs of all kinds, in an order that follows from the seed, and journals each call before it is sent and
after it was acknowledged. It ends after so many jobs, or when the driver creates the file `stop`.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

from rota import Job, RotaError, StoreError, WrongState
from rota.client.tasks import Task
from tests.crash.chaos_tasks import (
    FOLDER,
    SHARDS,
    Work,
    fail_for_good,
    rota,
    work,
    work_alone,
    work_in_process,
    work_in_thread,
)
from tests.crash.journal import Journal
from tests.worker.fault_injection import at_point

journal = Journal(FOLDER, "producer")
SECONDS: Final = (0.0, 0.0, 0.01, 0.05, 0.3)
LOCKS: Final = ("red", "green", "blue")
SHARED_IDS: Final = 3
PAUSE_S: Final = 0.02


class Producer:
    """Enqueues jobs, one after another."""

    def __init__(self, name: str, seed: str, jobs: int) -> None:
        self._name = name
        self._chance = random.Random(f"{seed} {name}")
        self._jobs = jobs
        self._made = 0
        self._versions: dict[str, int] = {}
        self._recent: list[Job[Any]] = []
        #: How often each kind of call is made.
        self._kinds: list[tuple[int, Callable[[], Awaitable[None]]]] = [
            (8, self._plain),
            (2, self._delayed),
            (2, self._failing),
            (1, self._dead_letter),
            (2, self._dependent),
            (2, self._shared_id),
            (1, self._at_most_once),
            (1, self._cancelled),
            (1, self._many),
            (1, self._cancel_in_bulk),
        ]
        if not SHARDS:  # on a sharded queue a job has an id or a lock, not both
            self._kinds.append((3, self._locked))

    async def run(self) -> None:
        """Produces until it has made its jobs, or is to stop."""
        weights = [weight for weight, _ in self._kinds]
        while self._made < self._jobs and not (FOLDER / "stop").exists():
            ((_, produce),) = self._chance.choices(self._kinds, weights)
            await produce()
            await asyncio.sleep(PAUSE_S)
        journal.write("finished", made=self._made)

    async def _plain(self) -> None:
        await self._enqueue(self._any_task(), self._work(key=self._next_id()), has_own_id=False)

    async def _delayed(self) -> None:
        delay = self._chance.choice([0.05, 0.5, 2.0])
        await self._enqueue(self._any_task(), self._work(), delay_s=delay, delay=delay)

    async def _failing(self) -> None:
        await self._enqueue(self._any_task(), self._work(failures=self._chance.choice([1, 2])))

    async def _dead_letter(self) -> None:
        await self._enqueue(fail_for_good, self._work(), expected="failed")

    async def _locked(self) -> None:
        lock = self._chance.choice(LOCKS)
        await self._enqueue(self._any_task(), self._work(lock=lock), lock=lock)

    async def _dependent(self) -> None:
        parents = self._chance.sample(self._recent, min(2, len(self._recent)))
        if parents:
            names = [str(parent.ref) for parent in parents]
            await self._enqueue(work, self._work(), parents=names, after=parents, may_be_refused=True)

    async def _at_most_once(self) -> None:
        await self._enqueue(self._any_task(), self._work(), expected="once", at_most_once=True)

    async def _cancelled(self) -> None:
        delay = self._chance.choice([0.0, 0.0, 60.0])
        job = await self._enqueue(work, Work(0.5), expected="cancelled", delay=delay)
        if job is None:
            return
        journal.write("cancelling", job=job.ref.full_id, run=job.run)
        with suppress(StoreError, WrongState):
            outcome = await job.cancel()
            journal.write("cancelled", job=job.ref.full_id, run=job.run, outcome=outcome.value)

    async def _shared_id(self) -> None:
        """Calls for one id while an earlier run of it waits or runs: each must be followed by a start."""
        id = f"{self._name}-shared-{self._chance.randrange(SHARED_IDS)}"
        version = self._versions[id] = self._versions.get(id, 0) + 1
        todo = Work(self._chance.choice([0.0, 0.3]), version=version)
        await self._enqueue(work, todo, id=id, expected="shared")

    async def _many(self) -> None:
        keys = [self._next_id() for _ in range(self._chance.choice([2, 20]))]
        for key in keys:
            journal.write("sent", id=key, delay_s=0, parents=[], expected="completed", version=0)
        try:
            jobs = await rota.enqueue_many(work.call(self._work(key=key)) for key in keys)
        except StoreError as error:
            journal.write("refused", id=keys, error=type(error).__name__)
            return
        for job in jobs:
            self._acknowledged(job, "completed")

    async def _cancel_in_bulk(self) -> None:
        """A bulk operation, which workers carry out, whichever of them die on the way."""
        tag = self._next_id()
        await asyncio.gather(
            *(self._enqueue(work, self._work(), expected="cancelled", tags=[tag], delay=10) for _ in range(10))
        )
        with suppress(StoreError):
            operation = await rota.operations.start("cancel", where={"tag": tag, "queue": "default"})
            journal.write("operation", id=operation.id)

    async def _enqueue(
        self,
        task: Task[Any, Any, Any],
        todo: Work,
        *,
        expected: str = "completed",
        id: str = "",
        delay_s: float = 0.0,
        parents: list[str] | None = None,
        may_be_refused: bool = False,
        has_own_id: bool = True,
        **options: Any,
    ) -> Job[Any] | None:
        id = id or self._next_id()
        journal.write("sent", id=id, delay_s=delay_s, parents=parents or [], expected=expected, version=todo.version)
        if SHARDS and "lock" in options:
            del options["lock"]
        try:
            job: Job[Any] = await task.using(id=id, **options).enqueue(todo)
        except StoreError as error:
            journal.write("refused", id=id, error=type(error).__name__)
            return None
        except RotaError as error:
            if not may_be_refused:
                raise
            journal.write("refused", id=id, error=type(error).__name__)  # a parent that a server lost
            return None
        self._acknowledged(job, expected, version=todo.version, parents=parents or [])
        return job

    def _acknowledged(
        self, job: Job[Any], expected: str, *, version: int = 0, parents: list[str] | None = None
    ) -> None:
        ref = job.ref
        journal.write(
            "acknowledged", job=ref.full_id, run=ref.run, expected=expected, version=version, parents=parents or []
        )
        if expected == "completed":
            self._recent = [*self._recent[-20:], job]

    def _next_id(self) -> str:
        self._made += 1
        return f"{self._name}-{self._made}"

    def _any_task(self) -> Task[Any, Any, Any]:
        return self._chance.choice([work, work, work_alone, work_in_thread, work_in_process])

    def _work(self, **more: Any) -> Work:
        return Work(self._chance.choice(SECONDS), **more)


async def main() -> None:
    """Runs one producer."""
    name, seed, jobs = sys.argv[1:]
    if point := os.environ.get("ROTA_TEST_CRASH_POINT"):
        at_point(point)()
    async with rota:
        await Producer(name, seed, int(jobs)).run()


if __name__ == "__main__":
    asyncio.run(main())
