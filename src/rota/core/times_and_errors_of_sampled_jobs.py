"""What a sample of job records says: exact waits and run times, the slowest jobs, and errors in groups."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from rota.core.job_record import JobRecord
from rota.core.state_transitions import JobState

#: Characters of an error message that a group shows.
MAX_MESSAGE: Final = 500
_QUOTED: Final = re.compile(r"\"[^\"]*\"|'[^']*'")
_URL: Final = re.compile(r"\b\w+://\S+")
_MAIL: Final = re.compile(r"(?<!\S)[^\s@]+@[^\s@]+")
_NUMBER: Final = re.compile(r"\b[0-9a-fA-F]*\d[0-9a-fA-F]*")


class JobTimes(msgspec.Struct, frozen=True):
    """Percentiles of durations, exact for the sample; None without samples."""

    sample: int = 0
    p50_ms: int | None = None
    p95_ms: int | None = None
    p99_ms: int | None = None
    max_ms: int | None = None


class ErrorGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs of a sample whose last attempt failed with the same error."""

    type: str
    #: The message of the latest one, as it was raised.
    message: str
    #: The message with # for numbers and … for quoted text.
    pattern: str
    count: int
    #: Of these, the dead letters.
    dead: int
    first_seen: int
    last_seen: int
    #: The latest job, full id.
    job: str


def waited_ms(record: JobRecord) -> int | None:
    """Returns how long the latest attempt waited after it was due; None if none has started."""
    if record.claimed_at is None or record.attempt_due_at is None:
        return None
    return max(0, record.claimed_at - record.attempt_due_at)


def ran_ms(record: JobRecord) -> int | None:
    """Returns how long the last attempt of a finished job ran; None if it never started."""
    if record.claimed_at is None or record.ended_at is None:
        return None
    return max(0, record.ended_at - record.claimed_at)


def times_of(durations: Iterable[int | None]) -> JobTimes:
    """Returns the percentiles of durations."""
    known = sorted(one for one in durations if one is not None)
    if not known:
        return JobTimes()

    def percentile(share: float) -> int:
        return known[min(len(known) - 1, math.ceil(share * len(known)) - 1)]

    return JobTimes(len(known), percentile(0.5), percentile(0.95), percentile(0.99), known[-1])


def slowest(records: Iterable[JobRecord], limit: int) -> list[JobRecord]:
    """Returns the finished jobs that ran longest."""
    timed = [(ran, record) for record in records if (ran := ran_ms(record)) is not None]
    return [record for _, record in sorted(timed, key=lambda one: -one[0])[:limit]]


def group_by_error(records: Sequence[JobRecord]) -> list[ErrorGroup]:
    """Groups jobs by the class and the message of their last error, the most frequent first."""
    by_error: dict[tuple[str, str], list[JobRecord]] = {}
    for record in records:
        if record.error is not None:
            key = (record.error.type, message_pattern(record.error.message))
            by_error.setdefault(key, []).append(record)
    groups = [_group(type_, pattern, found) for (type_, pattern), found in by_error.items()]
    return sorted(groups, key=lambda group: (-group.count, group.type, group.pattern))


def message_pattern(message: str) -> str:
    """Replaces numbers, addresses and quoted text, as `group_dead_letters_by_error.lua` does."""
    text = _QUOTED.sub(lambda found: f"{found[0][0]}…{found[0][0]}", message[:1000])
    return _NUMBER.sub("#", _MAIL.sub("…", _URL.sub("…", text)))[:300]


def _group(type_: str, pattern: str, records: Sequence[JobRecord]) -> ErrorGroup:
    def failed_at(record: JobRecord) -> int:
        return record.ended_at or record.claimed_at or record.enqueued_at

    latest = max(records, key=failed_at)
    return ErrorGroup(
        type=type_,
        message=latest.error.message[:MAX_MESSAGE] if latest.error is not None else "",
        pattern=pattern,
        count=len(records),
        dead=sum(record.state is JobState.FAILED for record in records),
        first_seen=min(map(failed_at, records)),
        last_seen=failed_at(latest),
        job=latest.ref.full_id,
    )
