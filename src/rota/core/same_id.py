"""What enqueueing an id again does to the run of that id which has not ended."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal

from rota.errors import InvalidOption

#: What the scripts take for "leave it alone".
LEAVE = "-"


@dataclass(frozen=True, slots=True)
class Reject:
    """`on_same_id=Reject()`: raise `IdInUse` when a run of that id has not ended."""

    flags = LEAVE


@dataclass(frozen=True, slots=True)
class Ignore:
    """`on_same_id=Ignore()`: return the run of that id which has not ended, and change nothing."""

    flags = LEAVE


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """`on_same_id=Update(...)`, the default: change the run that waits; behind one at work, keep a single follow-up.

    `data` covers arguments, tags and meta; `options` priority, timeout, expires and keep. `retry` may name the parts
    {"attempts"} or {"backoff"}. Counts start again with new data, unless `reset_counts` says otherwise; when a
    follow-up merges into a run that retries, only if `reset_counts=True` was given.
    """

    data: bool = True
    run_at: bool | Literal["if_later", "if_earlier"] = True
    retry: bool | Collection[str] = True
    max_stalls: bool = True
    options: bool = True
    reset_counts: bool | None = None

    def __post_init__(self) -> None:
        for name in ("data", "max_stalls", "options"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidOption("on_same_id", f"{name} is True or False, not {getattr(self, name)!r}")
        if self.reset_counts not in (True, False, None):
            raise InvalidOption("on_same_id", f"reset_counts is True, False or None, not {self.reset_counts!r}")
        if self.run_at not in (True, False, "if_later", "if_earlier"):
            raise InvalidOption("on_same_id", f"run_at is True, False, if_later or if_earlier, not {self.run_at!r}")
        parts: Any = self.retry
        if not isinstance(parts, bool) and (isinstance(parts, str) or not set(parts) <= {"attempts", "backoff"}):
            raise InvalidOption("on_same_id", f"retry is True, False, or names attempts and backoff, not {parts!r}")

    @property
    def flags(self) -> str:
        """As the scripts take them: a letter for each part that is replaced, see `include/update.lua`."""
        parts = {"attempts", "backoff"} if self.retry is True else set(self.retry or ())
        chosen = (
            ("d", self.data),
            ("t", self.run_at is True),
            ("l", self.run_at == "if_later"),
            ("e", self.run_at == "if_earlier"),
            ("a", "attempts" in parts),
            ("b", "backoff" in parts),
            ("s", self.max_stalls),
            ("o", self.options),
            ("c", self.reset_counts is True),
            ("k", self.reset_counts is None and self.data),
        )
        return "".join(letter for letter, is_chosen in chosen if is_chosen)


OnSameId = Update | Ignore | Reject
