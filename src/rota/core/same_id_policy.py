"""Same-id policy: what enqueueing an id does while an earlier run of that id has not ended (`on_same_id`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from rota.core.retry import Seconds, to_ms
from rota.errors import InvalidOption

#: Flags argument of the scripts for "leave the existing run unchanged".
NO_UPDATE = "-"
#: Before the ms after which a run starts in any case.
MAX_WAIT_FLAG = "m"
#: Part of a run that an update replaces -> its letter in the flags argument of the scripts.
UPDATE_FLAGS: Final[Mapping[str, str]] = {
    "data": "d",
    "run_at": "t",
    "run_at_if_later": "l",
    "run_at_if_earlier": "e",
    "attempts": "a",
    "backoff": "b",
    "max_stalls": "s",
    "options": "o",
    "reset_counts": "c",
    "reset_counts_unless_merged": "k",
}


@dataclass(frozen=True, slots=True)
class Reject:
    """`on_same_id=Reject()`: raise `IdInUse` if a run of that id has not ended."""

    flags = NO_UPDATE
    cancel_running = False


@dataclass(frozen=True, slots=True)
class Ignore:
    """`on_same_id=Ignore()`: return the run of that id that has not ended, unchanged."""

    flags = NO_UPDATE
    cancel_running = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """`on_same_id=Update(...)`, the default: update a waiting run; behind a processing one, keep a single follow-up.

    `data` covers arguments, tags and meta; `options` covers priority, timeout, expires and keep. `retry` may name the
    parts {"attempts"} or {"backoff"}. With `max_wait` the run starts at most so many seconds after it was first
    enqueued, however often its time is replaced. `cancel_running` cancels the run that is processing: its follow-up
    starts as soon as the handler has stopped. By default new data resets the counts; when a follow-up merges into a
    run that retries, counts are reset only with `reset_counts=True`.
    """

    data: bool = True
    run_at: bool | Literal["if_later", "if_earlier"] = True
    retry: bool | Collection[str] = True
    max_stalls: bool = True
    options: bool = True
    reset_counts: bool | None = None
    max_wait: Seconds | None = None
    cancel_running: bool = False

    def __post_init__(self) -> None:
        for name in ("data", "max_stalls", "options", "cancel_running"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidOption("on_same_id", f"{name} must be True or False, not {getattr(self, name)!r}")
        if self.reset_counts not in (True, False, None):
            raise InvalidOption("on_same_id", f"reset_counts must be True, False or None, not {self.reset_counts!r}")
        if self.run_at not in (True, False, "if_later", "if_earlier"):
            raise InvalidOption(
                "on_same_id", f"run_at must be True, False, 'if_later' or 'if_earlier', not {self.run_at!r}"
            )
        if self.max_wait is not None:
            to_ms(self.max_wait, "on_same_id")
        parts: Any = self.retry
        if not isinstance(parts, bool) and (isinstance(parts, str) or not set(parts) <= {"attempts", "backoff"}):
            raise InvalidOption(
                "on_same_id", f"retry must be True, False, or a set of 'attempts' and 'backoff', not {parts!r}"
            )

    @property
    def flags(self) -> str:
        """Flags argument of the scripts: a letter of `UPDATE_FLAGS` for each part that is replaced."""
        retry = {"attempts", "backoff"} if self.retry is True else set(self.retry or ())
        replaced = {
            "data": self.data,
            "run_at": self.run_at is True,
            "run_at_if_later": self.run_at == "if_later",
            "run_at_if_earlier": self.run_at == "if_earlier",
            "attempts": "attempts" in retry,
            "backoff": "backoff" in retry,
            "max_stalls": self.max_stalls,
            "options": self.options,
            "reset_counts": self.reset_counts is True,
            "reset_counts_unless_merged": self.reset_counts is None and self.data,
        }
        flags = "".join(letter for part, letter in UPDATE_FLAGS.items() if replaced[part])
        return flags if self.max_wait is None else f"{flags}{MAX_WAIT_FLAG}{to_ms(self.max_wait, 'on_same_id')}"


OnSameId = Update | Ignore | Reject
