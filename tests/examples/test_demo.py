"""The demo: one round on autoscaled workers ends by itself and as expected; Ctrl-C leaves nothing behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import psutil

from examples.demo.kinds import KINDS, LAST
from examples.demo.orders import WORKFLOWS
from tests.eventually import eventually_sync
from tests.examples.programs import ROOT

#: It takes 20 s alone on a machine; others may be using it.
SECONDS: Final = 120
DEMO: Final = ("-m", "examples.demo")
#: The demo with an autoscaler that keeps a worker for an hour after it was needed.
KEEPS_WORKERS: Final = """
import sys
from examples.demo import __main__ as demo, stage
stage.PACE = (*stage.PACE, "--cooldown", "3600")
demo.LEAVE_S = 0.1
sys.exit(demo.main())
"""


@contextmanager
def demo(*words: str, folder: Path) -> Generator[subprocess.Popen[str], None, None]:
    """The demo in a process group of its own, as in a terminal; its temporary files are in `folder`."""
    with subprocess.Popen(
        [sys.executable, *words],
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
            with suppress(psutil.NoSuchProcess):
                for child in psutil.Process(process.pid).children(recursive=True):  # workers have sessions of their own
                    child.kill()
            os.killpg(process.pid, signal.SIGKILL)
            raise


def test_one_round_ends_by_itself_and_every_job_as_expected_on_autoscaled_workers(tmp_path: Path) -> None:
    with demo(*DEMO, "--once", folder=tmp_path) as process:
        printed, _ = process.communicate(timeout=SECONDS)

    assert process.returncode == 0, printed
    assert re.search(r"^  http://127\.0\.0\.1:\d+$", printed, re.MULTILINE)
    kinds = (*KINDS, *WORKFLOWS, LAST)
    for kind in kinds:
        assert any(line.startswith(kind.name) and line.endswith("  ok") for line in printed.splitlines()), printed
    assert f"{len(kinds)} of {len(kinds)} ended as expected" in printed.splitlines()[-1]

    assert re.search(r"the autoscaler starts \d workers?: [1-9]\d* jobs wait", printed), printed
    assert re.search(r"worker \d+ has drained and leaves", printed), printed
    found = re.search(r"^autoscaler: (\d+) workers started, (\d+) left drained$", printed, re.MULTILINE)
    assert found, printed
    assert int(found[1]) >= 2, printed
    assert int(found[2]) >= 1, printed
    assert list(tmp_path.iterdir()) == []


def test_a_round_in_which_no_worker_leaves_fails(tmp_path: Path) -> None:
    with demo("-c", KEEPS_WORKERS, "--once", folder=tmp_path) as process:
        printed, _ = process.communicate(timeout=SECONDS)

    assert process.returncode == 1, printed
    assert "NOT OK: no worker has drained" in printed
    assert "Queue Length: " in printed, "the log of the autoscaler"
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_ends_it_and_leaves_nothing_running(tmp_path: Path) -> None:
    with demo(*DEMO, folder=tmp_path) as process:
        assert process.stdout is not None
        eventually_sync(lambda: len(_processes(tmp_path)) >= 2, timeout=30)
        while " completed" not in process.stdout.readline():
            assert process.poll() is None
        started = {*psutil.Process(process.pid).children(recursive=True), *_processes(tmp_path)}
        assert len(started) >= 6, "the autoscaler, a worker, its runner, the HTTP API, the server and its supervisor"

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
