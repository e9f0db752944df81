"""The machine: which process runs on which cores, and what CPU time each has used."""

from __future__ import annotations

import ctypes.util
import os
import platform
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

_CORES = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []

#: The server has the first core, and a single worker process or whoever enqueues has the others. Where there are but
#: two cores, two worker processes have both of them.
SERVER_CORES = _CORES[:1]
CLIENT_CORES = _CORES[1:] or _CORES
ALL_CORES = _CORES
#: What Valkey and Redis are released with. The wheel's Valkey has the allocator of the C library instead, with which a
#: queue costs a third more CPU, and more the more it holds. So it gets this one, where the machine has it.
JEMALLOC = ctypes.util.find_library("jemalloc") or ""


def pinned(cores: Collection[int]) -> Callable[[], None]:
    """What a child process does before it becomes something else, so that it and its children stay on these cores."""

    def pin() -> None:
        if hasattr(os, "sched_setaffinity") and cores:
            os.sched_setaffinity(0, cores)

    return pin


def pin(pid: int, cores: Collection[int]) -> None:
    """Moves a running process."""
    if hasattr(os, "sched_setaffinity") and cores:
        os.sched_setaffinity(pid, cores)


def family(pid: int) -> list[psutil.Process]:
    """A process and everything it started that is alive."""
    with suppress(psutil.NoSuchProcess):
        parent = psutil.Process(pid)
        return [parent, *parent.children(recursive=True)]
    return []


def cpu_of(pids: Iterable[int]) -> float:
    """Seconds of CPU that processes, their living children and those that they have outlived have used."""
    total = 0.0
    for pid in pids:
        for member in family(pid):
            with suppress(psutil.NoSuchProcess):
                times = member.cpu_times()
                total += times.user + times.system + times.children_user + times.children_system
    return total


def fine_cpu_of(pids: Iterable[int]) -> float:
    """The same to the nanosecond, but only of threads that are alive: for processes that do next to nothing."""
    total = 0
    for pid in pids:
        for member in family(pid):
            for path in Path(f"/proc/{member.pid}/task").glob("*/schedstat"):
                with suppress(OSError):
                    total += int(path.read_text().split()[0])
    return total / 1e9


def end(pids: Iterable[int]) -> None:
    """Kills processes and all that they started. Their figures have been taken."""
    for pid in pids:
        for member in family(pid):
            with suppress(psutil.NoSuchProcess):
                member.send_signal(signal.SIGKILL)


def exit_on_terminate() -> None:
    """SIGTERM ends this process as Ctrl-C does: with everything that it started."""

    def leave(number: int, _: object) -> None:
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, leave)


def description() -> dict[str, Any]:
    """What the figures were measured on."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    return {
        "cpu": model,
        "cores": len(_CORES) or os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 2**30),
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
        "python": platform.python_version(),
        "allocator": "jemalloc" if JEMALLOC else "that of the C library",
        "date": time.strftime("%Y-%m-%d"),
    }
