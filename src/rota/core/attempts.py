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


class Vanished(msgspec.Struct, frozen=True):
    """An attempt that could not say how it ended, because what ran it was killed."""

    #: As it was in that attempt.
    job: JobRecord
    #: killed (its process died), timeout, cancelled or stopped (it was killed for that), stalled (its worker vanished).
    outcome: str
    #: What happened, for people.
    note: str
    #: Seconds since 1970.
    began_at: float
    ended_at: float


def attempts_of(record: JobRecord, history: Sequence[HistoryEntry]) -> list[Attempt]:
    """The first one first. Of a run with a long history only the latest changes are kept, and so are its attempts."""
    attempts: dict[int, Attempt] = {}
    for entry in history:
        if entry.since and entry.attempt:
            outcome = OUTCOMES.get(entry.verb, entry.state)
            # The first to speak of an attempt ended it: a cancel that comes later, while it waits, did not.
            attempts.setdefault(
                entry.attempt, Attempt(entry.attempt, entry.worker, entry.since, entry.at, outcome, entry.note)
            )
    number = record.counts.attempt
    if record.claimed_at is not None and number and number not in attempts:
        outcome = "running" if record.state is JobState.PROCESSING else record.state.value
        attempts[number] = Attempt(number, record.worker, record.claimed_at, record.ended_at, outcome)
    return [attempts[number] for number in sorted(attempts)]
