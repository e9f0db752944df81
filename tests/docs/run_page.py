"""Runs the Python blocks of one page: `python -m tests.docs.run_page <page> <folder>`, with the server in ROTA_URL."""

from __future__ import annotations

import ast
import asyncio
import inspect
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.docs.pages import Block, blocks


def write_files(found: list[Block], folder: Path) -> None:
    """Puts the blocks that name a file where they say."""
    for block in found:
        if block.file is not None:
            with (folder / block.file).open("a", encoding="utf-8") as file:
                file.write(block.code + "\n")


@contextmanager
def worker_for(folder: Path) -> Generator[None, None, None]:
    """A worker for the page's tasks.py, where it has one."""
    if not (folder / "tasks.py").exists():
        yield
        return
    worker = subprocess.Popen([sys.executable, "-m", "rota.cli.main", "worker", "tasks:rota", "--grace", "1"])
    try:
        yield
    finally:
        worker.terminate()
        worker.wait(30)


async def run_blocks(found: list[Block], page: Path) -> None:
    """Runs the blocks in one namespace. Errors show the page and its line."""
    namespace: dict[str, Any] = {"__name__": "page"}
    for block in found:
        tree = ast.parse(block.code)
        ast.increment_lineno(tree, block.line - 1)
        code = compile(tree, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        ended = eval(code, namespace)
        if inspect.iscoroutine(ended):
            await ended


def main(page: Path, folder: Path) -> None:
    """Runs the page in that folder."""
    found = [block for block in blocks(page, "python") if not block.reason]
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    write_files(found, folder)
    tests = sorted(str(path) for path in folder.glob("test_*.py"))
    if tests:
        subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests], check=True)
    with worker_for(folder):
        asyncio.run(run_blocks([block for block in found if block.file is None], page))


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
