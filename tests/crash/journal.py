"""Journals: what producers, handlers and the chaos driver did, written to files and not to the store.

Each process appends JSON lines to a file of its own, one `write` per line, so that a SIGKILL loses no line that was
written. Times are those of the machine's monotonic clock, which all processes share and no fault moves.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

PATTERN: Final = "journal-*.jsonl"


@dataclass(frozen=True, slots=True)
class Entry:
    """One event of one process."""

    at_ns: int
    pid: int
    #: "sent", "acknowledged", "refused" and "cancelled" by producers; "begin" and "end" by handlers; "fault" by the
    #: driver; "final" by the observer at the end.
    kind: str
    data: dict[str, Any] = field(default_factory=dict[str, Any])

    def __getitem__(self, name: str) -> Any:
        return self.data[name]

    def get(self, name: str, default: Any = None) -> Any:
        """A field that the entry may lack."""
        return self.data.get(name, default)


class Journal:
    """Appends to the journal of this process. Opened anew by each process: a fork gets a file of its own."""

    def __init__(self, folder: Path, role: str) -> None:
        self._folder = folder
        self._role = role
        self._pid = -1
        self._file = -1

    def write(self, kind: str, **data: Any) -> int:
        """Appends an entry, and returns its time in ns."""
        pid = os.getpid()
        if pid != self._pid:
            path = self._folder / f"journal-{self._role}-{pid}.jsonl"
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            self._pid = pid
        at = now_ns()
        os.write(self._file, json.dumps([at, pid, kind, data], separators=(",", ":")).encode() + b"\n")
        return at


def now_ns() -> int:
    """The time of journals. A fault that replaces `time.time` leaves it alone."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def read_journals(folder: Path) -> list[Entry]:
    """Returns all entries of a folder in the order of their times."""
    return sorted(_entries(folder.glob(PATTERN)), key=lambda entry: entry.at_ns)


def _entries(files: Iterable[Path]) -> Iterator[Entry]:
    for file in files:
        for line in file.read_bytes().split(b"\n"):
            if line:
                at_ns, pid, kind, data = json.loads(line)
                yield Entry(at_ns, pid, kind, data)
