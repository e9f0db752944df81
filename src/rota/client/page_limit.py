"""Checks the `limit` argument of methods that return a page."""

from __future__ import annotations

from rota.errors import InvalidOption

#: The largest page.
MAX_PAGE = 1_000


def checked_limit(limit: int, most: int = MAX_PAGE, *, option: str = "limit", least: int = 1) -> int:
    """Returns `limit`. Raises InvalidOption unless it is a whole number from `least` to `most`."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not least <= limit <= most:
        raise InvalidOption(option, f"{limit!r} is not between {least} and {most:,}")
    return limit
