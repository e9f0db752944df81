"""Decodes claim replies and pushes: the jobs that a worker has leased."""

from __future__ import annotations

import itertools
from typing import NamedTuple

from rota.core.job_record import AttemptCounts
from rota.core.job_record_codec import FIRST_ATTEMPT, decode_counts


class ClaimedJob(NamedTuple):
    """One run leased by a claim."""

    queue: str
    run: str
    claim: str
    counts: AttemptCounts
    record: bytes


class ClaimReply(NamedTuple):
    """The reply to a claim."""

    jobs: list[ClaimedJob]
    #: Until the next run of the queue falls due; None when none will.
    wait_ms: int | None
    #: The outbox holds outcomes of parents that no participant is delivering.
    has_outbox: bool = False
    #: Until the queue's failure jobs need a claim; None when there are none.
    failures_wait_ms: int | None = None
    #: Runs that were taken back from workers whose leases expired.
    lost_runs: tuple[str, ...] = ()
    #: Runs of full tasks were passed over; the next claim goes on at this rank.
    passed_until: int | None = None


def read_claim_reply(queue: str, claim_token: str, answer: list[bytes]) -> ClaimReply:
    """Decodes the reply of the script `claim`."""
    fence, wait, notices, runs, counts = (text.decode() for text in answer[:5])
    claim = f"{fence}.{claim_token}"
    each_counts = map(decode_counts, counts.split(",")) if counts else itertools.repeat(FIRST_ATTEMPT)
    jobs = [
        ClaimedJob(queue, run, claim, of_run, record)
        for run, of_run, record in zip(runs.split(), each_counts, answer[5:], strict=False)
    ]
    words = notices.split()
    failures = next((int(word.removeprefix("fail:")) for word in words if word.startswith("fail:")), None)
    lost = next((word.removeprefix("vanished:").split(",") for word in words if word.startswith("vanished:")), ())
    passed = next((int(word.removeprefix("passed:")) for word in words if word.startswith("passed:")), None)
    return ClaimReply(jobs, int(wait) if wait else None, "outbox" in words, failures, tuple(lost), passed)


def read_push(message: bytes) -> tuple[int, ClaimedJob]:
    """Decodes a push that carries a job. Returns the number of the claim that it fulfils, and the job."""
    head, _, record = message.partition(b"\n")
    _, queue, call_number, claim, run, counts = head.decode().split(" ", 5)
    return int(call_number), ClaimedJob(queue, run, claim, decode_counts(counts), record)
