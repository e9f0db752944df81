"""The attempts of a run are derived from its history, and the current one from its record."""

from __future__ import annotations

import pytest

from rota.core.attempts_from_history import OUTCOMES, Attempt, attempts_of
from rota.core.job_record import AttemptCounts, HistoryEntry
from rota.core.state_transitions import TRANSITIONS, JobState
from tests.core.records import NOW, a_job


def an_end(attempt: int, verb: str, *, at: int = 20, note: str = "", state: str = "") -> HistoryEntry:
    return HistoryEntry(at, verb, state, "w-1", attempt, since=at - 10, note=note)


def test_a_job_that_never_started_has_no_attempts() -> None:
    assert attempts_of(a_job(), [HistoryEntry(5, "enqueue", "pending")]) == []


def test_a_running_attempt_has_no_end() -> None:
    job = a_job(JobState.PROCESSING, worker="w-2", claimed_at=NOW, counts=AttemptCounts(attempt=1))

    assert attempts_of(job, []) == [Attempt(1, "w-2", NOW, None, "running")]


def test_attempts_are_listed_in_order_with_the_running_one_last() -> None:
    job = a_job(
        JobState.PROCESSING, worker="w-2", claimed_at=NOW, counts=AttemptCounts(attempt=3, failures=1, stalls=1)
    )
    history = [an_end(1, "fail", note="ValueError: x", at=20), an_end(2, "reap", at=40)]

    assert attempts_of(job, history) == [
        Attempt(1, "w-1", 10, 20, "failed", "ValueError: x"),
        Attempt(2, "w-1", 30, 40, "stalled"),
        Attempt(3, "w-2", NOW, None, "running"),
    ]


@pytest.mark.parametrize(("verb", "outcome"), sorted(OUTCOMES.items()))
def test_each_verb_that_ends_an_attempt_has_an_outcome(verb: str, outcome: str) -> None:
    assert [one.outcome for one in attempts_of(a_job(), [an_end(1, verb)])] == [outcome]
    assert JobState.PROCESSING in TRANSITIONS[verb][0], "only a verb on a processing job can end its attempt"


def test_a_verb_without_an_outcome_of_its_own_has_the_state_it_led_to() -> None:
    assert [one.outcome for one in attempts_of(a_job(), [an_end(1, "complete", state="completed")])] == ["completed"]


def test_a_cancel_while_the_next_attempt_waits_does_not_end_the_last_one_again() -> None:
    history = [an_end(1, "fail", at=20), an_end(1, "cancel", at=50)]

    found = attempts_of(a_job(JobState.CANCELLED, counts=AttemptCounts(attempt=1)), history)

    assert [(one.outcome, one.ended_at) for one in found] == [("failed", 20)]


def test_changes_without_an_attempt_are_not_attempts() -> None:
    history = [HistoryEntry(5, "enqueue", "pending"), HistoryEntry(9, "update", attempt=1), an_end(1, "snooze")]

    assert [one.outcome for one in attempts_of(a_job(), history)] == ["snoozed"]


def test_the_last_attempt_of_an_ended_run_comes_from_its_record() -> None:
    """Completing a job adds no history entry: the record says it all."""
    job = a_job(JobState.COMPLETED, worker="w", claimed_at=10, ended_at=25, counts=AttemptCounts(attempt=1))

    assert attempts_of(job, []) == [Attempt(1, "w", 10, 25, "completed")]


def test_of_a_cut_history_the_latest_attempts_are_left() -> None:
    job = a_job(JobState.PROCESSING, worker="w", claimed_at=NOW, counts=AttemptCounts(attempt=1_000))

    assert [one.number for one in attempts_of(job, [an_end(998, "fail"), an_end(999, "fail")])] == [998, 999, 1_000]
