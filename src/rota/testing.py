"""Tools for tests of programs that use Rota: an isolated namespace, and a worker inside the test's process.

The store, the scripts and the worker are the real ones. Only the runner is not a process: handlers run here, so a test
can patch what they use, see their warnings, and stop in them with a debugger.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Iterable
from typing import Any

from rota.client.rota import Rota
from rota.client.session import session_of, sessions_of
from rota.embedded.find_or_launch_shared_valkey import EmbeddedServer
from rota.worker.config import WorkerConfig
from rota.worker.runners.pool import LogSetup, RunnerProcess
from rota.worker.runners.protocol import FrameReader, FromRunner, ToRunner, frame
from rota.worker.runners.runner_process import Runner
from rota.worker.worker_lifecycle import Worker

__all__ = ["isolated", "run_jobs", "run_jobs_sync"]


class isolated:  # noqa: N801, it reads as a verb: `with isolated(rota):`
    """Gives a `Rota` a namespace of its own for the duration of a `with` or `async with` block, and then deletes it.

    It is on the server at `url`, else on the embedded one, and never on the server that the program is configured for.
    Enqueue inside the block: handles from before it belong to the other namespace.
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
        before = sessions_of(self._rota).connection()
        self._before = {"url": before["url"], "namespace": before["namespace"]}
        url = self._embedded.ensure() if self._embedded is not None else self._url
        sessions_of(self._rota).move(url=url, namespace=f"test-{secrets.token_hex(8)}")
        return self._rota

    def __exit__(self, *_: object) -> None:
        try:
            sessions_of(self._rota).run_sync(_delete_all(self._rota))
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
        sessions_of(self._rota).move(**self._before)
        if self._embedded is not None:
            self._embedded.release()


async def run_jobs(rota: Rota, *, queues: Iterable[str] | None = None, concurrency: int = 10) -> int:
    """Runs the due jobs, and those that they enqueue, until none is left. Returns the number of attempts.

    Runs jobs of all queues, unless `queues` names some. A job that is scheduled for later, as after a failure with a
    backoff, is not due. Tasks with `run_in="process"` run in a thread.
    """
    if queues is None:
        queues = [*(task.queue for task in rota.tasks), *await session_of(rota).views.queues()]
    names = set(queues)
    config = WorkerConfig(
        app="this program", queues=tuple(sorted(names)) or ("default",), concurrency=concurrency, burst=True, grace=0
    )
    worker = Worker(config, make_runner=lambda kind: LocalRunner(rota, kind))
    await worker.work()
    return worker.finished


def run_jobs_sync(rota: Rota, *, queues: Iterable[str] | None = None, concurrency: int = 10) -> int:
    """`run_jobs`, for code that is not async."""
    return asyncio.run(run_jobs(rota, queues=queues, concurrency=concurrency))


class LocalRunner(RunnerProcess):
    """A runner that is a task of this loop, with the same protocol as a process."""

    def __init__(self, rota: Rota, kind: str) -> None:
        super().__init__(kind)
        self._rota = rota
        self._runner_reader: FrameReader[ToRunner] | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        return os.getpid()

    async def start(
        self, app: str, reader: FrameReader[FromRunner], *, measures_lag: bool, log: LogSetup | None
    ) -> None:
        runner = Runner(self._rota, _LocalWriter(asyncio.get_running_loop(), reader))
        self._task = asyncio.create_task(runner.run(self._listen, measures_lag=False), name="rota-local-runner")
        self._task.add_done_callback(lambda _: reader.connection_lost(None))

    async def _listen(self, reader: FrameReader[ToRunner]) -> None:
        self._runner_reader = reader
        self.flush()

    def send(self, message: ToRunner) -> None:
        self._outbox.append(message)
        if len(self._outbox) == 1:
            asyncio.get_running_loop().call_soon(self.flush)

    def flush(self) -> None:
        if self._runner_reader is not None and self._outbox:
            messages, self._outbox = self._outbox, []
            self._runner_reader.data_received(frame(messages))

    def kill(self) -> None:
        self.is_kill_requested = True
        if self._task is not None:
            self._task.cancel()

    async def wait(self) -> int:
        assert self._task is not None
        await asyncio.wait((self._task,))
        if not self._task.cancelled() and (error := self._task.exception()) is not None:
            self.failure = f"{type(error).__name__}: {error}"
            return 1
        return 0


class _LocalWriter:
    """Passes a local runner's messages on in the next turn of the loop, from any thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, reader: FrameReader[FromRunner]) -> None:
        self._loop = loop
        self._reader = reader

    def send(self, *messages: FromRunner) -> None:
        """Sends messages as one frame."""
        self._loop.call_soon_threadsafe(self._reader.data_received, frame(messages))


async def _delete_all(rota: Rota) -> None:
    """Deletes every key of the namespace, in slices, and its blobs in the user's own store."""
    external = sessions_of(rota).blobs
    if external is not None:
        await external.remove_all(rota.namespace)
    redis = session_of(rota).store.redis
    names = await redis.keys(f"{rota.namespace}:*")
    for start in range(0, len(names), 1_000):
        await redis.commands([["UNLINK", name] for name in names[start : start + 1_000]])
