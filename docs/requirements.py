"""The table of requirements, and the tests that verify each.

A test names its requirements with `@pytest.mark.requirement("S0-4", "S4-24")`. The markers are read from the source, so
no test module is imported.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
TESTS: Final = ROOT / "tests"
SOURCE: Final = ROOT / "docs" / "contributing" / "requirements.toml"
_SECTIONS: Final = {
    "S0": "S0: a list of waiting jobs and a list of running jobs",
    "S1": "S1: parallel workflows of sequential steps",
    "S2": "S2: REST backend, priorities, dependencies, dead letters, scaling, telemetry",
    "S3": "S3: pub/sub wake-ups and conflict locks",
    "S4": "S4: singleton ids, retries, stalls, failure handlers",
    "K": "K: Kue",
    "Q": "Q: Queasy",
    "D": "D: Disque",
}


@dataclass(frozen=True, slots=True)
class Requirements:
    """The content of docs/contributing/requirements.toml."""

    behaviours: dict[str, str]
    planned: dict[str, str]
    adapted: frozenset[str]
    differences: dict[str, str]

    def untested(self, tests: dict[str, list[str]]) -> list[str]:
        """Returns the requirements of the engine that no test verifies."""
        engine = (code for code in self.behaviours if _is_engine(code))
        return [code for code in engine if code not in self.planned and code not in tests]


def read_requirements() -> Requirements:
    """Reads the requirements from their file."""
    with SOURCE.open("rb") as file:
        content = tomllib.load(file)
    return Requirements(
        content["requirements"],
        content["planned"],
        frozenset(content["adapted"]["requirements"]),
        content["differences"],
    )


def find_tests(folder: Path = TESTS) -> dict[str, list[str]]:
    """Maps each requirement to the node ids of the tests marked with it, in order."""
    found: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("test_*.py")):
        try:
            module = ast.parse(path.read_text(encoding="utf-8"))
        except (SyntaxError, UnicodeDecodeError):
            continue  # a file that is being edited
        name = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name
        for node, codes in _marked(module, name):
            for code in codes:
                found.setdefault(code, []).append(node)
    return found


def _marked(scope: ast.Module | ast.ClassDef, name: str) -> Iterator[tuple[str, list[str]]]:
    """Yields the node id and the requirements of each test and test class."""
    for statement in scope.body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) and statement.name.startswith("test_"):
            yield f"{name}::{statement.name}", _codes(statement)
        elif isinstance(statement, ast.ClassDef):
            inner = f"{name}::{statement.name}"
            yield inner, _codes(statement)
            yield from _marked(statement, inner)


def _codes(statement: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> list[str]:
    codes = (
        argument.value
        for marker in statement.decorator_list
        if isinstance(marker, ast.Call) and ast.unparse(marker.func) == "pytest.mark.requirement"
        for argument in marker.args
        if isinstance(argument, ast.Constant)
    )
    return [str(code) for code in dict.fromkeys(codes)]


def table() -> str:
    """Returns the table of all requirements, as Markdown."""
    requirements, tests = read_requirements(), find_tests()
    lines: list[str] = []
    for section, title in _SECTIONS.items():
        lines += ["", f"## {title}", "", "| requirement | behaviour | verified by |", "|---|---|---|"]
        for code, behaviour in requirements.behaviours.items():
            if code.partition("-")[0] == section:
                star = " \\*" if code in requirements.adapted else ""
                lines.append(f"| {code}{star} | {behaviour} | {_status(code, requirements, tests.get(code, []))} |")
    return "\n".join(lines).strip()


def _status(code: str, requirements: Requirements, tests: list[str]) -> str:
    parts = [f"`{test.removeprefix('tests/')}`" for test in tests]
    if code in requirements.differences:
        parts.append(f"*deliberately different: {requirements.differences[code]}*")
    if code in requirements.planned:
        parts.append(f"*planned: {requirements.planned[code]}*")
    return "<br>".join(parts) or "**no test yet**"


def _is_engine(code: str) -> bool:
    section, _, number = code.partition("-")
    return section in ("S0", "S4") or (section == "S2" and 9 <= int(number) <= 23)
