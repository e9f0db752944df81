"""Local processes: each machine is a child process that runs `rota worker`.

Children outlive an autoscaler that was killed: each writes its process id into a folder that the next autoscaler of the
same server and namespace reads. One that is stopped regularly stops its children first.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from rota.autoscaler.machine_provider import MACHINE_VARIABLE, Machine, ProviderError

#: The child writes its process id itself, so that no moment exists in which it runs and cannot be found.
_START: Final = 'echo $$ > "$0.new" && mv "$0.new" "$0" && exec "$@"'
#: A process that has been asked to exit is killed after this long. It has drained, or has never registered.
KILL_AFTER_S: Final = 30.0
POLL_S: Final = 0.05


class LocalProvider:
    """Starts workers as child processes of the autoscaler."""

    name = "local"

    def __init__(self, command: Sequence[str], folder: Path, *, stops_children: bool = True) -> None:
        """`command` starts a worker. `folder` has one file per child; see `folder_for`."""
        self._command = command
        self._folder = folder
        self._stops_children = stops_children
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._asked_to_exit: dict[str, float] = {}

    async def machines(self) -> Sequence[Machine]:
        """Lists the children, also those of an autoscaler that was killed."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for machine_id, child in list(self._children.items()):
            if child.poll() is not None:
                del self._children[machine_id]
                self._forget(machine_id)
        found: list[Machine] = []
        for file in sorted(self._folder.glob("local-*")):
            if file.suffix == ".new":
                continue
            if file.name in self._children or _is_worker(_pid_in(file), file.name):
                found.append(Machine(id=file.name, launched_at=round(file.stat().st_mtime * 1000)))
            else:
                self._forget(file.name)
        known = {machine.id for machine in found}
        found += [Machine(id=one, state="pending") for one in self._children if one not in known]
        return found

    async def launch(self, count: int, token: str) -> Sequence[str]:
        """Starts workers. Those that were started under this token are not started again."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        ids = [f"local-{token}-{number}" for number in range(count)]
        for machine_id in ids:
            file = self._folder / machine_id
            if machine_id in self._children or file.exists():
                continue
            try:
                self._children[machine_id] = subprocess.Popen(  # noqa: ASYNC220  # asyncio's would end with the loop
                    ["/bin/sh", "-c", _START, str(file), *self._command],
                    env={**os.environ, MACHINE_VARIABLE: machine_id},
                    stdin=subprocess.DEVNULL,
                    # Ctrl-C in the terminal reaches only the autoscaler, which stops its children gracefully.
                    start_new_session=True,
                )
            except OSError as error:
                raise ProviderError(f"cannot start {self._command[0]}: {error}") from error
        return ids

    async def terminate(self, machine_id: str) -> None:
        """Asks the process to exit; called again after 30 s, kills it."""
        pid = _pid_in(self._folder / machine_id)
        if not _is_worker(pid, machine_id):
            return
        now = time.monotonic()
        asked_at = self._asked_to_exit.setdefault(machine_id, now)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL if now - asked_at > KILL_AFTER_S else signal.SIGTERM)

    async def protect(self, machine_ids: Collection[str]) -> None:
        """Does nothing: only the autoscaler stops local processes."""

    async def close(self) -> None:
        """Stops its own children gracefully, and waits for them: they finish their jobs within their grace period.

        Those of another autoscaler, which may be the one that plans, are left alone.
        """
        if not self._stops_children:
            return
        for child in self._children.values():
            child.terminate()
        while any(child.poll() is None for child in self._children.values()):  # noqa: ASYNC110  # signals come meanwhile
            await asyncio.sleep(POLL_S)
        await self.machines()  # removes their files

    def _forget(self, machine_id: str) -> None:
        (self._folder / machine_id).unlink(missing_ok=True)
        self._asked_to_exit.pop(machine_id, None)


def folder_for(address: str, namespace: str) -> Path:
    """The folder for the children of one server and namespace, of this user on this host."""
    name = hashlib.sha256(f"{address} {namespace}".encode()).hexdigest()[:16]
    base = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    return Path(base) / f"rota-autoscale-{os.getuid()}" / name


def _pid_in(file: Path) -> int:
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return 0


def _is_worker(pid: int, machine_id: str) -> bool:
    """True if the process runs and is the worker of that machine: process ids are reused."""
    if not pid:
        return False
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except FileNotFoundError:
        if Path("/proc/self").exists():
            return False
        with suppress(ProcessLookupError, PermissionError):  # no /proc: not Linux
            os.kill(pid, 0)
            return True
        return False
    except OSError:
        return False
    return f"{MACHINE_VARIABLE}={machine_id}".encode() in environment.split(b"\0")
