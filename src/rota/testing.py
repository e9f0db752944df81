"""For tests of programs that use Rota: a namespace of their own, and a worker inside the test's process.

The store, the scripts and the worker are the real ones. Only the runner is not a process: handlers run here, so a test
can patch what they use, see their warnings, and stop in them with a debugger.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Iterable
from typing import Any

from rota.client import Rota
from rota.embedded import EmbeddedServer
from rota.worker.config import WorkerConfig
from rota.worker.pool import LogSetup, RunnerProcess
from rota.worker.runner import Runner
from rota.worker.wire import Ears, FromRunner, ToRunner, frame
from rota.worker.worker import Worker

__all__ = ["isolated", "run_jobs", "run_jobs_sync"]


class isolated:  # noqa: N801, it reads as a verb: `with isolated(rota):`
    """Gives a `Rota` a namespace of its own for the length of a `with` or an `async with`, and then deletes it.

    It is on the server at `url`, else on the embedded one, and never on the server that the program is set up for.
    Enqueue inside the block; handles that were made before it speak of the namespace that they were made in.
    """

    def __init__(self, rota: Rota, url: str | None = None) -> None:
        self._rota = rota
        self._url = url
        self._embedded: EmbeddedServer | None = None
        self._before: dict[str, Any] = {}

    def __enter__(self) -> Rota:
        if self._url is None:
            self._embedded = EmbeddedServer()
        self._rota.close_sync()
        before = self._rota.connection()
        self._before = {"url": before["url"], "namespace": before["namespace"]}
        url = self._embedded.ensure() if self._embedded is not None else self._url
        self._rota.move(url=url, namespace=f"test-{secrets.token_hex(8)}")
        return self._rota

    def __exit__(self, *_: object) -> None:
        try:
            self._rota.wait_for(_delete_all(self._rota))
        finally:
            self._return()

    async def __aenter__(self) -> Rota:
        await self._rota.close()
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(self, *_: object) -> None:
        try:
            await _delete_all(self._rota)
            await self._rota.close()
        finally:
            await asyncio.to_thread(self._return)

    def _return(self) -> None:
        self._rota.close_sync()
        self._rota.move(**self._before)
        if self._embedded is not None:
            self._embedded.release()


async def run_jobs(rota: Rota, *, queues: Iterable[str] | None = None, concurrency: int = 10) -> int:
    """Runs the jobs that are due, and those that they enqueue, until none is left; says how many attempts that took.

    Of all queues, unless some are named. A job that waits for its time, as after a failure with a backoff, is not due
    and is left alone. Tasks with `run_in="process"` run in a thread.
    """
    names = set(queues) if queues is not None else {*(task.queue for task in rota.tasks), *await rota.views.queues()}
    config = WorkerConfig(
        app="this program", queues=tuple(sorted(names)) or ("default",), concurrency=concurrency, burst=True, grace=0
    )
    worker = Worker(config, make_runner=lambda kind: _LocalRunner(rota, kind))
    await worker.work()
    return worker.tower.finished


def run_jobs_sync(rota: Rota, *, queues: Iterable[str] | None = None, concurrency: int = 10) -> int:
    """`run_jobs`, for code that is not async."""
    return asyncio.run(run_jobs(rota, queues=queues, concurrency=concurrency))


class _LocalRunner(RunnerProcess):
    """A runner that is a task of this loop, and speaks with the pool as a process would."""

    def __init__(self, rota: Rota, kind: str) -> None:
        super().__init__(kind)
        self._rota = rota
        self._ears: Ears[ToRunner] | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        return os.getpid()

    async def start(self, app: str, ears: Ears[FromRunner], *, measures_lag: bool, log: LogSetup | None) -> None:
        runner = Runner(self._rota, "loop", _LocalMouth(asyncio.get_running_loop(), ears))
        self._task = asyncio.create_task(runner.run(self._listen, measures_lag=False), name="rota-local-runner")
        self._task.add_done_callback(lambda _: ears.connection_lost(None))

    async def _listen(self, ears: Ears[ToRunner]) -> None:
        self._ears = ears
        self.flush()

    def say(self, message: ToRunner) -> None:
        self._outbox.append(message)
        if len(self._outbox) == 1:
            asyncio.get_running_loop().call_soon(self.flush)

    def flush(self) -> None:
        if self._ears is not None and self._outbox:
            messages, self._outbox = self._outbox, []
            self._ears.data_received(frame(messages))

    def kill(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def wait(self) -> int:
        assert self._task is not None
        await asyncio.wait((self._task,))
        if not self._task.cancelled() and (error := self._task.exception()) is not None:
            self.broken = f"{type(error).__name__}: {error}"
            return 1
        return 0


class _LocalMouth:
    """Where such a runner speaks: what it says arrives in the next turn of the loop, from whichever thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, ears: Ears[FromRunner]) -> None:
        self._loop = loop
        self._ears = ears

    def say(self, *messages: FromRunner) -> None:
        """Sends messages, one frame."""
        self._loop.call_soon_threadsafe(self._ears.data_received, frame(messages))


async def _delete_all(rota: Rota) -> None:
    """Every key of the namespace, slice by slice."""
    gateway = rota.store.gateway
    names = await gateway.keys(f"{rota.namespace}:*")
    for start in range(0, len(names), 1_000):
        await gateway.commands([["UNLINK", name] for name in names[start : start + 1_000]])
