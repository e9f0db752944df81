"""A directory with an embedded server, and client processes; each process can be killed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final, cast

import psutil
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from rota.embedded.find_or_launch_shared_valkey import EmbeddedServer, running_url
from rota.embedded.valkey_supervisor import CLIENTS_LOCK, SUPERVISOR_LOCK, is_locked, open_lock, read_pid, try_exclusive
from tests.eventually import eventually_sync

#: Runs one command per input line, so that a test controls the timing.
_CLIENT: Final = """
import os, sys
from pathlib import Path
from rota.embedded.find_or_launch_shared_valkey import EmbeddedServer

def fork():
    child = os.fork()
    if not child:
        server.release()
        os._exit(0)
    os.waitpid(child, 0)

server = EmbeddedServer(Path(sys.argv[1]))
commands = {"ensure": server.ensure, "release": server.release, "fork": fork}
print("ready", flush=True)
for line in sys.stdin:
    print(commands[line.strip()](), flush=True)
"""


class Client:
    """A client process with one `EmbeddedServer`."""

    def __init__(self, directory: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _CLIENT, str(directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.answer() == "ready"

    def send(self, command: str) -> None:
        """Sends a command. `answer` waits for its result."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()

    def answer(self) -> str:
        """Returns the result of the oldest pending command."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def do(self, command: str) -> str:
        """Sends a command and returns its result."""
        self.send(command)
        return self.answer()

    def exit(self) -> None:
        """Ends the process normally, without `release`."""
        self._process.communicate(timeout=10)

    def kill(self) -> None:
        """Kills the process and waits. Harmless if it has ended."""
        self._process.kill()
        self._process.communicate()


class Home:
    """A project folder, its `.rota` directory, and the processes that use it."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="rota-", dir="/tmp")).resolve()
        self.directory = self.folder / ".rota"
        self._clients: list[Client] = []
        self._servers: list[EmbeddedServer] = []

    def client(self) -> Client:
        """Returns a running client process that has not used the server yet."""
        client = Client(self.directory)
        self._clients.append(client)
        return client

    def server(self) -> EmbeddedServer:
        """Returns a client in the test process itself, not connected yet."""
        server = EmbeddedServer(self.directory)
        self._servers.append(server)
        return server

    def redis(self) -> redis.Redis:
        """Returns a connection to the running server."""
        url = running_url(self.directory)
        assert url is not None, "nothing is running"
        return connect(url)

    def server_pid(self) -> int:
        """Returns the pid reported by the server."""
        with self.redis() as connection:
            return pid_of(connection)

    def supervisor_pid(self) -> int:
        """Returns the pid written by the supervisor."""
        pid = read_pid(self.directory / SUPERVISOR_LOCK)
        assert pid is not None
        return pid

    def has_clients(self) -> bool:
        """Returns whether a supervisor would find a client; also true while one checks."""
        lock = open_lock(self.directory / CLIENTS_LOCK)
        try:
            return not try_exclusive(lock)
        finally:
            os.close(lock)

    def is_stopping(self) -> bool:
        """Returns whether the supervisor is stopping the server, rather than just checking for clients."""
        return all(is_locked(self.directory / CLIENTS_LOCK) for _ in range(1_000))

    def wait_until_stopped(self) -> None:
        """Waits until server and supervisor have ended."""
        eventually_sync(lambda: not self._processes())

    def close(self) -> None:
        """Ends every process and removes the data."""
        for client in self._clients:
            client.kill()
        for server in self._servers:
            server.release()
        for process in self._processes():
            with suppress(psutil.NoSuchProcess):  # it was about to end by itself
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
    """True also for a zombie: an init process that does not reap leaves it permanently."""
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
