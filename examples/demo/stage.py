"""Where the demo plays: an embedded server in a folder of its own, and two workers, started by the real command."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

from rota.embedded import EmbeddedServer, running_url

ROOT: Final = Path(__file__).parent.parent.parent
WORKERS: Final = ("one", "two")
SLOTS: Final = 8
#: What the workers of a demo that ends get to finish their jobs.
GRACE_S: Final = 2
STOP_S: Final = 15


class Stage:
    """The server and the workers. Everything on it ends with it."""

    def __init__(self) -> None:
        self._folder = Path(mkdtemp(prefix="rota-demo-"))
        self._server = EmbeddedServer(self._folder / ".rota")
        self._workers: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def url(self) -> str:
        """Where the server is."""
        return self._server.url

    def start_worker(self, name: str) -> int:
        """`rota worker`, in a process of its own; it stays in this process's group, so that Ctrl-C reaches it too."""
        words = ["worker", "examples.demo.tasks:rota", "--name", name, "--concurrency", str(SLOTS)]
        with self._log_of(name).open("ab") as log:
            self._workers[name] = subprocess.Popen(
                [sys.executable, "-m", "rota.cli.main", *words, "--grace", str(GRACE_S)],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        return self._workers[name].pid

    def kill_worker(self, name: str) -> None:
        """SIGKILL: no time for a last word."""
        self._workers[name].kill()
        self._workers[name].wait()

    def is_running(self, name: str) -> bool:
        """False once the process has ended."""
        return name in self._workers and self._workers[name].poll() is None

    def complaints(self) -> str:
        """The ends of the workers' logs."""
        logs = {name: self._log_of(name) for name in WORKERS}
        return "\n".join(f"--- worker {name}\n{log.read_text()[-2000:]}" for name, log in logs.items() if log.exists())

    async def open(self) -> None:
        """Starts everything, and points this process and its children to the server."""
        os.environ["ROTA_URL"] = await asyncio.to_thread(self._server.ensure)
        for name in WORKERS:
            self.start_worker(name)

    async def close(self) -> None:
        """Ends everything, and removes the data."""
        for worker in self._workers.values():
            # After a Ctrl-C it is the second signal, which says: now.
            if worker.poll() is None:
                worker.terminate()
        await asyncio.gather(*(asyncio.to_thread(_end, worker) for worker in self._workers.values()))
        self._server.release()
        await asyncio.to_thread(self._wait_until_down)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _wait_until_down(self) -> None:
        deadline = time.monotonic() + STOP_S
        while running_url(self._server.directory) is not None and time.monotonic() < deadline:
            time.sleep(0.05)

    def _log_of(self, name: str) -> Path:
        return self._folder / f"worker-{name}.log"


@asynccontextmanager
async def open_stage() -> AsyncGenerator[Stage, None]:
    """A stage for the length of a block."""
    stage = Stage()
    try:
        await stage.open()
        yield stage
    finally:
        await stage.close()


def _end(worker: subprocess.Popen[bytes]) -> None:
    try:
        worker.wait(STOP_S)
    except subprocess.TimeoutExpired:
        worker.kill()
        worker.wait()
