"""The supervisor of the embedded Valkey: a small process that runs it as long as a client uses it.

`rota.embedded.find_or_launch_shared_valkey` runs this file as a script in an isolated interpreter, never as a module:
importing `rota` would cost every embedded server the memory and start-up time of the whole package. So only the
standard library is imported. The names that both sides share (files, locks) are defined here, and that module imports
them.

Four files in `.rota/` carry a lock each. They are `flock` locks, which the kernel releases when the last process that
has the file open ends, for any reason, so a lock is never stale.

    clients.lock     shared: every client;  exclusive: the supervisor, from the last client's exit until the server ends
    start.lock       exclusive: the client that is starting a supervisor
    supervisor.lock  exclusive: the supervisor, until it ends; the file holds its process id
    server.lock      exclusive: the Valkey process itself, which inherits it; the file holds its process id

The last one rules out two servers on the same data. A supervisor that cannot lock it adopts the running server, whose
previous supervisor was killed.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

CLIENTS_LOCK: Final = "clients.lock"
START_LOCK: Final = "start.lock"
SUPERVISOR_LOCK: Final = "supervisor.lock"
SERVER_LOCK: Final = "server.lock"

#: How often the supervisor checks for clients. Valkey itself wakes up ten times a second.
WATCH_S: Final = 0.2
#: How long a server may take to listen, or to end. It listens before it loads its data, so the size does not matter.
SERVER_S: Final = 10.0
#: A client that checks for a supervisor holds its lock for a few microseconds; a new supervisor retries this long.
LOCK_RETRY_S: Final = 1.0
POLL_S: Final = 0.005


class ServerGone(Exception):
    """The server has ended or cannot be started; the message has the reason."""


class Supervisor:
    """Starts or adopts the server of one directory, and stops it when no client is left."""

    def __init__(self, directory: Path, socket_path: Path, linger_s: float) -> None:
        self._directory = directory
        self._socket_path = socket_path
        self._linger_s = linger_s
        # Opened once, so that it remains this server's lock if the directory is removed and created again.
        self._server_lock = open_lock(directory / SERVER_LOCK)
        self._child: subprocess.Popen[bytes] | None = None
        self._is_stopping = False

    def run(self, binary: Path) -> None:
        """Runs until the server has ended. Only a SIGKILL of the supervisor leaves a server behind."""
        signal.signal(signal.SIGTERM, self._on_sigterm)
        try:
            self._start_or_adopt(binary)
            connection = self._connect()
            clients = open_lock(self._directory / CLIENTS_LOCK)
            connection = self._watch(connection, clients)
            self._stop(connection)
        except ServerGone as error:
            log(str(error))
        finally:
            # A child that hangs would be adopted by the next supervisor. Killing it loses nothing: every reply was
            # sent after its fsync.
            if self._child is not None:
                self._child.kill()
                self._child.wait()

    def _on_sigterm(self, *_: object) -> None:
        self._is_stopping = True

    def _start_or_adopt(self, binary: Path) -> None:
        lock = open_lock(self._directory / SERVER_LOCK)
        if try_exclusive(lock):
            command = server_command(binary, self._directory, self._socket_path)
            try:
                self._child = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[lock])
            except OSError as error:
                raise ServerGone(f"{binary} cannot be run: {error}") from error
            write_pid(lock, self._child.pid)
        else:
            log(f"adopting the running server, pid {read_pid(self._directory / SERVER_LOCK)}")
        # From here on only the server holds the lock, so the lock is released when it ends.
        os.close(lock)

    def _connect(self) -> socket.socket:
        deadline = time.monotonic() + SERVER_S
        while not self._server_has_ended():
            connection = socket.socket(socket.AF_UNIX)
            try:
                connection.connect(str(self._socket_path))
            except OSError as error:  # not listening yet
                connection.close()
                if time.monotonic() > deadline:
                    pid = read_pid(self._directory / SERVER_LOCK)
                    raise ServerGone(f"the server, pid {pid}, does not listen on its socket: {error}") from error
                time.sleep(POLL_S)
            else:
                return connection
        raise ServerGone("the server has ended")

    def _watch(self, connection: socket.socket, clients: int) -> socket.socket:
        """Waits until the server is to be stopped. Returns an open connection to it.

        After the last client has left, the lock on `clients` is kept, so that a new client waits for the end of this
        server before it starts the next one.
        """
        socket_id = file_id(self._socket_path)
        idle_since: float | None = None
        while not self._is_stopping:
            if wait_for_close(connection, min(WATCH_S, self._linger_s)):
                connection = self._connect()  # after CLIENT KILL; raises if the server has ended
            if socket_id is None or file_id(self._socket_path) != socket_id:
                log("the socket was removed, so no client can connect: stopping the server")
                return connection
            if not try_exclusive(clients):
                idle_since = None
                continue
            now = time.monotonic()
            if idle_since is None:
                idle_since = now
            if now - idle_since >= self._linger_s:
                return connection
            unlock(clients)
        return connection

    def _stop(self, connection: socket.socket) -> None:
        # NOSAVE concerns snapshots, which are off; the append-only file is flushed in any case. It is also the form
        # that a server accepts while it runs a script.
        with suppress(ConnectionError):  # it has just ended
            connection.sendall(b"SHUTDOWN NOSAVE\r\n")
        if not wait_for(self._server_has_ended, SERVER_S):
            log(f"the server has not ended within {SERVER_S:g} s of SHUTDOWN")
        if self._socket_path.parent != self._directory:
            with suppress(OSError):  # an empty directory in /tmp does no harm, and the next stop removes it
                self._socket_path.parent.rmdir()

    def _server_has_ended(self) -> bool:
        if not try_shared(self._server_lock):
            return False
        unlock(self._server_lock)
        return True


def server_command(binary: Path, directory: Path, socket_path: Path) -> list[str]:
    """Returns the command line of Valkey: it listens on the socket only, and sends every reply after its fsync."""
    settings = {
        "port": "0",
        "unixsocket": str(socket_path),
        "unixsocketperm": "700",
        "dir": str(directory),
        "appendonly": "yes",
        "appendfsync": "always",
        # A SIGKILL or a full disk can leave an incomplete command at the end, which was never acknowledged.
        "aof-load-truncated": "yes",
        "save": "",
        "maxmemory-policy": "noeviction",
        "daemonize": "no",
    }
    return [str(binary), *(word for name, value in settings.items() for word in (f"--{name}", value))]


def open_lock(path: Path) -> int:
    """Opens a lock file. Each descriptor locks separately, even within one process."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def try_exclusive(lock: int) -> bool:
    """Tries to take the lock exclusively. Returns False if another descriptor holds it."""
    import fcntl  # here, because rota.embedded is imported on Windows too

    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def try_shared(lock: int) -> bool:
    """Tries to take the lock shared. Returns False if another descriptor holds it exclusively."""
    import fcntl

    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def unlock(lock: int) -> None:
    """Releases the lock, also for copies of the descriptor made by a fork."""
    import fcntl

    fcntl.flock(lock, fcntl.LOCK_UN)


def is_locked(path: Path) -> bool:
    """Returns whether a process holds the lock exclusively. Creates no file."""
    try:
        lock = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        return not try_shared(lock)
    finally:
        os.close(lock)


def file_id(path: Path) -> tuple[int, int] | None:
    """Returns the identity of a file, which changes if it is replaced; None if there is no file."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def write_pid(lock: int, pid: int) -> None:
    """Writes the holder's process id to the lock file. For messages only: decisions use the lock itself."""
    os.ftruncate(lock, 0)
    os.pwrite(lock, b"%d\n" % pid, 0)


def read_pid(path: Path) -> int | None:
    """Returns the process id of the last holder, or None."""
    try:
        return int(path.read_text())
    except (FileNotFoundError, ValueError):
        return None


def wait_for_close(connection: socket.socket, within_s: float) -> bool:
    """Waits for the server to close the connection. Returns whether it has."""
    connection.settimeout(within_s)
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


def wait_for(condition: Callable[[], bool], timeout_s: float) -> bool:
    """Polls until the condition is true. Returns False after the timeout."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True


def log(text: str) -> None:
    """Writes a line to `.rota/valkey.log`, where this process's output goes."""
    print(f"{os.getpid()}:supervisor {time.strftime('%d %b %Y %H:%M:%S')} {text}", file=sys.stderr, flush=True)


def main(directory: Path, binary: Path, socket_path: Path, linger_s: float) -> None:
    """Starts the supervisor in the background. Returns once it holds its lock."""
    lock = open_lock(directory / SUPERVISOR_LOCK)
    if not wait_for(lambda: try_exclusive(lock), LOCK_RETRY_S):
        log("a supervisor is running already")
        return
    # The foreground process exits at once, so the supervisor is a child of init, not of the program that started it.
    if os.fork():
        return
    write_pid(lock, os.getpid())
    Supervisor(directory, socket_path, linger_s).run(binary)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), float(sys.argv[4]))
