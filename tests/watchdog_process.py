"""The watchdog process of one process of tests: ends it after its deadline, and cleans up after it.

A hanging process gets SIGABRT, so that faulthandler prints the stack of each thread, then SIGKILL.

However the process ends, the processes that descend from it are killed. They are found by a variable of their
environment, because one whose parent is gone cannot be found by its parent.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from typing import Final

import psutil

#: Seconds for printing stacks, and for descendants to end by themselves.
LAST_SECONDS: Final = 5
VARIABLE: Final = "ROTA_TEST_PROCESSES"


def watch(pid: int, mark: str) -> None:
    """Reads deadlines from stdin until process `pid` ends: a line each, seconds from now and what runs. 0 is none."""
    deadline, what, rest = 0.0, "", b""
    while True:
        ready, _, _ = select.select([0], [], [], max(0.0, deadline - time.monotonic()) if deadline else None)
        if not ready:
            end(pid, what)
            break
        received = os.read(0, 65_536)
        if not received:
            break
        *lines, rest = (rest + received).split(b"\n")
        if lines:
            seconds, _, what = lines[-1].decode().partition(" ")
            deadline = time.monotonic() + float(seconds) if float(seconds) else 0.0
    end_descendants(mark)


def end(pid: int, what: str) -> None:
    """Ends the process, with the stacks of its threads on its stderr."""
    print(f"\nwatchdog: ending process {pid}, which hangs in {what}", file=sys.stderr, flush=True)
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        process.send_signal(signal.SIGABRT)
        try:
            process.wait(LAST_SECONDS)
        except psutil.TimeoutExpired:
            process.kill()


def end_descendants(mark: str) -> None:
    """Kills every process with `mark` in its environment, after a moment to notice the end of its parent."""
    marked = find_descendants(mark)
    if marked:
        psutil.wait_procs(marked, LAST_SECONDS)
        for process in find_descendants(mark):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()


def find_descendants(mark: str) -> list[psutil.Process]:
    """Returns the processes with `mark` in their environment."""
    return [process for process in psutil.process_iter() if mark in _variable_of(process)]


def _variable_of(process: psutil.Process) -> str:
    try:
        return process.environ().get(VARIABLE, "")
    except (psutil.Error, OSError):  # it is gone, or belongs to another user
        return ""


if __name__ == "__main__":
    watch(int(sys.argv[1]), sys.argv[2])
