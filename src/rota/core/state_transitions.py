"""Job states, and the table of transitions between them.

A run is in exactly one state at any time, and the store has one index per state. The lifecycle page is generated from
the table, and a test compares it with the header of each script.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class JobState(StrEnum):
    """State of a run. The HTTP API shows the value in upper case."""

    SCHEDULED = "scheduled"
    BLOCKED = "blocked"
    PENDING = "pending"
    PROCESSING = "processing"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_finished(self) -> bool:
        """Whether the run has ended: only `redrive` and `delete` change it again."""
        return self in FINISHED

    @property
    def is_waiting(self) -> bool:
        """Whether the run has yet to start, or to start again."""
        return self in WAITING


class CancelOutcome(StrEnum):
    """What cancelling a job did."""

    #: The run has ended.
    CANCELLED = "cancelled"
    #: Its handler was running and is being stopped; the run ends as cancelled.
    STOPPING = "stopping"
    #: Its handler is running and was not stopped, because only waiting jobs were to be cancelled.
    LEFT_RUNNING = "left_running"


S: Final = JobState
WAITING: Final = frozenset({S.SCHEDULED, S.BLOCKED, S.PENDING})
FINISHED: Final = frozenset({S.COMPLETED, S.FAILED, S.CANCELLED})
NEW: Final[frozenset[JobState]] = frozenset()

#: verb -> (states it accepts, states it can leave the run in). An empty set: the run does not exist before or after.
TRANSITIONS: Final[Mapping[str, tuple[frozenset[JobState], frozenset[JobState]]]] = {
    "enqueue": (NEW, WAITING),
    "enqueue_fast": (NEW, frozenset({S.PENDING})),
    "fire_schedule": (NEW, frozenset({S.BLOCKED, S.PENDING})),
    "run_schedule_now": (NEW, frozenset({S.BLOCKED, S.PENDING})),
    "publish_prepared_runs": (NEW, WAITING | {S.CANCELLED}),
    "apply_parent_outcomes": (frozenset({S.BLOCKED, S.CANCELLED}), WAITING | {S.CANCELLED}),
    "promote": (frozenset({S.SCHEDULED}), frozenset({S.BLOCKED, S.PENDING})),
    "set_aside": (frozenset({S.PENDING}), frozenset({S.BLOCKED})),
    "pause_or_resume_task": (frozenset({S.BLOCKED}), frozenset({S.BLOCKED, S.PENDING})),
    "claim": (frozenset({S.PENDING}), frozenset({S.PROCESSING})),
    "complete": (frozenset({S.PROCESSING}), frozenset({S.COMPLETED})),
    "fail": (frozenset({S.PROCESSING}), WAITING | {S.FAILED}),
    "snooze": (frozenset({S.PROCESSING}), WAITING),
    "return": (frozenset({S.PROCESSING}), WAITING | {S.FAILED}),
    "report_dead_process": (frozenset({S.PROCESSING}), WAITING | {S.FAILED}),
    "reap": (frozenset({S.PROCESSING}), WAITING | {S.FAILED}),
    "expire": (WAITING, frozenset({S.CANCELLED})),
    "cancel": (WAITING | {S.PROCESSING}, frozenset({S.CANCELLED})),
    "cancel_self": (frozenset({S.PROCESSING}), frozenset({S.CANCELLED})),
    "confirm_cancelled_run_stopped": (frozenset({S.PROCESSING, S.CANCELLED}), frozenset({S.CANCELLED})),
    "redrive": (frozenset({S.FAILED}), frozenset({S.BLOCKED, S.PENDING})),
    "purge": (WAITING, NEW),
    "delete": (frozenset(S), NEW),
    "apply_retention": (FINISHED, NEW),
}
