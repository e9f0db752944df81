"""Processes of the operating system: their descendants, CPU time and memory; killing them."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Final

_TICKS: Final = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_PAGE: Final = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def kill_tree(pid: int) -> None:
    """Kills a process, its group, and all its descendants, also those that have left the group.

    All of them are stopped first, so that none can start another child unnoticed.
    """
    family: list[int] = []
    found = [pid]
    while found:
        for member in found:
            _send(member, signal.SIGSTOP)
        family += found
        found = [member for member in descendants(pid) if member not in family]
    kill_group(pid)
    for member in family:
        _send(member, signal.SIGKILL)


def kill_group(pid: int) -> None:
    """Kills the group that a process leads, also after the process itself has ended."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def descendants(pid: int) -> list[int]:
    """All descendants of a process, where /proc exists (Linux)."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        fields = _stat(entry)
        if fields:
            children.setdefault(int(fields[1]), []).append(int(entry.parent.name))
    found: list[int] = []
    queue = [pid]
    while queue:
        for child in children.get(queue.pop(), ()):
            found.append(child)
            queue.append(child)
    return found


def cpu_seconds(pid: int) -> float:
    """CPU time that a process has used; 0 without /proc."""
    fields = _stat(Path(f"/proc/{pid}/stat"))
    return (int(fields[11]) + int(fields[12])) / _TICKS if fields else 0.0


def rss_bytes(pid: int) -> int:
    """Memory that a process uses; 0 without /proc."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    except (OSError, IndexError, ValueError):
        return 0


def _send(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _stat(path: Path) -> list[str]:
    """Fields of a stat file from the state on: the name before it may contain spaces and brackets."""
    try:
        return path.read_text().rpartition(")")[2].split()
    except OSError:
        return []
