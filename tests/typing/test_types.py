"""What type checkers say of programs that use Rota: wrong calls are errors, results have the type of their task."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

ROOT: Final = Path(__file__).parents[2]
#: Not `.py`, so that the checks of the repository itself pass over what is wrong on purpose.
CASES: Final = sorted((Path(__file__).parent / "cases").glob("*.txt"))
#: What both say, or `this / that` for what pyright and mypy say; a dash for nothing, a comma between two remarks.
_EXPECTED: Final = re.compile(r"# (?:error|reveals): (.+?)(?: / (.+))?$")


class Said(NamedTuple):
    """One remark of a checker: the kind of error, or the type revealed."""

    line: int
    what: str


def expected(case: Path, checker: str) -> set[Said]:
    """What the comments of the file announce."""
    found: set[Said] = set()
    for number, line in enumerate(case.read_text().splitlines(), 1):
        for pyright, mypy in _EXPECTED.findall(line):
            remarks = mypy if checker == "mypy" and mypy else pyright
            found |= {Said(number, remark) for remark in (re.split(r", (?=report)", remarks))}
    return {said for said in found if said.what != "-"}


def plain(name: str) -> str:
    """A type without the modules that its parts come from: `Job[str]`."""
    return re.sub(r"\b(?:\w+\.)+(?=\w)", "", name)


@pytest.fixture
def program(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    copy = tmp_path / "program.py"
    copy.write_text(request.param.read_text())
    return copy


each_case = pytest.mark.parametrize(
    ("program", "case"), [(case, case) for case in CASES], ids=[case.stem for case in CASES], indirect=["program"]
)


@each_case
def test_pyright_says_what_is_announced_and_nothing_else(program: Path, case: Path) -> None:
    config = {"typeCheckingMode": "strict", "pythonVersion": "3.11", "extraPaths": [str(ROOT / "src")]}
    (program.parent / "pyrightconfig.json").write_text(json.dumps(config))

    said = set(_pyright(program))

    assert said == expected(case, "pyright")


@each_case
def test_mypy_says_what_is_announced_and_nothing_else(program: Path, case: Path) -> None:
    said = set(_mypy(program))

    assert said == expected(case, "mypy")


def test_the_sample_application_can_be_imported(tmp_path: Path) -> None:
    (tmp_path / "sample.py").write_text((Path(__file__).parent / "cases" / "sample_application.txt").read_text())
    ended = subprocess.run(
        [sys.executable, "-c", "import sample; print(len(sample.rota.tasks), len(sample.rota.schedules.declared))"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert (ended.stdout, ended.stderr) == ("10 2\n", "")


def _pyright(program: Path) -> Iterator[Said]:
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, program.name]
    ended = subprocess.run(command, cwd=program.parent, capture_output=True, text=True, timeout=55, check=False)
    assert ended.returncode in (0, 1), ended.stdout + ended.stderr
    for remark in json.loads(ended.stdout)["generalDiagnostics"]:
        revealed = re.match(r'Type of ".*" is "(.*)"$', remark["message"], re.DOTALL)
        what = plain(revealed[1]) if revealed else remark.get("rule", remark["message"])
        yield Said(remark["range"]["start"]["line"] + 1, what)


def _mypy(program: Path) -> Iterator[Said]:
    command = [sys.executable, "-m", "mypy", "--strict", "--python-version", "3.11", "--hide-error-context"]
    ended = subprocess.run(
        [*command, "--no-error-summary", "--cache-dir", str(program.parent / "cache"), program.name],
        cwd=program.parent,
        capture_output=True,
        text=True,
        timeout=55,
        check=False,
    )
    assert ended.returncode in (0, 1), ended.stdout + ended.stderr
    for line in ended.stdout.splitlines():
        remark = re.match(r"program\.py:(\d+): (error|note): (.*)", line)
        assert remark is not None, line
        revealed = re.match(r'Revealed type is "(.*)"$', remark[3])
        # A note may list overloads, whose types end in a bracket too.
        kind = re.search(r"\[([\w-]+)\]$", remark[3]) if remark[2] == "error" else None
        if revealed:
            yield Said(int(remark[1]), plain(revealed[1]))
        elif kind:
            yield Said(int(remark[1]), kind[1])
