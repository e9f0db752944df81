"""How an attempt ended, and what follows from it: pure decisions, shared by runner and supervisor."""

from __future__ import annotations

import math
import traceback as tracebacks
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from rota.core.job import MAX_TIME_MS, Counts, ErrorRecord, Options
from rota.core.retry import MAX_SECONDS
from rota.errors import PermanentError, RetryLater

#: A traceback is cut in the middle beyond this many characters: its two ends say what happened and where.
MAX_TRACEBACK: Final = 16_000
MAX_MESSAGE: Final = 4_000
MAX_ATTRIBUTES: Final = 16_000


def record_error(error: BaseException, *, kind: str | None = None) -> ErrorRecord:
    """An exception as text, with its JSON-able attributes. Nothing of it can run again."""
    text = "".join(tracebacks.format_exception(error))
    if len(text) > MAX_TRACEBACK:
        half = MAX_TRACEBACK // 2
        text = f"{text[:half]}\n… {len(text) - MAX_TRACEBACK:,} characters left out …\n{text[-half:]}"
    return ErrorRecord(
        kind=kind or ("permanent" if isinstance(error, PermanentError) else "exception"),
        type=type(error).__name__,
        message=_safe_text(error)[:MAX_MESSAGE],
        traceback=text.encode(errors="replace").decode(),
        attributes=_attributes(error),
    )


def kinds_of(error: BaseException) -> list[str]:
    """The names of an error's classes, nearest first: what a rule of `Retry` may name."""
    return [cls.__name__ for cls in type(error).__mro__ if cls not in (object, BaseException)]


def next_attempt(
    options: Options, counts: Counts, kinds: Sequence[str], chance: float, error: BaseException | None = None
) -> str:
    """When a job whose attempt failed is tried again: a moment, or "final"."""
    failures = counts.failures + 1
    if options.at_most_once or isinstance(error, PermanentError):
        return "final"
    delay_ms = options.retry.next_delay_ms(failures, chance, kinds)
    if delay_ms is None:
        return "final"
    asked = _asked_moment(error)
    return f"+{delay_ms}" if asked is None else asked


def moment_after(seconds: float) -> str:
    """So many seconds from now, as the scripts take it; no more than the longest wait that may be asked for."""
    return f"+{round(min(MAX_SECONDS, max(0.0, seconds)) * 1000)}"


def _asked_moment(error: BaseException | None) -> str | None:
    """The moment that the error itself asks for: `RetryLater`, or any error with a `retry_at`."""
    if isinstance(error, RetryLater) and error.after is not None:
        return moment_after(error.after)
    try:
        at: Any = error.at if isinstance(error, RetryLater) else getattr(error, "retry_at", None)
        seconds = at.timestamp() if isinstance(at, datetime) else at
    except Exception:  # a property that raises, a date out of range: then the backoff decides
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not math.isfinite(seconds):
        return None
    return str(min(MAX_TIME_MS, max(0, round(seconds * 1000))))  # seconds since 1970


def _attributes(error: BaseException) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    size = 0
    for name, value in vars(error).items():
        if name.startswith("_") or name == "args":
            continue
        try:
            encoded = msgspec.json.encode(value)
        except (TypeError, ValueError, OverflowError, RecursionError):
            continue  # what JSON cannot carry is not kept
        size += len(encoded)
        if size > MAX_ATTRIBUTES:
            break
        kept[name] = msgspec.json.decode(encoded)
    return kept


def _safe_text(error: BaseException) -> str:
    try:
        return str(error).encode(errors="replace").decode()
    except Exception as broken:  # a __str__ that raises must not hide the error itself
        return f"<{type(error).__name__} whose text cannot be read: {type(broken).__name__}>"
