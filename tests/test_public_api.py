"""The public API is what was recorded: a name, a parameter or a default changes only on purpose."""

from __future__ import annotations

from tests.public_api import SNAPSHOT, describe


def test_the_public_api_is_the_recorded_one() -> None:
    assert describe() == SNAPSHOT.read_text(), "if this is wanted: python -m tests.public_api"
