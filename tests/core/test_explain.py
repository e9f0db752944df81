"""`explain` turns a record into one sentence: the state, its reason, and what happens next."""

from __future__ import annotations

from typing import Any

import pytest

from rota.core.explain import explain, format_duration
from rota.core.job_options import Options
from rota.core.job_record import AttemptCounts, ErrorRecord, Obstacle, Progress
from rota.core.retry import Retry
from rota.core.state_transitions import JobState
from tests.core.records import NOW, a_job


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (-5, "0 ms"),
        (0, "0 ms"),
        (999, "999 ms"),
        (1_000, "1.0 s"),
        (4_240, "4.2 s"),
        (59_900, "59.9 s"),
        (60_000, "1 min 0 s"),
        (185_000, "3 min 5 s"),
        (3_599_000, "59 min 59 s"),
        (3_600_000, "1 h 0 min"),
        (47 * 3_600_000 + 59 * 60_000, "47 h 59 min"),
        (48 * 3_600_000, "2 d 0 h"),
        (123 * 3_600_000, "5 d 3 h"),
    ],
)
def test_a_duration_has_two_units_at_most(ms: int, text: str) -> None:
    assert format_duration(ms) == text


def test_a_pending_job_names_what_it_waits_for() -> None:
    job = a_job(due_at=NOW - 60_000)

    assert explain(job, NOW) == "pending for 1 min 0 s: may start as soon as a worker has a free slot"
    assert explain(job, NOW, is_paused=True) == (
        "pending for 1 min 0 s: queue mail is paused; resume it and the job starts"
    )
    assert explain(job, NOW, has_workers=False) == "pending for 1 min 0 s: no worker serves queue mail; start one"


def test_a_paused_queue_is_named_before_a_missing_worker() -> None:
    """Starting a worker would not help."""
    assert "is paused" in explain(a_job(), NOW, is_paused=True, has_workers=False)


def test_a_scheduled_job_has_its_start() -> None:
    assert explain(a_job(JobState.SCHEDULED, due_at=NOW + 90_000), NOW) == "scheduled: starts in 1 min 30 s"


def test_a_scheduled_job_that_is_overdue_names_the_reason() -> None:
    job = a_job(JobState.SCHEDULED, due_at=NOW - 5_000)

    assert explain(job, NOW, has_workers=False) == (
        "scheduled: due for 5.0 s, but no worker serves queue mail; start one"
    )
    assert explain(job, NOW) == "scheduled: starts in 0 ms", "a worker will promote it at once"


def test_a_job_that_is_retried_has_its_error_and_the_failures_left() -> None:
    job = a_job(
        JobState.SCHEDULED,
        due_at=NOW + 4_000,
        options=Options(retry=Retry(attempts=5)),
        counts=AttemptCounts(attempt=3, failures=2),
        error=ErrorRecord(type="TimeoutError", message="no answer\nin 10 s"),
    )

    assert explain(job, NOW) == (
        "scheduled: attempt 3 failed (TimeoutError: no answer); failure 2 of 5, next attempt in 4.0 s"
    )


def test_a_snoozed_job_without_failures_is_only_scheduled() -> None:
    job = a_job(JobState.SCHEDULED, due_at=NOW + 4_000, counts=AttemptCounts(attempt=3, snoozes=3))

    assert explain(job, NOW) == "scheduled: starts in 4.0 s"


@pytest.mark.parametrize(
    ("obstacle", "sentence"),
    [
        (None, "waits for another job"),
        (
            Obstacle("same_id", ("mail:welcome@000000011",)),
            "waits for mail:welcome@000000011, the run of its id that is still processing",
        ),
        (Obstacle("lock", ("mail:a",), lock="seat", since=NOW - 3_000), "lock seat is held by mail:a for 3.0 s"),
        (Obstacle("lock", ("mail:a",), lock="seat"), "lock seat goes to mail:a first, which is about to start"),
        (Obstacle("after", ("mail:a", "mail:b"), count=2), "waits for mail:a, mail:b"),
        (Obstacle("after", ("mail:a", "mail:b"), count=1_002), "waits for mail:a, mail:b and 1,000 more"),
    ],
)
def test_a_blocked_job_names_its_obstacle(obstacle: Obstacle | None, sentence: str) -> None:
    assert explain(a_job(JobState.BLOCKED, obstacle=obstacle), NOW) == f"blocked: {sentence}"


@pytest.mark.parametrize(
    ("parent", "sentence"),
    [
        ("~:order-7.3", "waits for all items of step 3"),
        ("~:order-7", "waits for its workflow to start: as many as are allowed are running already"),
    ],
)
def test_a_step_of_a_workflow_may_wait_for_the_workflow_itself(parent: str, sentence: str) -> None:
    job = a_job(JobState.BLOCKED, obstacle=Obstacle("after", (parent,)), options=Options(workflow="order-7"))

    assert explain(job, NOW) == f"blocked: {sentence} (part of workflow order-7)"


def test_a_processing_job_has_its_worker_and_its_progress() -> None:
    fields: dict[str, Any] = {"worker": "w-1", "claimed_at": NOW - 2_000, "counts": AttemptCounts(attempt=2)}
    progress = Progress(done=1, total=4, note="", started_at=NOW - 2_000, at=NOW)

    assert explain(a_job(JobState.PROCESSING, **fields), NOW) == "processing: attempt 2 on worker w-1 for 2.0 s"
    assert explain(a_job(JobState.PROCESSING, progress=progress, **fields), NOW).endswith("for 2.0 s, 25 % done")


@pytest.mark.parametrize(
    ("at_most_once", "recovery"),
    [(False, "run it again"), (True, "record the job as failed, because it may run only once")],
)
def test_a_job_whose_worker_is_dead_names_what_recovers_it(*, at_most_once: bool, recovery: str) -> None:
    job = a_job(
        JobState.PROCESSING,
        worker="w-1",
        claimed_at=NOW - 60_000,
        lease_until=NOW - 50_000,
        options=Options(at_most_once=at_most_once),
    )

    lost = "processing: worker w-1 sends no heartbeats, its lease ended 50.0 s ago"
    assert explain(job, NOW) == f"{lost}; another worker will {recovery} within seconds"
    assert explain(job, NOW, has_workers=False) == (
        f"{lost}, and no other worker serves queue mail: start one, and it will {recovery} after about 5 s"
    )


def test_a_completed_job_has_its_duration_and_its_age() -> None:
    job = a_job(JobState.COMPLETED, claimed_at=NOW - 9_000, ended_at=NOW - 5_000, counts=AttemptCounts(attempt=1))

    assert explain(job, NOW) == "completed: attempt 1 succeeded after 4.0 s, 5.0 s ago"


def test_a_dead_letter_has_its_error_and_the_way_out() -> None:
    job = a_job(
        JobState.FAILED, counts=AttemptCounts(attempt=3), error=ErrorRecord(type="ValueError", message="x" * 300)
    )

    assert explain(job, NOW) == (f"failed: ValueError: {'x' * 200} (attempt 3); a dead letter, redrive it to try again")
    assert explain(job, NOW, handled_by="mail-fail:h").endswith("; its failure handler is job mail-fail:h")


def test_a_dead_letter_without_an_error_has_its_reason() -> None:
    assert "failed: stalled too often (attempt 0)" in explain(a_job(JobState.FAILED, reason="stalled too often"), NOW)
    assert "failed: unknown (attempt 0)" in explain(a_job(JobState.FAILED), NOW)


def test_a_cancelled_job_has_its_reason() -> None:
    job = a_job(JobState.CANCELLED, ended_at=NOW - 3_000)

    assert explain(job, NOW) == "cancelled 3.0 s ago: by request"
    assert explain(a_job(JobState.CANCELLED, ended_at=NOW, reason="expired"), NOW) == "cancelled 0 ms ago: expired"
