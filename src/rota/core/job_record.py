"""The record of one run: its counts, error, history, progress and obstacle. All of them are frozen values.

Times are whole milliseconds since 1970 by the server's clock.
"""

from __future__ import annotations

from typing import Any

import msgspec

from rota.core.ids import JobRef
from rota.core.job_options import Options
from rota.core.state_transitions import JobState


class AttemptCounts(msgspec.Struct, frozen=True):
    """Counts of a run. `attempt` only grows; the others say how its attempts ended."""

    attempt: int = 0
    failures: int = 0
    stalls: int = 0
    snoozes: int = 0
    handbacks: int = 0
    #: Attempts whose process died while it also ran other jobs: none of them is known to be the reason.
    crashes: int = 0


class ErrorRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """The error of a failed attempt, as text: it is never turned back into an exception object."""

    kind: str = "exception"  # exception | timeout | stall | permanent
    type: str = ""
    message: str = ""
    traceback: str = ""
    attributes: dict[str, Any] = {}


class HistoryEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One change of state in the history of a run."""

    at: int
    verb: str
    state: str = ""
    worker: str = ""
    attempt: int = 0
    since: int = 0  # start of the attempt that this change ended
    note: str = ""


class Progress(msgspec.Struct, frozen=True):
    """Progress reported by a running attempt."""

    done: float
    total: float
    note: str
    started_at: int
    at: int

    @property
    def percent(self) -> int:
        """0 … 100."""
        if self.total <= 0 or self.done >= self.total:
            return 100
        # Compare before dividing: a tiny total would make the quotient infinite.
        return int(100 * (self.done / self.total)) if self.done > 0 else 0

    @property
    def per_second(self) -> float | None:
        """Rate so far; None until it is known."""
        elapsed = (self.at - self.started_at) / 1000
        return self.done / elapsed if elapsed > 0 and self.done > 0 else None

    @property
    def seconds_left(self) -> float | None:
        """Time left at that rate; None until it is known."""
        rate = self.per_second
        return None if rate is None else max(0.0, (self.total - self.done) / rate)


class Obstacle(msgspec.Struct, frozen=True):
    """The reason why a blocked run does not start."""

    kind: str  # same_id | after | lock | task_paused
    #: Jobs it waits for; if there are many, only some of them.
    jobs: tuple[str, ...]
    count: int = 1
    lock: str = ""
    task: str = ""
    #: When the holder of the lock started, ms; None if it has not started.
    since: int | None = None


class JobRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a job, as stored."""

    ref: JobRef
    task: str
    state: JobState
    arguments: bytes
    options: Options
    counts: AttemptCounts
    enqueued_at: int
    due_at: int | None = None
    claim: str = ""
    worker: str = ""
    claimed_at: int | None = None
    #: When the latest attempt had become due; None before the first.
    attempt_due_at: int | None = None
    lease_until: int | None = None
    ended_at: int | None = None
    reason: str = ""
    progress: Progress | None = None
    error: ErrorRecord | None = None
    result: bytes | None = None
    obstacle: Obstacle | None = None
