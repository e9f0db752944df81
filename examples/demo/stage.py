"""The processes of the demo: an embedded server in a temporary folder, two workers, and the HTTP API."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

from rota.embedded.launcher import EmbeddedServer, running_url
from rota.server.uvicorn_server import free_port

ROOT: Final = Path(__file__).parent.parent.parent
WORKERS: Final = ("one", "two")
SLOTS: Final = 8
#: Preferred port of the HTTP API.
PORT: Final = 8080
#: Time for the workers to finish their jobs when the demo ends.
GRACE_S: Final = 2
STOP_S: Final = 15


class Stage:
    """The server, the workers and the HTTP API. `close` ends all of them."""

    def __init__(self) -> None:
        self._folder = Path(mkdtemp(prefix="rota-demo-"))
        self._server = EmbeddedServer(self._folder / ".rota")
        self._workers: dict[str, subprocess.Popen[bytes]] = {}
        self._api: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """URL of the server."""
        return self._server.url

    def start_worker(self, name: str) -> int:
        """Starts `rota worker` in this process's group, so that Ctrl-C reaches it. Returns its process id."""
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

    def start_server(self) -> None:
        """Starts `rota server` on its usual port, or on another one if that is taken; see `address`."""
        words = ["server", "examples.demo.tasks:rota", "--port", str(free_port(PORT))]
        with self._log_of("server").open("ab") as log:
            self._api = subprocess.Popen(
                [sys.executable, "-m", "rota.cli.main", *words],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    @property
    def address(self) -> str | None:
        """Address of the HTTP API; None until it is served."""
        log = self._log_of("server")
        found = re.search(r"listening on (\S+)", log.read_text()) if log.exists() else None
        return found[1] if found else None

    def kill_worker(self, name: str) -> None:
        """Kills a worker with SIGKILL: it cannot report anything."""
        self._workers[name].kill()
        self._workers[name].wait()

    def is_running(self, name: str) -> bool:
        """Returns whether the worker process is running."""
        return name in self._workers and self._workers[name].poll() is None

    def complaints(self) -> str:
        """Returns the ends of all logs."""
        logs = {name: self._log_of(name) for name in (*WORKERS, "server")}
        return "\n".join(f"--- {name}\n{log.read_text()[-2000:]}" for name, log in logs.items() if log.exists())

    async def open(self) -> None:
        """Starts all processes, and sets ROTA_URL for this process and its children."""
        os.environ["ROTA_URL"] = await asyncio.to_thread(self._server.ensure)
        for name in WORKERS:
            self.start_worker(name)
        self.start_server()

    async def close(self) -> None:
        """Ends all processes and removes the data."""
        processes = [*self._workers.values(), *([self._api] if self._api else [])]
        for process in processes:
            # After a Ctrl-C this is the second signal, which stops a worker at once.
            if process.poll() is None:
                process.terminate()
        await asyncio.gather(*(asyncio.to_thread(_end, process) for process in processes))
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
    """Runs the processes for the duration of a block."""
    stage = Stage()
    try:
        await stage.open()
        yield stage
    finally:
        await stage.close()


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
