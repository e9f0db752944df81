"""Kills the processes that handlers have started when the supervisor itself is killed.

The runners die with their supervisor. The processes that their handlers started are in their process groups, and would
go on. So a shell reads from a pipe that only the supervisor holds: it keeps the last list of groups that it got, and
kills those groups when the pipe closes. It is not a thread of the runner, because a handler may hold the GIL there.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

#: Ignores the signals that a service manager sends to every process; it ends when the supervisor does.
_SCRIPT: Final = """
trap '' TERM INT HUP
while read -r groups; do last=$groups; done
[ -z "$last" ] || kill -s KILL -- $last
"""


class OrphanKiller:
    """One per worker, started with the first runner. Without a shell on the system it does nothing."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: int | None = None
        self._has_started = False

    def watch(self, leaders: Iterable[int]) -> None:
        """Sets the process groups to kill, by their leaders."""
        line = " ".join(f"-{pid}" for pid in leaders)
        if line and not self._has_started:
            self._has_started = True
            with suppress(OSError):
                self._start()
        if self._pipe is not None:
            with suppress(OSError):  # the shell was killed
                os.write(self._pipe, f"{line}\n".encode())

    def close(self) -> None:
        """Ends the shell without killing anything."""
        self.watch(())
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None
        if self._process is not None:
            self._process.wait()
            self._process = None

    def _start(self) -> None:
        its_end, our_end = os.pipe()
        try:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _SCRIPT],
                stdin=its_end,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError:
            os.close(our_end)
            raise
        finally:
            os.close(its_end)
        self._pipe = our_end
