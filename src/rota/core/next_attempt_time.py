"""When the next attempt of a failed job starts, if there is one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from rota.core.job_options import MAX_TIME_MS, Options
from rota.core.job_record import AttemptCounts
from rota.core.retry import MAX_SECONDS
from rota.errors import PermanentError, RetryLater

#: The class names of a timeout, nearest first, for the rules of `Retry`.
TIMEOUT_CLASSES: Final = ("Timeout", "TimeoutError", "Exception")


def next_attempt(
    options: Options, counts: AttemptCounts, kinds: Sequence[str], chance: float, error: BaseException | None = None
) -> str:
    """Returns when a job whose attempt failed is tried again, as the scripts take it; "final" for a dead letter."""
    failures = counts.failures + 1
    if options.at_most_once or isinstance(error, PermanentError):
        return "final"
    delay_ms = options.retry.next_delay_ms(failures, chance, kinds)
    if delay_ms is None:
        return "final"
    requested = _requested_time(error)
    return f"+{delay_ms}" if requested is None else requested


def due_after(seconds: float) -> str:
    """Returns the time that many seconds from now, as the scripts take it; at most MAX_SECONDS."""
    return f"+{round(min(MAX_SECONDS, max(0.0, seconds)) * 1000)}"


def _requested_time(error: BaseException | None) -> str | None:
    """Returns the time requested by `RetryLater`, or by the `retry_at` of any error; None if there is none."""
    try:
        if isinstance(error, RetryLater) and error.after is not None:
            return due_after(error.after)
        at: Any = error.at if isinstance(error, RetryLater) else getattr(error, "retry_at", None)
        seconds = at.timestamp() if isinstance(at, datetime) else at
    except Exception:  # a property that raises, a date out of range: the backoff applies
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not math.isfinite(seconds):
        return None
    return str(min(MAX_TIME_MS, max(0, round(seconds * 1000))))  # seconds since 1970
