"""The guard of the embedded server: a small process that runs Valkey for as long as anybody uses it.

`rota.embedded` starts this file as a script, in an isolated interpreter, and never as a module: importing `rota` here
would cost every embedded server the memory and the start-up time of the whole package. So only the standard library is
imported. The names that both sides must agree on (files, locks) live here, and `rota.embedded` imports them.

Four files in `.rota/` carry a lock each. They are `flock` locks: the kernel gives one back when the last process that
has it open is gone, however it went, so none of them is ever stale.

    clients.lock  shared: every client;  exclusive: the guard, from "nobody is left" until the server has ended
    start.lock    exclusive: the client that is starting a guard
    guard.lock    exclusive: the guard, for life; the file holds its process id
    server.lock   exclusive: the Valkey process itself, which inherits it; the file holds its process id

The last one is what makes two servers on the same data impossible. A guard that cannot have it knows that a server has
outlived its guard, and adopts that one.
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
GUARD_LOCK: Final = "guard.lock"
SERVER_LOCK: Final = "server.lock"

#: How often a guard looks whether its clients have left. Valkey itself wakes up ten times a second.
WATCH_S: Final = 0.2
#: How long a server may take to listen, or to end. It listens before it loads its data, so neither depends on size.
SERVER_S: Final = 10.0
#: Clients that look for a guard hold its lock for a few microseconds; a new guard must not mistake one for a rival.
RIVAL_S: Final = 1.0
POLL_S: Final = 0.005


class ServerGone(Exception):
    """There is no server to guard any more; the message says how that came about."""


class Guard:
    """Starts or adopts the server of one directory, and stops it when no client is left."""

    def __init__(self, directory: Path, socket_path: Path, linger_s: float) -> None:
        self._directory = directory
        self._socket_path = socket_path
        self._linger_s = linger_s
        # Opened once, so that it stays this server's lock when somebody removes the directory and a new one is made.
        self._server_lock = open_lock(directory / SERVER_LOCK)
        self._child: subprocess.Popen[bytes] | None = None
        self._is_told_to_stop = False

    def run(self, binary: Path) -> None:
        """Returns when the server has ended. Only a SIGKILL of the guard leaves one behind."""
        signal.signal(signal.SIGTERM, self._on_sigterm)
        try:
            self._start_or_adopt(binary)
            connection = self._connect()
            clients = open_lock(self._directory / CLIENTS_LOCK)
            connection = self._watch(connection, clients)
            self._stop(connection)
        except ServerGone as error:
            note(str(error))
        finally:
            # A child that hung would be adopted by the next guard and hang again. Killing it loses nothing, since
            # every reply was sent after its fsync.
            if self._child is not None:
                self._child.kill()
                self._child.wait()

    def _on_sigterm(self, *_: object) -> None:
        self._is_told_to_stop = True

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
            note(f"adopting the server that outlived its guard, pid {read_pid(self._directory / SERVER_LOCK)}")
        # From here on only the server holds the lock, so that the lock tells when it has ended.
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
        """Returns when the server is to be stopped, with an open connection to it.

        If that is because nobody is left, the lock on `clients` is kept, so that a client which arrives now waits for
        the end of this server before it starts the next one.
        """
        place = file_id(self._socket_path)
        left_alone_since: float | None = None
        while not self._is_told_to_stop:
            if hung_up(connection, min(WATCH_S, self._linger_s)):
                connection = self._connect()  # an operator's CLIENT KILL; if the server has ended, this says so
            if place is None or file_id(self._socket_path) != place:
                note("the socket was removed, so that nobody can reach the server: stopping it")
                return connection
            if not try_exclusive(clients):
                left_alone_since = None
                continue
            now = time.monotonic()
            if left_alone_since is None:
                left_alone_since = now
            if now - left_alone_since >= self._linger_s:
                return connection
            unlock(clients)
        return connection

    def _stop(self, connection: socket.socket) -> None:
        # NOSAVE is about snapshots, of which there are none; the append-only file is written out in any case. It is
        # also the form that a server accepts while a script keeps it busy.
        with suppress(ConnectionError):  # it ended in this very moment
            connection.sendall(b"SHUTDOWN NOSAVE\r\n")
        if not wait_for(self._server_has_ended, SERVER_S):
            note(f"the server has not ended within {SERVER_S:g} s of SHUTDOWN")
        if self._socket_path.parent != self._directory:
            with suppress(OSError):  # an empty directory in /tmp: of no harm, and gone with the next stop
                self._socket_path.parent.rmdir()

    def _server_has_ended(self) -> bool:
        if not try_shared(self._server_lock):
            return False
        unlock(self._server_lock)
        return True


def server_command(binary: Path, directory: Path, socket_path: Path) -> list[str]:
    """How Valkey is run: reachable through the socket alone, and every reply sent after its fsync."""
    settings = {
        "port": "0",
        "unixsocket": str(socket_path),
        "unixsocketperm": "700",
        "dir": str(directory),
        "appendonly": "yes",
        "appendfsync": "always",
        # A SIGKILL or a full disk can leave half a command at the end, which was never acknowledged.
        "aof-load-truncated": "yes",
        "save": "",
        "maxmemory-policy": "noeviction",
        "daemonize": "no",
    }
    return [str(binary), *(word for name, value in settings.items() for word in (f"--{name}", value))]


def open_lock(path: Path) -> int:
    """A file descriptor whose lock is apart from every other one's, also in the same process."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def try_exclusive(lock: int) -> bool:
    """Take the lock for this descriptor alone, if nobody has it."""
    import fcntl  # here, because rota.embedded is imported on Windows too

    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def try_shared(lock: int) -> bool:
    """Take the lock together with others, if nobody has it exclusively."""
    import fcntl

    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def unlock(lock: int) -> None:
    """Give the lock back, also for copies of the descriptor that a fork has made."""
    import fcntl

    fcntl.flock(lock, fcntl.LOCK_UN)


def is_locked(path: Path) -> bool:
    """True while a process holds this lock exclusively. Makes no file."""
    try:
        lock = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        return not try_shared(lock)
    finally:
        os.close(lock)


def file_id(path: Path) -> tuple[int, int] | None:
    """What tells this file from another one of the same name, or None if there is none."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def write_pid(lock: int, pid: int) -> None:
    """Record who holds the lock, for people and for messages; decisions go by the lock itself."""
    os.ftruncate(lock, 0)
    os.pwrite(lock, b"%d\n" % pid, 0)


def read_pid(path: Path) -> int | None:
    """Who last held the lock, or None if nobody ever did."""
    try:
        return int(path.read_text())
    except (FileNotFoundError, ValueError):
        return None


def hung_up(connection: socket.socket, within_s: float) -> bool:
    """Wait for the server to close the connection; False if it has not."""
    connection.settimeout(within_s)
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


def wait_for(claim: Callable[[], bool], timeout_s: float) -> bool:
    """Ask until the claim is true; False if it is not in time."""
    deadline = time.monotonic() + timeout_s
    while not claim():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True


def note(text: str) -> None:
    """One line in `.rota/valkey.log`, where this process's output goes."""
    print(f"{os.getpid()}:guard {time.strftime('%d %b %Y %H:%M:%S')} {text}", file=sys.stderr, flush=True)


def main(directory: Path, binary: Path, socket_path: Path, linger_s: float) -> None:
    """Become the guard in the background. Returns in the foreground, once the guard's lock is held."""
    lock = open_lock(directory / GUARD_LOCK)
    if not wait_for(lambda: try_exclusive(lock), RIVAL_S):
        note("there is a guard already")
        return
    # The program that started us gets its child back at once and never sees the guard, which belongs to init.
    if os.fork():
        return
    write_pid(lock, os.getpid())
    Guard(directory, socket_path, linger_s).run(binary)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), float(sys.argv[4]))
