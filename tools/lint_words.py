"""Rejects words that the style guide bans from code, comments, documentation and dashboard texts.

    python -m tools.lint_words            # prints path:line: word -> what to write instead; exits 1 if there is any

Plain words keep the code searchable: a component is the subject, and the verb is the one the trade uses.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
#: Where the words are banned. Tests are code as well, but quote what users type.
FOLDERS: Final = ("src", "docs", "web/src", "examples", "deploy", "README.md", "CONTRIBUTING.md")
SUFFIXES: Final = frozenset({".py", ".lua", ".md", ".ts", ".tsx", ".css"})

#: Pattern -> what to write instead. Patterns match whole words, in any case.
BANNED: Final = {
    r"whoever|whomever": "name the component",
    r"somebody|someone|anybody|anyone|nobody|everybody": "name the component, or: no worker, another client …",
    r"for ever": "until cancelled; permanently; without limit",
    r"dear(?:er|est)?": "expensive",
    r"robbed|robs?": "loses its lease",
    r"sees? to|saw to|seen to": "handles; drives; runs",
    r"without a word": "silently",
    r"(?:is|are|was|were|be|been|being|gets?|got) told": "is notified; receives",
    r"tells? (?:of|them|it|him|who|which|what|how|whether|when)": "reports; notifies",
    r"hears?|heard": "receives",
    r"mends?|mended": "fix; repair",
    r"bury|buried|buries|doom(?:ed|s)?|bequeath\w*|heirs?|legac(?:y|ies) of|unborn": "use the names of the glossary",
    r"sayings?|witness(?:es)?|clerks?|couriers?|conductors?|tower|desk|guardian": "use the names of the glossary",
    r"himself|herself": "itself",
}
#: Files that may contain the words, each with its reason.
ALLOWED: Final = {
    "docs/reference/glossary.md": "lists the words that it replaces",
}

_WORD: Final = re.compile(
    r"\b(?:" + "|".join(f"(?P<w{i}>{pattern})" for i, pattern in enumerate(BANNED)) + r")\b", re.IGNORECASE
)
_INSTEAD: Final = list(BANNED.values())


def findings(text: str) -> Iterator[tuple[int, str, str]]:
    """Yields line number, banned word and its replacement for each match in `text`."""
    for number, line in enumerate(text.splitlines(), 1):
        for found in _WORD.finditer(line):
            group = next(name for name, value in found.groupdict().items() if value is not None)
            yield number, found.group(), _INSTEAD[int(group[1:])]


def files() -> list[Path]:
    """Returns the tracked text files in which the words are banned."""
    listed = subprocess.run(["git", "ls-files", *FOLDERS], cwd=ROOT, capture_output=True, text=True, check=True)
    paths = [Path(name) for name in listed.stdout.splitlines()]
    return [path for path in paths if path.suffix in SUFFIXES and str(path) not in ALLOWED and (ROOT / path).exists()]


def main() -> int:
    """Prints every finding. Returns the exit code."""
    count = 0
    for path in files():
        for number, word, instead in findings((ROOT / path).read_text(encoding="utf-8")):
            print(f"{path}:{number}: {word!r} -> {instead}")
            count += 1
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
