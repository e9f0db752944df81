"""A server process that measures what its event loop waits for, in CPU time, for tests that attack it.

Run as `python -m tests.server.measured_server URL NAMESPACE AUTH`. `GET /measured` returns the measurements since the
previous one.
"""

from __future__ import annotations

import asyncio
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx2
import psutil
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from rota import Rota
from rota.server import create_app
from rota.server.uvicorn_server import serve
from tests.eventually import eventually_sync

#: How often the loop is asked for a turn.
TICK_S: Final = 0.002


class LoopProbe:
    """Asks the event loop for a turn every 2 ms, and notes the CPU time that the process used until it got one.

    The CPU time of the process includes that of its threads while they hold the lock of the interpreter, and the
    garbage collector's. Unlike a duration it does not grow when the machine is busy with other programs.
    """

    def __init__(self) -> None:
        self._longest_s = 0.0
        self._since_s = time.process_time()
        self._ticked = asyncio.Event()

    async def run(self) -> None:
        """Measures until it is cancelled."""
        while True:
            before = time.process_time()
            await asyncio.sleep(TICK_S)
            self._longest_s = max(self._longest_s, time.process_time() - before)
            self._ticked.set()

    async def respond(self, _request: Request) -> Response:
        """Returns the measurements, and starts new ones."""
        self._ticked.clear()
        await self._ticked.wait()  # what ran before this request is in the measurements
        now = time.process_time()
        rss = _max_rss_mib()
        body = {"longest_ms": self._longest_s * 1000, "cpu_ms": (now - self._since_s) * 1000, "max_rss_mib": rss}
        self._longest_s, self._since_s = 0.0, now
        return JSONResponse(body)


def _max_rss_mib() -> float:
    """The most memory that this process has had; `ru_maxrss` is at least that of the process that started it."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")) / 1024


@dataclass(frozen=True, slots=True)
class Measured:
    """What one attack cost the server."""

    longest_ms: float
    cpu_ms: float
    max_rss_mib: float


class MeasuredServer:
    """The process, seen from a test."""

    def __init__(self, url: str, process: psutil.Process, client: httpx2.Client) -> None:
        self.url = url
        self._process = process
        self._client = client

    def measure(self) -> Measured:
        """Returns what was measured since the previous call."""
        return Measured(**self._client.get("/measured").json())

    def wait_for_load(self) -> None:
        """Returns when the server has worked for others: 100 ms of CPU time since the call."""
        before = self._cpu_s
        eventually_sync(lambda: self._cpu_s - before > 0.1)

    def health_check_cpu_ms(self) -> float:
        """CPU time of the process from the request for `/healthz` to its response, on a new connection."""
        before = self._cpu_s
        assert httpx2.get(f"{self.url}/healthz", timeout=60).status_code == 200
        return (self._cpu_s - before) * 1000

    @property
    def _cpu_s(self) -> float:
        times = self._process.cpu_times()
        return times.user + times.system


@contextmanager
def measured_server(url: str, namespace: str, *, auth: str = "none", open_files: int = 0) -> Generator[MeasuredServer]:
    """Starts the process, by default without authentication. `open_files` is its `ulimit -n`."""

    def limit() -> None:
        if open_files:
            resource.setrlimit(resource.RLIMIT_NOFILE, (open_files, open_files))

    command = [sys.executable, "-m", "tests.server.measured_server", url, namespace, auth]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=limit)
    try:
        assert process.stdout is not None
        listening = next(found[0] for line in process.stdout if (found := re.search(r"http://\S+", line)))
        with httpx2.Client(base_url=listening, timeout=60) as client:
            yield MeasuredServer(listening, psutil.Process(process.pid), client)
    finally:
        process.terminate()
        process.communicate(timeout=30)


def main() -> None:
    """Serves until SIGTERM."""
    url, namespace, auth = sys.argv[1:]
    probe = LoopProbe()
    auth_: Any = auth
    app = create_app(Rota(url, namespace=namespace), auth=auth_)
    app.router.routes.insert(0, Route("/measured", probe.respond))
    running: list[asyncio.Task[None]] = []

    def on_listening(address: str) -> None:
        running.append(asyncio.create_task(probe.run()))
        print(address, flush=True)

    os.environ.pop("PYTHONASYNCIODEBUG", None)
    serve(app, host="127.0.0.1", port=0, log_level="warning", on_listening=on_listening)


if __name__ == "__main__":
    main()
