"""The interface of a peer, and the process that enqueues for it. Only the standard library is imported: it runs in each
peer's own environment.

A peer is one module of `benchmarks/peers`, named as it is on the command line. It has

- `ABOUT`, a literal: `title`, `guarantee`, `setup` (its configuration in words), `packages` (pinned, for pip);
- tasks `noop`, `nap` and `stamp`, whose handlers call `count_job()`, wait 10 ms and call it, or call `stamp(sent)`;
- `commands(measure, processes)`: the command lines of its worker. Each begins with a program of the environment;
- `enqueue(task, argument)`: stores one job; and perhaps `enqueue_many(task, arguments)`, where there is such a call;
- perhaps `start()` and `stop()`, around everything.

Each of these may be a coroutine function. A peer in JavaScript has the same in `peers/<name>.mjs`; see
`peer_interface.mjs` and `peer_driver.mjs`.

`python -m benchmarks.peer_interface NAME` reads commands from its input, one JSON object per line, and replies in kind.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import mmap
import os
import random
import sys
import threading
import time
from pathlib import Path
from types import ModuleType
from typing import Any

PORT = int(os.environ.get("BENCH_PORT", "0"))
URL = f"redis://127.0.0.1:{PORT}"
#: 100 bytes as JSON, with its quotation marks.
PAYLOAD = "x" * 98
NAP_S = 0.01
TOGETHER = 1_000
CHUNK = 1_000
#: Jobs enqueued in bulk before the clock runs, for clients with a just-in-time compiler.
WARM = 3_000

#: Handlers count in a file that is shared memory, so that counting costs a fraction of a microsecond and no request.
SLOTS = 4096
_lock = threading.Lock()
_cells: memoryview | None = None
_stamps: int | None = None


def _folder() -> Path:
    return Path(os.environ["BENCH_FOLDER"])


def _open() -> memoryview:
    global _cells
    with (_folder() / "job_counters").open("r+b") as file:
        _cells = memoryview(mmap.mmap(file.fileno(), SLOTS * 8)).cast("Q")
    return _cells


def count_job() -> None:
    """Counts one ended handler."""
    cells = _cells or _open()
    with _lock:
        cells[os.getpid() % SLOTS] += 1


def stamp(sent: int, now: int | None = None) -> None:
    """Records how many nanoseconds after `sent` a handler started, by the clock that all processes share."""
    global _stamps
    passed = (now or time.monotonic_ns()) - sent
    if _stamps is None:
        _stamps = os.open(_folder() / "stamps", os.O_WRONLY | os.O_APPEND)
    os.write(_stamps, b"%d\n" % passed)
    count_job()


def counted() -> int:
    """Returns the number of ended handlers in all processes."""
    return sum(_cells or _open())


class Driver:
    """Enqueues as one program would, and measures how long it takes."""

    def __init__(self, peer: ModuleType) -> None:
        self._peer = peer

    async def commands(self, measure: str, processes: int) -> list[list[str]]:
        """The command lines of a worker."""
        return self._peer.commands(measure, processes)

    async def many(self, task: str, jobs: int, seconds: float, argument: Any = PAYLOAD) -> dict[str, float]:
        """Enqueues in bulk, up to so many jobs, in about so much time."""
        if not hasattr(self._peer, "enqueue_many"):
            return await self.each(task, jobs, seconds, argument)
        warm = WARM if jobs > 10 * WARM else 0
        for _ in range(0, warm, CHUNK):
            await _finish(self._peer.enqueue_many(task, [argument] * CHUNK))
        clock = Clock()
        while clock.jobs < jobs - warm and clock.seconds < seconds:
            chunk = min(CHUNK, jobs - warm - clock.jobs)
            await _finish(self._peer.enqueue_many(task, [argument] * chunk))
            clock.jobs += chunk
        return clock.figures(warm)

    async def each(self, task: str, jobs: int, seconds: float, argument: Any = PAYLOAD) -> dict[str, float]:
        """Enqueues one by one, each awaited before the next."""
        for _ in range(20):  # connections, scripts
            await _finish(self._peer.enqueue(task, argument))
        clock = Clock()
        while clock.jobs < jobs and clock.seconds < seconds:
            for _ in range(10):
                await _finish(self._peer.enqueue(task, argument))
            clock.jobs += 10
        return clock.figures(20)

    async def together(self, task: str, seconds: float) -> dict[str, float] | None:
        """Enqueues a thousand jobs by as many calls on one loop at once, again and again."""
        if not inspect.iscoroutinefunction(self._peer.enqueue):
            return None
        await asyncio.gather(*(self._peer.enqueue(task, PAYLOAD) for _ in range(TOGETHER)))  # connections, scripts
        clock = Clock()
        while clock.seconds < seconds:
            await asyncio.gather(*(self._peer.enqueue(task, PAYLOAD) for _ in range(TOGETHER)))
            clock.jobs += TOGETHER
        return clock.figures(TOGETHER)

    async def probe(self, probes: int, seconds: float) -> int:
        """Enqueues single jobs for a worker that has nothing else to do, at no regular distance."""
        deadline = time.monotonic() + seconds
        sent = 0
        while sent < probes and (sent == 0 or time.monotonic() < deadline):
            before = counted()
            await _finish(self._peer.enqueue("stamp", time.monotonic_ns()))
            sent += 1
            patience = time.monotonic() + 15
            while True:
                await asyncio.sleep(random.uniform(0.008, 0.016))
                if counted() > before:
                    break
                if time.monotonic() > patience:
                    raise TimeoutError("no worker has started a job for 15 s")
        return sent

    async def start(self) -> None:
        """Gets ready."""
        if hasattr(self._peer, "start"):
            await _finish(self._peer.start())

    async def stop(self) -> None:
        """Closes connections."""
        if hasattr(self._peer, "stop"):
            await _finish(self._peer.stop())


class Clock:
    """Time by the wall and CPU time of this process, for so many jobs."""

    def __init__(self) -> None:
        self.jobs = 0
        self._began = time.perf_counter()
        self._cpu = time.process_time()

    @property
    def seconds(self) -> float:
        """Since it was made."""
        return time.perf_counter() - self._began

    def figures(self, untimed: int = 0) -> dict[str, float]:
        """For the answer: with the jobs that were enqueued before it was made."""
        return {
            "jobs": self.jobs + untimed,
            "timed": self.jobs,
            "seconds": self.seconds,
            "cpu": time.process_time() - self._cpu,
        }


async def _finish(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


async def _serve(peer: ModuleType) -> None:
    driver = Driver(peer)
    await driver.start()
    while line := await asyncio.to_thread(sys.stdin.readline):
        order = json.loads(line)
        answer = await getattr(driver, order.pop("order"))(**order)
        print(json.dumps({"answer": answer}), flush=True)
    await driver.stop()


if __name__ == "__main__":
    asyncio.run(_serve(importlib.import_module(f"benchmarks.peers.{sys.argv[1]}")))
