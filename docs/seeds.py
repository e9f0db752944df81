"""The table of seed rows: which tests show each behaviour, and what comes later.

A test says in its docstring which rows it shows ("S0-4, S4-24: …"). The docstrings are read from the source, so that
nothing has to be imported, and a test that cannot be read yet is just not in the table.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
TESTS: Final = ROOT / "tests"
_ROW: Final = re.compile(r"\bS[0-4]-\d{1,2}\b")
_SEEDS: Final = {
    "S0": "Seed 0: a list of todo and a list of processing",
    "S1": "Seed 1: parallel workflows of sequential steps",
    "S2": "Seed 2: REST backend, priorities, dependencies, dead letters, scaling, telemetry",
    "S3": "Seed 3: pub/sub wake-ups and conflict locks",
    "S4": "Seed 4: singleton ids, retries, stalls, failure handlers",
}


@dataclass(frozen=True, slots=True)
class Seeds:
    """What docs/seed-rows.toml says."""

    behaviours: dict[str, str]
    later: dict[str, str]
    traps: frozenset[str]

    def must_be_shown(self) -> list[str]:
        """The rows that fall to the engine: each needs a test today."""
        wanted = [row for row in self.behaviours if _is_engine(row)]
        return [row for row in wanted if row not in self.later]


def read_seeds() -> Seeds:
    """The rows, from the file beside this one."""
    with (Path(__file__).parent / "seed-rows.toml").open("rb") as file:
        said = tomllib.load(file)
    return Seeds(said["rows"], said["later"], frozenset(said["traps"]["intent"]))


def find_tests(folder: Path = TESTS) -> dict[str, list[str]]:
    """Row -> node ids of the tests whose docstrings name it, in order."""
    found: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("test_*.py")):
        try:
            module = ast.parse(path.read_text(encoding="utf-8"))
        except (SyntaxError, UnicodeDecodeError):
            continue  # being written just now
        name = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name
        for node, docstring in _docstrings(module, name):
            for row in dict.fromkeys(_ROW.findall(docstring)):
                found.setdefault(row, []).append(node)
    return found


def _docstrings(scope: ast.Module | ast.ClassDef, name: str) -> Iterator[tuple[str, str]]:
    """Node id and docstring of every test, and of the classes that hold or are tests."""
    for statement in scope.body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) and statement.name.startswith("test_"):
            yield f"{name}::{statement.name}", ast.get_docstring(statement) or ""
        elif isinstance(statement, ast.ClassDef):
            inner = f"{name}::{statement.name}"
            yield inner, ast.get_docstring(statement) or ""
            yield from _docstrings(statement, inner)


def missing(seeds: Seeds, tests: dict[str, list[str]]) -> list[str]:
    """Rows of the engine that no test shows."""
    return [row for row in seeds.must_be_shown() if row not in tests]


def table() -> str:
    """The whole table, as Markdown."""
    seeds, tests = read_seeds(), find_tests()
    lines: list[str] = []
    for seed, title in _SEEDS.items():
        lines += ["", f"## {title}", "", "| row | behaviour | shown by |", "|---|---|---|"]
        for row, behaviour in seeds.behaviours.items():
            if row.startswith(seed):
                star = " \\*" if row in seeds.traps else ""
                lines.append(f"| {row}{star} | {behaviour} | {_status(row, seeds, tests.get(row, []))} |")
    return "\n".join(lines).strip()


def _status(row: str, seeds: Seeds, tests: list[str]) -> str:
    parts = [f"`{test.removeprefix('tests/')}`" for test in tests]
    if row in seeds.later:
        parts.append(f"*later: {seeds.later[row]}*")
    return "<br>".join(parts) or "**no test names it yet**"


def _is_engine(row: str) -> bool:
    seed, _, number = row.partition("-")
    return seed in ("S0", "S4") or (seed == "S2" and 9 <= int(number) <= 23)
