"""Ties a worker's process to the command that started it: killed with no time for a last word, it does not stay alone.

The command holds one end of a pipe, and the worker watches the other: when it closes, the command is gone.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import threading
from collections.abc import Sequence
from typing import Final

#: Names the end that the worker has.
VARIABLE: Final = "ROTA_LIFELINE"


class Lifeline:
    """The command's end."""

    def __init__(self) -> None:
        self._theirs, self._ours = os.pipe()

    def start(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        """Starts a process that stops when this one is gone.

        In a group of its own: Ctrl-C in the terminal reaches this process alone, which passes it on once. Else the
        worker would get it twice, and a second signal means: cancel now.
        """
        environment = {**os.environ, VARIABLE: str(self._theirs)}
        return subprocess.Popen(command, process_group=0, pass_fds=(self._theirs,), env=environment)

    def close(self) -> None:
        """Lets go."""
        os.close(self._theirs)
        os.close(self._ours)


def follow() -> None:
    """Stops this process, as SIGTERM would, when the command that started it is gone; if one did with a lifeline."""
    descriptor = os.environ.pop(VARIABLE, "")
    if not descriptor.isdigit():
        return
    os.set_inheritable(int(descriptor), False)

    def watch() -> None:
        poll = select.poll()
        poll.register(int(descriptor), 0)  # only the end of the pipe is of interest, and is always told
        poll.poll()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="rota-lifeline", daemon=True).start()
