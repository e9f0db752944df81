"""Ends tests that hang, wherever they hang, and the processes that they leave behind. A pytest plugin.

A test that exceeds its timeout is ended in two stages:

1. The signal of pytest-timeout raises in the main thread: the test fails with a traceback, and the run goes on. If the
   exception is swallowed, as in a callback of an event loop, it is raised again every `watchdog_repeat` seconds.
2. `watchdog_grace` seconds after the timeout a watchdog process ends the process of the test. No exception handler,
   blocking call or held GIL can prevent it. pytest-xdist reports the test as failed and goes on with a new worker.

Setup and teardown count, those of shared fixtures included. So does the end of the process after its last test, unless
it is a worker of pytest-xdist, which kills its workers itself.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Final, Protocol

import pytest
import pytest_timeout

from tests import watchdog_process

#: Seconds from a test's timeout to the end of its process.
GRACE_SECONDS: Final = 45
#: Seconds between a timeout's exceptions: longer than a test usually takes to close what it has opened.
REPEAT_SECONDS: Final = 15


class TimeoutSettings(Protocol):
    """The setting of pytest-timeout that is used here; the package has no types."""

    @property
    def timeout(self) -> float | None: ...


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("watchdog_grace", "seconds from a test's timeout to the end of its process", default=GRACE_SECONDS)
    parser.addini("watchdog_repeat", "seconds between a timeout's exceptions", default=REPEAT_SECONDS)


def pytest_configure(config: pytest.Config) -> None:
    runs_tests = hasattr(config, "workerinput") or not config.getoption("numprocesses", None)
    if runs_tests and not config.option.collectonly:
        config.pluginmanager.register(Watchdog(config), "watchdog")


class Watchdog:
    """Starts the watchdog process, and sends it the deadline of each test."""

    def __init__(self, config: pytest.Config) -> None:
        self._grace = float(config.getini("watchdog_grace"))
        self._repeat = float(config.getini("watchdog_repeat"))
        mark = secrets.token_hex(8)
        # Started while pytest does not capture output yet: what the watchdog process prints must be seen.
        self._process = subprocess.Popen(
            [sys.executable, "-P", Path(watchdog_process.__file__), str(os.getpid()), mark],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.environ[watchdog_process.VARIABLE] = f"{os.environ.get(watchdog_process.VARIABLE, '')} {mark}"

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        settings: TimeoutSettings = pytest_timeout._get_item_settings(item)
        if settings.timeout:
            self._set_deadline(settings.timeout + self._grace, f"{item.nodeid} (timeout: {settings.timeout:g} s)")
        result = yield
        self._set_deadline(0)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_timeout_set_timer(self, settings: TimeoutSettings) -> Generator[None, object, object]:
        result = yield
        assert settings.timeout
        signal.setitimer(signal.ITIMER_REAL, settings.timeout, self._repeat)
        return result

    def pytest_enter_pdb(self) -> None:
        self._set_deadline(0)

    def pytest_unconfigure(self, config: pytest.Config) -> None:
        # A thread can still keep the process from ending. The pipe is closed by its end, so the watchdog goes on.
        # A worker of pytest-xdist waits for the end of all others, and then ends or is killed within 10 seconds.
        if not hasattr(config, "workerinput"):
            self._set_deadline(self._grace, "the end of the process")

    def _set_deadline(self, seconds: float, what: str = "") -> None:
        assert self._process.stdin is not None
        os.write(self._process.stdin.fileno(), f"{seconds} {what!a}\n".encode())
