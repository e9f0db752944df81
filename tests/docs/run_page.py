"""Runs the Python blocks of one page: `python -m tests.docs.run_page <page> <folder>`, with the server in ROTA_URL."""

from __future__ import annotations

import ast
import asyncio
import inspect
import os
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.docs.pages import Block, blocks

#: Shorter than the timeout of a test.
TIMEOUT_S: Final = 120


def write_file(block: Block, folder: Path) -> None:
    """Adds a block to the file that it names."""
    assert block.file is not None
    path = folder / block.file
    path.parent.mkdir(exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(block.code + "\n")


@contextmanager
def worker_for(folder: Path) -> Generator[None, None, None]:
    """A worker for the page's tasks, where it has any."""
    modules = [module for module in ("tasks", "shop.tasks") if (folder / f"{module.replace('.', '/')}.py").exists()]
    if not modules:
        yield
        return
    words = [sys.executable, "-m", "rota.cli.main", "worker", f"{modules[0]}:rota", "--grace", "1"]
    worker = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    has_started = threading.Event()
    threading.Thread(target=_read_log, args=(worker, has_started), daemon=True).start()
    try:
        if not has_started.wait(TIMEOUT_S):
            raise TimeoutError("the worker of the page does not start")
        yield
    finally:
        worker.terminate()
        worker.wait(30)


def _read_log(worker: subprocess.Popen[str], has_started: threading.Event) -> None:
    """Copies the log of a worker. A reader goes on when it says that the worker runs."""
    assert worker.stderr is not None
    for line in worker.stderr:
        print(line, end="", file=sys.stderr, flush=True)
        if " serves " in line:
            has_started.set()


async def run_blocks(found: list[Block], page: Path) -> None:
    """Runs the blocks in one namespace. Errors show the page and its line."""
    namespace: dict[str, Any] = {"__name__": "page"}
    for block in found:
        await run_block(block, page, namespace)


async def run_block(block: Block, page: Path, namespace: dict[str, Any]) -> None:
    """Runs one block. Errors show the page and its line."""
    tree = ast.parse(block.code)
    ast.increment_lineno(tree, block.line - 1)
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "timeout" and isinstance(node.value, ast.Constant):
            _lengthen(node.value)
    code = compile(tree, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    ended = eval(code, namespace)
    if inspect.iscoroutine(ended):
        await ended


def _lengthen(timeout: ast.Constant) -> None:
    """Raises a timeout of seconds: a page shows one that suits a user, and a busy machine needs a longer one."""
    if isinstance(timeout.value, int | float) and timeout.value >= 5:
        timeout.value = max(timeout.value, TIMEOUT_S)


def main(page: Path, folder: Path) -> None:
    """Runs the page in that folder."""
    found = [block for block in blocks(page, "python") if not block.reason]
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    for block in found:
        if block.file is not None:
            write_file(block, folder)
    tests = sorted(str(path) for path in folder.glob("test_*.py"))
    if tests:
        subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests], check=True)
    with worker_for(folder):
        asyncio.run(run_blocks([block for block in found if block.file is None], page))


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
