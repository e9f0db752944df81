"""Decodes replies: hashes, and the server's time."""

from __future__ import annotations

from collections.abc import Sequence


def read_hash(reply: Sequence[bytes]) -> dict[str, bytes]:
    """A hash, which the server sends as alternating fields and values."""
    return {field.decode(): value for field, value in zip(reply[::2], reply[1::2], strict=True)}


def read_text_hash(reply: Sequence[bytes]) -> dict[str, str]:
    """A hash whose values are text."""
    return {field: value.decode() for field, value in read_hash(reply).items()}


def read_time_ms(reply: Sequence[bytes]) -> int:
    """The reply of TIME, seconds and microseconds, in ms."""
    seconds, micros = reply
    return int(seconds) * 1000 + int(micros) // 1000
