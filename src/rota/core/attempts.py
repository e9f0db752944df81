"""The attempts of a run, one by one, from what its record and its history say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from rota.core.job import HistoryEntry, JobRecord
from rota.core.states import JobState

#: How an attempt ended, by the verb that ended it.
OUTCOMES: Final[Mapping[str, str]] = {
    "fail": "failed",
    "reap": "stalled",
    "return": "returned",
    "snooze": "snoozed",
    "cancel": "cancelled",
    "give_up": "cancelled",
}


class Attempt(msgspec.Struct, frozen=True):
    """One execution: by whom, from when to when, and how it ended. `outcome` is "running" while it has not."""

    number: int
    worker: str
    started_at: int
    ended_at: int | None
    outcome: str
    #: The error, or the reason.
    note: str = ""


def attempts_of(record: JobRecord, history: Sequence[HistoryEntry]) -> list[Attempt]:
    """The first one first. Of a run with a long history only the latest changes are kept, and so are its attempts."""
    attempts = [
        Attempt(entry.attempt, entry.worker, entry.since, entry.at, OUTCOMES.get(entry.verb, entry.state), entry.note)
        for entry in history
        if entry.since and entry.attempt
    ]
    number = record.counts.attempt
    is_known = any(attempt.number == number and attempt.started_at == record.claimed_at for attempt in attempts)
    if record.claimed_at is not None and number and not is_known:
        is_over = record.state is not JobState.PROCESSING
        outcome = record.state.value if is_over else "running"
        attempts.append(Attempt(number, record.worker, record.claimed_at, record.ended_at, outcome))
    return sorted(attempts, key=lambda attempt: (attempt.started_at, attempt.number))
