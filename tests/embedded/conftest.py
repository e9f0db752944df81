"""The fixture of these tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.embedded.home import Home


@pytest.fixture
def home() -> Iterator[Home]:
    """A project folder of this test's own, in which nothing runs yet; whatever runs at the end is killed."""
    home = Home()
    yield home
    home.close()
