"""Programs and workers in processes of their own, as a user would start them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent.parent
SECONDS: Final = 90


def run_program(*words: str, cwd: Path = ROOT, env: Mapping[str, str] | None = None) -> str:
    """What `python <words>` printed; it must end well, and complain of nothing."""
    ended = subprocess.run(
        [sys.executable, *words],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, ""), f"exit code {ended.returncode}\n{ended.stdout}\n{ended.stderr}"
    return ended.stdout


@contextmanager
def running_worker(
    app: str, *options: str, cwd: Path = ROOT, env: Mapping[str, str] | None = None
) -> Generator[subprocess.Popen[str], None, None]:
    """`rota worker <app>`, which serves its queues; stopped with SIGTERM at the end; it must stop well."""
    worker = subprocess.Popen(
        [sys.executable, "-m", "rota.cli.main", "worker", app, *options],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert worker.stdout is not None
        any(" serves " in line for line in worker.stdout)  # until it is registered, or ends
        yield worker
    finally:
        worker.send_signal(signal.SIGTERM)
        try:
            printed, _ = worker.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            worker.kill()
            raise
    assert worker.returncode == 0, printed
