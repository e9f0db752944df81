"""The Python blocks of a page, by a simple rule.

A block that opens with a comment naming a file (`# tasks.py`, `# shop/tasks.py`) is written to that file; the same name
again adds to it. A worker runs the tasks of tasks.py or shop/tasks.py, and pytest the tests of test_*.py. The other
blocks of a page run in order, as one program, with `await` wherever it stands. Only a block below
`<!-- no-run: reason -->` is left alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent.parent
_BLOCK: Final = re.compile(
    r"^(?P<mark><!-- no-run: (?P<reason>[^\n]+) -->\n+)?```(?P<language>\w+)\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_FILE: Final = re.compile(r"# ((?:\w+/)*\w+\.py)\b")


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of code on a page."""

    language: str
    code: str
    line: int
    #: Why it is not run; empty where it is.
    reason: str

    @property
    def file(self) -> str | None:
        """The file that its first line names."""
        named = _FILE.match(self.code)
        return named[1] if named else None


def pages() -> list[Path]:
    """The README and every page of the documentation."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path, *languages: str) -> list[Block]:
    """The page's blocks in these languages; in Python and shell if none is given."""
    wanted = languages or ("python", "sh")
    text = page.read_text(encoding="utf-8")
    return [
        Block(found["language"], found["code"], text.count("\n", 0, found.start("code")) + 1, found["reason"] or "")
        for found in _BLOCK.finditer(text)
        if found["language"] in wanted
    ]
