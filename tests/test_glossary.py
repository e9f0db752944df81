"""The glossary and the code use the same words: no identifier is named with a word that the glossary replaces."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parent.parent
GLOSSARY: Final = ROOT / "docs" / "reference" / "glossary.md"

#: Words of the last column that an identifier may contain all the same, with the reason.
ALLOWED: Final = {
    ("flight", "_single_flight"): "the trade's word for sharing one concurrent load",
    ("flight", "single_flight"): "the same",
    ("flight", "SingleFlight"): "the same",
    ("flight", "_in_flight"): "the conventional name of this metric",
}

_ROW: Final = re.compile(r"^\| (?P<say>[^|]+) \| (?P<meaning>[^|]+) \| (?P<banned>[^|]*)\|$", re.MULTILINE)
_LUA_NAME: Final = re.compile(r"\b(?:local(?: function)?|function) ([\w, ]+)")
_WORD: Final = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")


def banned_words() -> dict[str, str]:
    """Returns each replaced word with the row that replaces it."""
    rows = _ROW.finditer(GLOSSARY.read_text(encoding="utf-8"))
    return {word: row["say"] for row in rows for word in re.findall(r"[a-z-]+", row["banned"]) if row["say"] != "say"}


def python_names() -> Iterator[tuple[str, str]]:
    """Yields every name that the package defines, with the place of its definition."""
    for path in sorted((ROOT / "src").rglob("*.py")):
        where = path.relative_to(ROOT)
        yield path.stem, str(where)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    yield name, f"{where}:{node.lineno}"
                case ast.arg(arg=name):
                    yield name, f"{where}:{node.lineno}"
                case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                    yield name, f"{where}:{node.lineno}"
                case _:
                    pass


def lua_names() -> Iterator[tuple[str, str]]:
    """Yields every script, include, function and local of the store's Lua code."""
    for path in sorted((ROOT / "src").rglob("*.lua")):
        where = path.relative_to(ROOT)
        yield path.stem, str(where)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for found in _LUA_NAME.finditer(line.partition("--")[0]):
                for name in found[1].split(","):
                    yield name.strip(), f"{where}:{number}"


def words_of(identifier: str) -> set[str]:
    """`RunningJobs` and `running_jobs` both contain "running" and "jobs"."""
    return {word.lower() for word in _WORD.findall(identifier)}


def test_the_glossary_replaces_some_words() -> None:
    assert {"flow", "courier", "tally"} <= banned_words().keys()


def test_no_python_identifier_uses_a_replaced_word() -> None:
    assert violations(python_names()) == []


def test_no_lua_identifier_uses_a_replaced_word() -> None:
    assert violations(lua_names()) == []


@pytest.mark.parametrize(
    ("identifier", "words"),
    [("RunningJobs", {"running", "jobs"}), ("_tell_HTTP2", {"tell", "http", "2"}), ("workflow_id", {"workflow", "id"})],
)
def test_an_identifier_is_compared_word_by_word(identifier: str, words: set[str]) -> None:
    assert words <= words_of(identifier) | {"2"}


def violations(names: Iterator[tuple[str, str]]) -> list[str]:
    """Returns a line for each identifier that contains a replaced word."""
    banned = banned_words()
    return [
        f"{where}: {name!r}: the glossary says {banned[word]!r}, not {word!r}"
        for name, where in names
        for word in sorted(words_of(name) & banned.keys())
        if (word, name) not in ALLOWED
    ]
