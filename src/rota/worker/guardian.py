"""Ends what handlers have started when the supervisor itself is killed, and can do it no more.

The runners die with their supervisor. What their handlers started is in their process groups, and would go on. So a
shell waits at the end of a pipe that only the supervisor holds: it keeps the last list that it was told, and kills
those groups when the pipe closes. It is not a thread of the runner, because a handler may hold the GIL there.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

#: A service manager sends its signals to this process as well; it goes when the supervisor does.
_SCRIPT: Final = """
trap '' TERM INT HUP
while read -r groups; do last=$groups; done
[ -z "$last" ] || kill -s KILL -- $last
"""


class Guardian:
    """One for each worker, started with the first runner. Where there is no shell, there is none."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: int | None = None
        self._has_started = False

    def watch(self, leaders: Iterable[int]) -> None:
        """These groups are to go if the supervisor does."""
        line = " ".join(f"-{pid}" for pid in leaders)
        if line and not self._has_started:
            self._has_started = True
            with suppress(OSError):
                self._start()
        if self._pipe is not None:
            with suppress(OSError):  # somebody killed it
                os.write(self._pipe, f"{line}\n".encode())

    def close(self) -> None:
        """Nothing is left to be watched."""
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
                ["/bin/sh", "-c", _SCRIPT], stdin=its_end, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                start_new_session=True,
            )  # fmt: skip
        except OSError:
            os.close(our_end)
            raise
        finally:
            os.close(its_end)
        self._pipe = our_end
