"""Restarts a worker's process when the code changes, for development."""

from __future__ import annotations

import math
import signal
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from types import FrameType
from typing import Any, Final

from rota.cli.output import note
from rota.cli.parent_watch import ParentWatch
from rota.errors import ConfigurationError
from rota.install_command import install_command

#: Interval of checks whether the process has exited.
POLL_MS: Final = 200
#: Writes within this time count as one change.
DEBOUNCE_MS: Final = 200
#: Wait after the worker's grace period before it is killed: longer than the other steps of a stop may take together.
KILL_AFTER_S: Final = 25.0
#: Wait before a worker that crashed is started again.
RESTART_S: Final = 1.0
#: Exit code of a worker whose application cannot be imported.
WRONG_CONFIGURATION: Final = 6
#: Folders of files that are not the application's.
NOT_APPLICATION: Final = frozenset({"__pycache__", "node_modules", "site-packages"})
FORWARDED: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_reloading(command: Sequence[str], folder: Path, *, grace: float) -> int:
    """Runs the command until a signal arrives or it exits with 0; restarts it when a file of the application changes.

    A command that crashes is restarted. One that reports a wrong configuration, such as a mistake in the code that it
    imports, is restarted by the next change.
    """
    return _Reloader(command, folder, grace).run(_watchfiles())


def has_watchfiles() -> bool:
    """True if the package watchfiles is installed."""
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
        self._parent_watch = ParentWatch()
        self._stopping = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, watchfiles: Any) -> int:
        before = {number: signal.signal(number, self._forward) for number in FORWARDED}
        try:
            process = self._start()
            reported: subprocess.Popen[bytes] | None = None
            restart_at = math.inf
            for changes in watchfiles.watch(
                self._folder,
                watch_filter=is_application_file,
                debounce=DEBOUNCE_MS,
                step=DEBOUNCE_MS // 4,
                rust_timeout=POLL_MS,
                yield_on_timeout=True,
                stop_event=self._stopping,
            ):
                code = process.poll()
                if changes:
                    names = sorted({Path(path).name for _, path in changes})
                    note(f"{', '.join(names[:3])} changed: restarting the worker")
                    self._stop(process)
                    if self._stopping.is_set():
                        break
                    process, restart_at = self._start(), math.inf
                elif code == 0:
                    return 0
                elif code is not None and process is not reported:
                    reported = process
                    if code == WRONG_CONFIGURATION:
                        note(f"the worker exited with code {code}; it restarts after the next change")
                    else:
                        note(f"the worker {_how_it_ended(code)}; it restarts in {RESTART_S:g} s")
                        restart_at = monotonic() + RESTART_S
                elif monotonic() >= restart_at:
                    process, restart_at = self._start(), math.inf
            return _exit_code(process.wait())
        finally:
            self._parent_watch.close()
            for number, handler in before.items():
                signal.signal(number, handler)

    def _start(self) -> subprocess.Popen[bytes]:
        self._process = self._parent_watch.start(self._command)
        if self._stopping.is_set():
            self._process.terminate()
        return self._process

    def _stop(self, process: subprocess.Popen[bytes]) -> None:
        process.terminate()
        try:
            process.wait(self._grace + KILL_AFTER_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _forward(self, number: int, frame: FrameType | None) -> None:
        self._stopping.set()
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM if number == signal.SIGHUP else number)


def is_application_file(change: object, path: str) -> bool:
    """True for a .py file of the application: no test, and not in a virtual environment or a hidden folder."""
    file = Path(path)
    if file.suffix != ".py" or file.name == "conftest.py" or file.name.startswith("test_"):
        return False
    folder = Path.cwd()
    inside = file.relative_to(folder) if file.is_relative_to(folder) else file
    if any(name.startswith(".") or name in NOT_APPLICATION for name in inside.parts[:-1]):
        return False
    return not any((folder / parent / "pyvenv.cfg").is_file() for parent in inside.parents)


def _how_it_ended(code: int) -> str:
    return f"was killed by signal {-code}" if code < 0 else f"exited with code {code}"


def _exit_code(returned: int) -> int:
    """Returns the exit code as a shell reports it: 128 plus the signal for a killed process."""
    return returned if returned >= 0 else 128 - returned


def _watchfiles() -> Any:
    try:
        import watchfiles
    except ImportError as error:
        raise ConfigurationError(f"--reload requires the package watchfiles: {install_command('cli')}") from error
    return watchfiles
