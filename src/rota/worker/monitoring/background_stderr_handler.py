"""A log handler that never blocks its caller for long: a thread of its own writes to stderr."""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from typing import Final

#: Lines of this many bytes wait for stderr at most; further ones are dropped and counted.
MAX_BYTES: Final = 4 * 2**20
#: How long a process that exits waits for its last lines to be written.
FLUSH_S: Final = 1.0


class BackgroundHandler(logging.Handler):
    """Writes lines in a background thread, so that a full stderr pipe cannot block a heartbeat or an event loop.

    With `patience_s`, a caller waits so long for its own line: the last words of a process that crashes are not lost.
    While stderr is not read, callers do not wait. A forked child has no such thread, and writes its lines itself.
    """

    def __init__(self, descriptor: int, *, patience_s: float = 0.0) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._patience_s = patience_s
        self._lines: deque[bytes] = deque()
        self._bytes = 0
        self._dropped = 0
        self._changed = threading.Condition()
        self._is_stuck = False
        self._is_forked = False
        self._thread: threading.Thread | None = None
        os.register_at_fork(after_in_child=self._after_fork)

    def emit(self, record: logging.LogRecord) -> None:
        """Formats the record here, where its context is, and queues the line."""
        try:
            line = (self.format(record) + "\n").encode(errors="backslashreplace")
        except Exception:
            self.handleError(record)
            return
        if self._is_forked:
            self._write(line)
            return
        with self._changed:
            if self._bytes + len(line) > MAX_BYTES:
                self._dropped += 1
                return
            self._lines.append(line)
            self._bytes += len(line)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="rota-log", daemon=True)
                self._thread.start()
            self._changed.notify_all()
        self._wait(self._patience_s)

    def flush(self) -> None:
        """Waits a moment until all lines have been written. `logging` calls this when the process exits."""
        self._wait(FLUSH_S)

    def _wait(self, seconds: float) -> None:
        with self._changed:
            if seconds and not self._is_stuck:
                self._is_stuck = not self._changed.wait_for(lambda: not self._bytes, seconds)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._lines or self._dropped)
                lines = list(self._lines)
                self._lines.clear()
                if self._dropped:
                    lines.append(self._dropped_line())
                    self._dropped = 0
            for line in lines:
                self._write(line)
            with self._changed:
                # Until now they count as waiting: while a write blocks, the bound holds.
                self._bytes = sum(map(len, self._lines))
                self._is_stuck = False
                self._changed.notify_all()

    def _write(self, line: bytes) -> None:
        data = memoryview(line)
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError:
            pass  # the reader is gone: there is no other place for the line

    def _dropped_line(self) -> bytes:
        message = f"{self._dropped} log lines were dropped: stderr was not read"
        record = logging.LogRecord("rota.worker", logging.WARNING, __file__, 0, message, None, None)
        return (self.format(record) + "\n").encode(errors="backslashreplace")

    def _after_fork(self) -> None:
        self._is_forked, self._changed = True, threading.Condition()
