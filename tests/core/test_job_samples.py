"""What a sample of jobs says."""

from __future__ import annotations

import msgspec
import pytest

from rota.core.job_record import ErrorRecord, JobRecord
from rota.core.state_transitions import JobState
from rota.core.times_and_errors_of_sampled_jobs import (
    group_by_error,
    message_pattern,
    ran_ms,
    slowest,
    times_of,
    waited_ms,
)
from tests.core.records import NOW, a_job


def job(ran: int, *, message: str = "", state: JobState = JobState.COMPLETED) -> JobRecord:
    record = a_job(state, attempt_due_at=NOW - 5_000, claimed_at=NOW, ended_at=NOW + ran)
    return (
        msgspec.structs.replace(record, error=ErrorRecord(kind="error", type="KeyError", message=message))
        if message
        else record
    )


def test_percentiles_of_a_sample_are_exact() -> None:
    found = times_of([None, *range(1, 101)])

    assert (found.sample, found.p50_ms, found.p95_ms, found.p99_ms, found.max_ms) == (100, 50, 95, 99, 100)
    assert times_of([7]).p99_ms == 7
    assert times_of([None]).p50_ms is None


def test_a_job_waited_until_it_was_claimed_and_ran_until_it_ended() -> None:
    assert (waited_ms(job(300)), ran_ms(job(300))) == (5_000, 300)
    assert (waited_ms(a_job()), ran_ms(a_job())) == (None, None)


def test_the_slowest_come_first() -> None:
    assert [ran_ms(one) for one in slowest([job(1), job(900), a_job(), job(30)], 2)] == [900, 30]


def test_errors_that_differ_in_numbers_and_names_are_one_group() -> None:
    found = group_by_error(
        [
            job(1, message="no row 17", state=JobState.FAILED),
            job(9, message="no row 18", state=JobState.SCHEDULED),
            job(5, message="disk full"),
        ]
    )

    assert [(one.pattern, one.count, one.dead) for one in found] == [("no row #", 2, 1), ("disk full", 1, 0)]
    assert (found[0].message, found[0].first_seen, found[0].last_seen) == ("no row 18", NOW + 1, NOW + 9)


@pytest.mark.parametrize(
    ("message", "pattern"),
    [
        ("user 4711 has no 'mail'", "user # has no '…'"),
        ("GET https://shop.example/a?b=1 failed", "GET … failed"),
        ("a@b.example bounced", "… bounced"),
        ("at deadbeef12", "at #"),
    ],
)
def test_a_pattern_leaves_out_what_differs(message: str, pattern: str) -> None:
    assert message_pattern(message) == pattern
