"""Follows a page word for word, as a reader would: `python -m tests.newcomer.follow_page <page> <folder>`.

Uses the interpreter and the `rota` command of the environment that it runs in, and no configuration: the embedded
server, `rota dev` in the background, commands and Python blocks in the order of the page. After a block that changes a
file, Python starts again, because a session does not import a module twice.

A command that names an example id is given the id of the last `job`; `rota top` is interrupted after its first screen.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Final

from tests.docs.pages import Block, blocks
from tests.docs.run_page import run_block, write_file

EXAMPLE_ID: Final = re.compile(r"default:\d{9}-\w{8}")
#: Commands that run until they are interrupted.
ENDLESS: Final = ("rota top",)
TIMEOUT_S: Final = 120


class Dev:
    """`rota dev` in the background. A reader goes on when it says that its worker runs."""

    def __init__(self) -> None:
        rota = Path(sys.executable).parent / "rota"
        self._process = subprocess.Popen([rota, "dev"], stderr=subprocess.PIPE, text=True)
        self._workers = threading.Semaphore(0)
        threading.Thread(target=self._read, daemon=True).start()

    def wait_for_worker(self) -> None:
        """Waits until a worker has started, for the first time or again. Raises TimeoutError."""
        if not self._workers.acquire(timeout=TIMEOUT_S):
            raise TimeoutError("rota dev starts no worker")

    def stop(self) -> None:
        """Ends it as Ctrl-C does."""
        self._process.send_signal(signal.SIGINT)
        self._process.wait(TIMEOUT_S)

    def _read(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            print(f"rota dev: {line}", end="", file=sys.stderr, flush=True)
            if " serves " in line:
                self._workers.release()


def follow(page: Path, folder: Path) -> None:
    """Follows the page in that folder."""
    os.chdir(folder)
    dev: Dev | None = None
    session: list[Block] = []
    try:
        for block in (block for block in blocks(page) if not block.reason):
            if block.file is not None:
                _run_session(page, session)
                session = []
                write_file(block, folder)
                if dev is not None:
                    dev.wait_for_worker()
            elif block.code.startswith("rota dev"):
                dev = Dev()
                dev.wait_for_worker()
            elif "pip install" not in block.code and "python -m asyncio" not in block.code:
                session.append(block)
        _run_session(page, session)
    finally:
        if dev is not None:
            dev.stop()


def _run_session(page: Path, session: list[Block]) -> None:
    if session:
        found = json.dumps([[block.language, block.code, block.line] for block in session])
        words = [sys.executable, "-m", "tests.newcomer.follow_page", "--session", str(page)]
        subprocess.run(words, input=found, text=True, check=True, timeout=TIMEOUT_S)


async def run_session(page: Path, session: list[Block]) -> None:
    """Runs the blocks of one Python session, and the commands between them."""
    namespace: dict[str, Any] = {"__name__": "page"}
    for block in session:
        if block.language == "python":
            await run_block(block, page, namespace)
            continue
        for line in filter(None, map(str.strip, block.code.splitlines())):
            await asyncio.to_thread(run_command, line, namespace.get("job"))


def run_command(line: str, job: Any) -> None:
    """Runs a command of the page. Raises CalledProcessError."""
    print(f"$ {line}", flush=True)
    if job is not None:
        line = EXAMPLE_ID.sub(job.id, line)
    if line.startswith(ENDLESS):
        with subprocess.Popen(shlex.split(line, comments=True), stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline(), f"{line} prints nothing"
            process.send_signal(signal.SIGINT)
        return
    subprocess.run(line, shell=True, check=True, timeout=TIMEOUT_S)


if __name__ == "__main__":
    if sys.argv[1] == "--session":
        sys.path.insert(0, str(Path.cwd()))
        given = [Block(language, code, line, "") for language, code, line in json.load(sys.stdin)]
        asyncio.run(run_session(Path(sys.argv[2]), given))
    else:
        follow(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
