"""The attempts of a run, derived from its record and its history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from rota.core.job_record import HistoryEntry, JobRecord
from rota.core.state_transitions import JobState
from rota.errors import ProcessKilled, RotaError, Timeout, WorkerLost

#: Verb of a history entry -> outcome of the attempt that it ended.
OUTCOMES: Final[Mapping[str, str]] = {
    "fail": "failed",
    "reap": "stalled",
    "return": "returned",
    "snooze": "snoozed",
    "cancel": "cancelled",
    "cancel_self": "cancelled",
}


class Attempt(msgspec.Struct, frozen=True):
    """One execution of a job: its worker, start, end and outcome. `outcome` is "running" until it has ended."""

    number: int
    worker: str
    started_at: int
    ended_at: int | None
    outcome: str
    #: The error or the reason.
    note: str = ""


class LostAttempt(msgspec.Struct, frozen=True):
    """An attempt whose process or worker was killed before it reported an outcome."""

    #: The job as it was in that attempt.
    job: JobRecord
    #: killed (its process died), timeout, cancelled or stopped (it was killed for that), stalled (its worker died).
    outcome: str
    #: What happened, as a sentence.
    note: str
    #: Seconds since 1970.
    began_at: float
    ended_at: float
    #: The exit code of its process, negative for a signal; 0 if the whole worker died.
    exit_code: int = 0
    #: The job gets another attempt.
    will_retry: bool = True

    @property
    def error(self) -> RotaError | None:
        """Timeout, ProcessKilled or WorkerLost; None for an attempt that was cancelled or stopped."""
        match self.outcome:
            case "timeout":
                return Timeout(self.note)
            case "killed":
                return ProcessKilled(self.note, exit_code=self.exit_code)
            case "stalled":
                return WorkerLost(self.job.worker)
            case _:
                return None


def attempts_of(record: JobRecord, history: Sequence[HistoryEntry]) -> list[Attempt]:
    """Returns the attempts, first one first. A long history is cut to its latest entries, and so are the attempts."""
    attempts: dict[int, Attempt] = {}
    for entry in history:
        if entry.since and entry.attempt:
            outcome = OUTCOMES.get(entry.verb, entry.state)
            # The first entry of an attempt ended it; a later cancel found the run waiting for its next attempt.
            attempts.setdefault(
                entry.attempt, Attempt(entry.attempt, entry.worker, entry.since, entry.at, outcome, entry.note)
            )
    number = record.counts.attempt
    if record.claimed_at is not None and number and number not in attempts:
        outcome = "running" if record.state is JobState.PROCESSING else record.state.value
        attempts[number] = Attempt(number, record.worker, record.claimed_at, record.ended_at, outcome)
    return [attempts[number] for number in sorted(attempts)]
