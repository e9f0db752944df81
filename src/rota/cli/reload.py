"""Restarts a worker's process when the code changes: for development."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Final

from rota.cli.lifeline import Lifeline
from rota.cli.output import note
from rota.errors import ConfigurationError

#: How often to look whether the process has ended by itself.
LOOK_EVERY_MS: Final = 200
#: What an editor writes in several steps is one change.
DEBOUNCE_MS: Final = 200
#: Beyond the worker's own grace time, before it is killed.
PATIENCE_S: Final = 5.0
FORWARDED: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_reloading(command: Sequence[str], folder: Path, *, grace: float) -> int:
    """Runs the command until told to stop, or until it ends well; restarts it whenever a .py file changes.

    One that ended badly, most likely for a mistake in the code, is started again by the next change.
    """
    return _Reloader(command, folder, grace).run(_watchfiles())


def has_watchfiles() -> bool:
    """Whether it can be done here."""
    try:
        _watchfiles()
    except ConfigurationError:
        return False
    return True


class _Reloader:
    def __init__(self, command: Sequence[str], folder: Path, grace: float) -> None:
        self._command = command
        self._folder = folder
        self._grace = grace
        self._lifeline = Lifeline()
        self._stopping = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, watchfiles: Any) -> int:
        before = {number: signal.signal(number, self._forward) for number in FORWARDED}
        try:
            process = self._start()
            is_told = False
            for changes in watchfiles.watch(
                self._folder,
                watch_filter=watchfiles.PythonFilter(),
                debounce=DEBOUNCE_MS,
                step=DEBOUNCE_MS // 4,
                rust_timeout=LOOK_EVERY_MS,
                yield_on_timeout=True,
                stop_event=self._stopping,
            ):
                code = process.poll()
                if changes:
                    names = sorted({Path(path).name for _, path in changes})
                    note(f"{', '.join(names[:3])} changed: the worker starts again")
                    self._end(process)
                    if self._stopping.is_set():
                        break
                    process, is_told = self._start(), False
                elif code == 0:
                    return 0
                elif code is not None and not is_told:
                    note(f"the worker ended with code {code}; it starts again with the next change")
                    is_told = True
            return _exit_code(process.wait())
        finally:
            self._lifeline.close()
            for number, handler in before.items():
                signal.signal(number, handler)

    def _start(self) -> subprocess.Popen[bytes]:
        self._process = self._lifeline.start(self._command)
        if self._stopping.is_set():
            self._process.terminate()
        return self._process

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        process.terminate()
        try:
            process.wait(self._grace + PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _forward(self, number: int, frame: FrameType | None) -> None:
        self._stopping.set()
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM if number == signal.SIGHUP else number)


def _exit_code(returned: int) -> int:
    """As a shell has it: a process that a signal killed is 128 and the signal."""
    return returned if returned >= 0 else 128 - returned


def _watchfiles() -> Any:
    try:
        import watchfiles
    except ImportError as error:
        raise ConfigurationError("--reload needs the package watchfiles: pip install 'rota[cli]'") from error
    return watchfiles
