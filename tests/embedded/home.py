"""A directory with an embedded server, and processes that use it; all of it can be killed for real."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, cast

import psutil
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from rota.embedded import EmbeddedServer, running_url
from rota.embedded_guard import CLIENTS_LOCK, GUARD_LOCK, is_locked, open_lock, read_pid, try_exclusive
from tests.eventually import eventually_sync

#: Does what it is told, line by line, so that a test decides the moment.
_CLIENT: Final = """
import os, sys
from pathlib import Path
from rota.embedded import EmbeddedServer

def fork():
    child = os.fork()
    if not child:
        server.release()
        os._exit(0)
    os.waitpid(child, 0)

server = EmbeddedServer(Path(sys.argv[1]))
orders = {"ensure": server.ensure, "release": server.release, "fork": fork}
print("ready", flush=True)
for line in sys.stdin:
    print(orders[line.strip()](), flush=True)
"""


class Client:
    """A process of its own with one `EmbeddedServer`."""

    def __init__(self, directory: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _CLIENT, str(directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.answer() == "ready"

    def tell(self, order: str) -> None:
        """Returns at once; `answer` waits for the end."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{order}\n")
        self._process.stdin.flush()

    def answer(self) -> str:
        """What the oldest unanswered order gave."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def do(self, order: str) -> str:
        """Tells, and waits."""
        self.tell(order)
        return self.answer()

    def exit(self) -> None:
        """An ordinary end, without `release`."""
        self._process.communicate(timeout=10)

    def kill(self) -> None:
        """SIGKILL, and wait. Harmless when it has ended."""
        self._process.kill()
        self._process.communicate()


class Home:
    """A project folder, its `.rota` directory, and all that runs on it."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="rota-", dir="/tmp")).resolve()
        self.directory = self.folder / ".rota"
        self._clients: list[Client] = []
        self._servers: list[EmbeddedServer] = []

    def client(self) -> Client:
        """A started process that has asked for nothing yet."""
        client = Client(self.directory)
        self._clients.append(client)
        return client

    def server(self) -> EmbeddedServer:
        """A share of the test process itself, not taken yet."""
        server = EmbeddedServer(self.directory)
        self._servers.append(server)
        return server

    def redis(self) -> redis.Redis:
        """A connection to what runs now."""
        url = running_url(self.directory)
        assert url is not None, "nothing is running"
        return connect(url)

    def server_pid(self) -> int:
        """As the server itself says."""
        with self.redis() as connection:
            return pid_of(connection)

    def guard_pid(self) -> int:
        """As the guard has written."""
        pid = read_pid(self.directory / GUARD_LOCK)
        assert pid is not None
        return pid

    def has_clients(self) -> bool:
        """Whether a guard that looked now would see somebody; also true for the moment in which one looks."""
        lock = open_lock(self.directory / CLIENTS_LOCK)
        try:
            return not try_exclusive(lock)
        finally:
            os.close(lock)

    def is_stopping(self) -> bool:
        """Whether the guard keeps clients out: not for the moment in which it looks, but for good."""
        return all(is_locked(self.directory / CLIENTS_LOCK) for _ in range(1_000))

    def wait_until_stopped(self) -> None:
        """Until neither server nor guard is left."""
        eventually_sync(lambda: not self._processes())

    def close(self) -> None:
        """Ends every process, and removes the data."""
        for client in self._clients:
            client.kill()
        for server in self._servers:
            server.release()
        for process in self._processes():
            process.kill()
        self.wait_until_stopped()
        shutil.rmtree(self.folder)

    def _processes(self) -> list[psutil.Process]:
        return [process for process in psutil.process_iter() if self._runs_here(process)]

    def _runs_here(self, process: psutil.Process) -> bool:
        try:
            # A directory that was removed is shown with a word behind its name.
            return Path(process.cwd().removesuffix(" (deleted)")).is_relative_to(self.folder)
        except (psutil.NoSuchProcess, psutil.AccessDenied, FileNotFoundError):  # ended, or a zombie, or not ours
            return False


def connect(url: str, timeout: float = 10) -> redis.Redis:
    """A plain client that does not hide failures behind retries."""
    return redis.Redis.from_url(url, socket_timeout=timeout, retry=Retry(NoBackoff(), 0))


def pid_of(connection: redis.Redis) -> int:
    """The process at the other end."""
    info = cast("dict[str, int]", connection.info("server"))
    return info["process_id"]


def is_gone(pid: int) -> bool:
    """True also of a zombie, which an init that reaps nobody leaves for ever."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def kill(*pids: int) -> None:
    """SIGKILL them all, then wait until all are gone."""
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    for pid in pids:
        eventually_sync(lambda pid=pid: is_gone(pid))
