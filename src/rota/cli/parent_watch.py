"""Ends a worker's process when its parent process, the command that started it, has exited, even if it was killed.

The command holds one end of a pipe and the worker watches the other, which closes when the command exits.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import threading
from collections.abc import Sequence
from typing import Final

#: Environment variable with the worker's end of the pipe.
VARIABLE: Final = "ROTA_PARENT_PIPE"


class ParentWatch:
    """The command's end of the pipe."""

    def __init__(self) -> None:
        self._theirs, self._ours = os.pipe()

    def start(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        """Starts a process that stops when this one exits.

        It has its own process group: Ctrl-C in the terminal reaches only this process, which forwards it once.
        Otherwise the worker would receive it twice, and a second signal cancels running handlers.
        """
        environment = {**os.environ, VARIABLE: str(self._theirs)}
        return subprocess.Popen(command, process_group=0, pass_fds=(self._theirs,), env=environment)

    def close(self) -> None:
        """Closes the pipe."""
        os.close(self._theirs)
        os.close(self._ours)


def follow() -> None:
    """Sends SIGTERM to this process when the command that started it exits. Does nothing without such a command."""
    descriptor = os.environ.pop(VARIABLE, "")
    if not descriptor.isdigit():
        return
    os.set_inheritable(int(descriptor), False)

    def watch() -> None:
        poll = select.poll()
        poll.register(int(descriptor), 0)  # POLLHUP is always reported
        poll.poll()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="rota-parent-watch", daemon=True).start()
