"""Every Python block in the documentation runs, and every command line in it exists."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from rota.cli.main import command
from tests.docs.pages import ROOT, Block, blocks, pages
from tests.servers import OwnServers

#: Each page starts several processes, and the machine may be busy.


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def _runnable(page: Path) -> bool:
    return any(not block.reason for block in blocks(page, "python"))


@pytest.mark.parametrize("page", [page for page in pages() if _runnable(page)], ids=_name)
def test_the_python_of_a_page_runs(page: Path, own_server: OwnServers, tmp_path: Path) -> None:
    ended = _run(page, own_server, tmp_path)

    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr}"


def test_a_mistake_on_a_page_is_found_and_its_line_is_shown(own_server: OwnServers, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```python\n# tasks.py\nfrom rota import Rota\nrota = Rota()\n@rota.task\ndef one() -> int:\n  return 1\n```\n"
        "<!-- no-run: it is wrong on purpose -->\n```python\nraise SystemExit(7)\n```\n"
        "```python\nfrom tasks import one\n\nassert await (await one.enqueue()).result(20) == 2\n```\n"
    )

    ended = _run(page, own_server, tmp_path)

    assert ended.returncode == 1
    assert 'page.md", line 16' in ended.stderr
    assert "AssertionError" in ended.stderr


def _run(page: Path, own_server: OwnServers, folder: Path) -> subprocess.CompletedProcess[str]:
    server = own_server(appendonly="yes", appendfsync="always")
    return subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning", "-m", "tests.docs.run_page", str(page), str(folder)],
        cwd=ROOT,
        env={**os.environ, "ROTA_URL": server.url},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


@pytest.mark.parametrize("page", pages(), ids=_name)
def test_a_block_that_is_not_run_says_why(page: Path) -> None:
    for block in blocks(page, "python"):
        assert not block.reason or len(block.reason) > 10, f"line {block.line}: {block.reason!r} is no reason"


def _command_lines(page: Path) -> list[tuple[Block, list[str]]]:
    """Words of the lines in shell blocks that call `rota`."""
    return [
        (block, words)
        for block in blocks(page, "sh")
        for line in block.code.replace("\\\n", " ").splitlines()
        if (words := shlex.split(line, comments=True)) and words[0] == "rota"
    ]


@pytest.mark.parametrize("page", [page for page in pages() if _command_lines(page)], ids=_name)
def test_the_commands_of_a_page_exist(page: Path) -> None:
    for block, words in _command_lines(page):
        found: click.Command = command
        context = click.Context(command, info_name="rota")
        options = {option for parameter in command.params for option in parameter.opts}
        for word in words[1:]:
            if isinstance(found, click.Group) and not word.startswith("-"):
                inner = found.get_command(context, word)
                assert inner is not None, f"line {block.line}: there is no command {' '.join(words)}"
                found, context = inner, click.Context(inner, info_name=word, parent=context)
                options |= {option for parameter in found.params for option in parameter.opts}
            elif word.startswith("--"):
                assert word.partition("=")[0] in options, f"line {block.line}: {' '.join(words)} has no {word}"
