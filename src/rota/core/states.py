"""The life of a job: its states, and the verbs that move it between them.

A run is in exactly one state at every instant, and the store has one index per state. The table is what the
lifecycle page draws, and what each script's header is checked against.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class JobState(StrEnum):
    """Where a run is. The value is the word used everywhere; HTTP shows it in upper case."""

    SCHEDULED = "scheduled"
    BLOCKED = "blocked"
    PENDING = "pending"
    PROCESSING = "processing"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_finished(self) -> bool:
        """True when the run has ended: nothing but `redrive` and `delete` will move it again."""
        return self in FINISHED

    @property
    def is_waiting(self) -> bool:
        """True when the run has yet to start, or to start again."""
        return self in WAITING


S: Final = JobState
WAITING: Final = frozenset({S.SCHEDULED, S.BLOCKED, S.PENDING})
FINISHED: Final = frozenset({S.COMPLETED, S.FAILED, S.CANCELLED})
NEW: Final[frozenset[JobState]] = frozenset()

#: verb -> (states it accepts, states it can leave the job in). An empty set is "no job": not yet, or no longer.
TRANSITIONS: Final[Mapping[str, tuple[frozenset[JobState], frozenset[JobState]]]] = {
    "enqueue": (NEW, WAITING),
    "enqueue_plain": (NEW, frozenset({S.PENDING})),
    "fire": (NEW, frozenset({S.BLOCKED, S.PENDING})),
    "run_schedule": (NEW, frozenset({S.BLOCKED, S.PENDING})),
    "commit": (NEW, WAITING | {S.CANCELLED}),
    "deliver": (frozenset({S.BLOCKED, S.CANCELLED}), WAITING | {S.CANCELLED}),
    "promote": (frozenset({S.SCHEDULED}), frozenset({S.BLOCKED, S.PENDING})),
    "claim": (frozenset({S.PENDING}), frozenset({S.PROCESSING})),
    "complete": (frozenset({S.PROCESSING}), frozenset({S.COMPLETED})),
    "fail": (frozenset({S.PROCESSING}), WAITING | {S.FAILED}),
    "snooze": (frozenset({S.PROCESSING}), WAITING),
    "return": (frozenset({S.PROCESSING}), WAITING | {S.FAILED}),
    "reap": (frozenset({S.PROCESSING}), WAITING | {S.FAILED}),
    "expire": (WAITING, frozenset({S.CANCELLED})),
    "cancel": (WAITING | {S.PROCESSING}, frozenset({S.CANCELLED})),
    "give_up": (frozenset({S.PROCESSING}), frozenset({S.CANCELLED})),
    "redrive": (frozenset({S.FAILED}), frozenset({S.BLOCKED, S.PENDING})),
    "purge": (WAITING, NEW),
    "delete": (frozenset(S), NEW),
    "sweep": (FINISHED, NEW),
}
