"""The table in README.md says which test does what: each of them is there, and no action is left out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
TABLE: Final = (HERE / "README.md").read_text()


async def test_every_test_that_the_table_names_is_there() -> None:
    named = re.findall(r"`(test_\w+\.py)::(test_\w+)`", TABLE)

    missing = [f"{file}::{test}" for file, test in named if f"def {test}(" not in (HERE / file).read_text()]

    assert len(named) > 80
    assert missing == []


async def test_every_action_is_done_with_the_mouse_and_with_keys() -> None:
    rows = [line.strip("| ").split("|") for line in TABLE.splitlines() if line.startswith("| ")]

    lacking = [row[0].strip() for row in rows if len(row) < 3 or not all(cell.strip() for cell in row)]

    assert lacking == []
