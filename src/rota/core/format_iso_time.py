"""Formats stored times, which are ms since 1970, as ISO 8601 in UTC."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

#: The end of the year 9999.
_LATEST_MS: Final = 253_402_300_799_000


def iso_time_or_none(ms: int | None) -> str | None:
    """Returns a stored time as ISO 8601; None for None."""
    return None if ms is None else iso_time(ms)


def utc_time(ms: int) -> datetime:
    """Returns a stored time; the latest or earliest one for a damaged record whose time is out of range."""
    return datetime.fromtimestamp(min(max(ms, 0), _LATEST_MS) / 1000, UTC)


def iso_time(ms: int) -> str:
    """Returns a stored time as ISO 8601."""
    return utc_time(ms).isoformat(timespec="milliseconds").replace("+00:00", "Z")
