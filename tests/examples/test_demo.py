"""The demo: one round ends by itself and as expected; Ctrl-C ends it at any time and leaves nothing behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from examples.demo.kinds import KINDS, LAST
from examples.demo.orders import WORKFLOWS
from tests.eventually import eventually_sync
from tests.examples.programs import ROOT

#: It takes 20 s alone on a machine; others may be using it.


@contextmanager
def demo(*options: str, folder: Path) -> Generator[subprocess.Popen[str], None, None]:
    """The demo in a process group of its own, as in a terminal; its temporary files are in `folder`."""
    with subprocess.Popen(
        [sys.executable, "-m", "examples.demo", *options],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        process_group=0,
    ) as process:
        try:
            yield process
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise


def test_one_round_ends_by_itself_and_every_job_as_expected(tmp_path: Path) -> None:
    with demo("--once", folder=tmp_path) as process:
        printed, _ = process.communicate(timeout=120)

    assert process.returncode == 0, printed
    assert re.search(r"^  http://127\.0\.0\.1:\d+$", printed, re.MULTILINE)
    for kind in (*KINDS, *WORKFLOWS, LAST):
        assert any(line.startswith(kind.name) and line.endswith("  ok") for line in printed.splitlines()), printed
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_ends_it_and_leaves_nothing_running(tmp_path: Path) -> None:
    with demo(folder=tmp_path) as process:
        assert process.stdout is not None
        eventually_sync(lambda: len(_processes(tmp_path)) >= 2, timeout=30)
        while " s  " not in process.stdout.readline():
            assert process.poll() is None
        started = {*psutil.Process(process.pid).children(recursive=True), *_processes(tmp_path)}
        assert len(started) >= 6, "two workers with a runner each, the server and its supervisor"

        os.killpg(process.pid, signal.SIGINT)
        printed, _ = process.communicate(timeout=60)

    assert process.returncode == 0, printed
    assert "ended as expected" in printed
    assert "Traceback" not in printed
    eventually_sync(lambda: not any(_is_alive(child) for child in started))
    assert list(tmp_path.iterdir()) == []


def _processes(folder: Path) -> list[psutil.Process]:
    """The embedded server, and its supervisor, which has the folder on its command line."""
    found: list[psutil.Process] = []
    for process in psutil.process_iter(["cmdline"]):
        words: list[str] = process.info["cmdline"] or []
        if any("embedded/valkey_supervisor" in word for word in words) and any(str(folder) in word for word in words):
            with suppress(psutil.NoSuchProcess):  # it puts itself into the background, and the first of the two ends
                found += [process, *process.children()]
    return found


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
