"""The processes of the demo: an embedded server in a temporary folder, the autoscaler and its workers, the HTTP API."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

from rota.embedded.find_or_launch_shared_valkey import EmbeddedServer, running_url
from rota.server.uvicorn_server import free_port

ROOT: Final = Path(__file__).parent.parent.parent
#: The autoscaler keeps between so many workers, with so many slots each.
MIN_WORKERS: Final = 1
MAX_WORKERS: Final = 3
SLOTS: Final = 4
#: A quick autoscaler, so that workers start and leave within one round.
PACE: Final = ("--interval", "0.5", "--cooldown", "2", "--boot", "1", "--target-wait", "2")
LOGS: Final = ("autoscaler", "server")
#: Preferred port of the HTTP API.
PORT: Final = 8080
#: Time for the workers to finish their jobs when the demo ends.
GRACE_S: Final = 2
STOP_S: Final = 15


class Stage:
    """The server, the autoscaler with its workers, and the HTTP API. `close` ends all of them."""

    def __init__(self) -> None:
        self._folder = Path(mkdtemp(prefix="rota-demo-"))
        self._server = EmbeddedServer(self._folder / ".rota")
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def url(self) -> str:
        """URL of the server."""
        return self._server.url

    def start_autoscaler(self) -> None:
        """Starts `rota autoscale`, which starts and stops workers as its child processes."""
        bounds = ["--min", str(MIN_WORKERS), "--max", str(MAX_WORKERS), "--concurrency", str(SLOTS)]
        words = ["autoscale", "--provider", "local", *bounds, *PACE, "examples.demo.tasks:rota"]
        self._start("autoscaler", *words, "--", "--grace", str(GRACE_S))

    def start_server(self) -> None:
        """Starts `rota server` on its usual port, or on another one if that is taken; see `address`."""
        self._start("server", "server", "examples.demo.tasks:rota", "--port", str(free_port(PORT)))

    def restart_server(self) -> None:
        """Starts it again if it has ended: another process had taken the port that was free."""
        if self._processes["server"].poll() is not None:
            self.start_server()

    def _start(self, name: str, *words: str) -> None:
        """Starts a command in this process's group, so that Ctrl-C reaches it."""
        with self._log_of(name).open("ab") as log:
            self._processes[name] = subprocess.Popen(
                [sys.executable, "-m", "rota.cli.main", *words],
                cwd=ROOT,
                # The autoscaler keeps the process ids of its workers here.
                env={**os.environ, "XDG_RUNTIME_DIR": str(self._folder)},
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

    def complaints(self) -> str:
        """Returns the ends of all logs."""
        logs = {name: self._log_of(name) for name in LOGS}
        return "\n".join(f"--- {name}\n{log.read_text()[-2000:]}" for name, log in logs.items() if log.exists())

    async def open(self) -> None:
        """Starts all processes, and sets ROTA_URL for this process and its children."""
        os.environ["ROTA_URL"] = await asyncio.to_thread(self._server.ensure)
        self.start_autoscaler()
        self.start_server()

    async def close(self) -> None:
        """Ends all processes and removes the data."""
        for process in self._processes.values():
            if process.poll() is None:
                process.terminate()
        await asyncio.gather(*(asyncio.to_thread(_end, process) for process in self._processes.values()))
        self._kill_workers_left()
        self._server.release()
        await asyncio.to_thread(self._wait_until_down)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _kill_workers_left(self) -> None:
        """Kills the workers of an autoscaler that had to be killed. One that ends regularly leaves none."""
        for file in self._folder.glob("rota-autoscale-*/*/local-*"):
            with suppress(ValueError, ProcessLookupError):
                os.kill(int(file.read_text()), signal.SIGKILL)

    def _wait_until_down(self) -> None:
        deadline = time.monotonic() + STOP_S
        while running_url(self._server.directory) is not None and time.monotonic() < deadline:
            time.sleep(0.05)

    def _log_of(self, name: str) -> Path:
        return self._folder / f"{name}.log"


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
