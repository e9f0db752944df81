"""Runs `rota` commands without importing the package for each: a process that has it loaded, and forks.

Each command is still a process of its own, with its own arguments, environment, folder and descriptors; only the second
that Python needs for the imports is saved. Run as a script, the module is that process; `ForkServer` is its client.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TextIO

import click

TIMEOUT_S: Final = 120
_LENGTH: Final = 4


class ForkServer:
    """A process that waits for commands."""

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        self._socket = ours
        self._process = subprocess.Popen(
            [sys.executable, "-P", __file__, str(theirs.fileno())], pass_fds=[theirs.fileno()], start_new_session=True
        )
        theirs.close()
        ours.settimeout(TIMEOUT_S)

    def run(self, words: Sequence[str], *, folder: Path, environment: Mapping[str, str]) -> tuple[str, str, int]:
        """Runs a command to its end: stdout, stderr, exit code. Its stdin is empty, and no terminal."""
        order = json.dumps({"words": list(words), "folder": str(folder), "environment": dict(environment)}).encode()
        with Path(os.devnull).open() as empty, tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            descriptors = [empty.fileno(), out.fileno(), err.fileno()]
            try:
                socket.send_fds(self._socket, [len(order).to_bytes(_LENGTH)], descriptors)
                self._socket.sendall(order)
                code = int.from_bytes(_receive(self._socket, _LENGTH), signed=True)
            except BaseException:
                # The reply is still to come, and the next command would take it for its own.
                self.close()
                self._start()
                raise
            return _text(out), _text(err), code

    def close(self) -> None:
        """Kills the process and the command that it runs."""
        self._socket.close()
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def _text(file: TextIO) -> str:
    file.seek(0)
    return file.read()


def _receive(connection: socket.socket, length: int) -> bytes:
    received = b""
    while len(received) < length:
        part = connection.recv(length - len(received))
        assert part, "the fork server has ended"
        received += part
    return received


# --- the other side ----------------------------------------------------------------------------------------------


def _serve(connection: socket.socket) -> None:
    while True:
        head, descriptors, _, _ = socket.recv_fds(connection, _LENGTH, 3)
        if not head:
            return
        order = json.loads(_receive(connection, int.from_bytes(head)))
        child = os.fork()
        if child == 0:
            connection.close()
            _become(order, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        connection.sendall(code.to_bytes(_LENGTH, signed=True))


def _become(order: dict[str, Any], descriptors: list[int]) -> None:
    for place, descriptor in enumerate(descriptors):
        os.dup2(descriptor, place)
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    time.tzset()
    sys.argv = ["rota", *order["words"]]
    code: object = 1
    try:
        from rota.cli.main import main

        main()
    except SystemExit as error:
        code = error.code
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 0 if code is None else 1)


#: What commands import when they run.
_LOADED: Final = (
    "redis.asyncio.cluster",
    "redis.asyncio.sentinel",
    "rota.client.rota",
    "rota.monitoring.doctor",
    "rota.embedded.find_or_launch_shared_valkey",
    "rota.worker.app_loader",
    "rota.worker.worker_lifecycle",
)


def _load() -> None:
    from rota.cli.main import COMMANDS, command

    for module in _LOADED:
        importlib.import_module(module)
    for name in COMMANDS:
        command.get_command(click.Context(command), name)


if __name__ == "__main__":
    _load()
    _serve(socket.socket(fileno=int(sys.argv[1])))
