"""What passes between a worker and the store: what a claim brings, and what is reported of each run."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final, NamedTuple, cast

from rota.core.codec import FIRST_ATTEMPT, decode_counts
from rota.core.job import Counts
from rota.store.gateway import Argument


class Claimed(NamedTuple):
    """One run that a claim leased."""

    queue: str
    run: str
    claim: str
    counts: Counts
    record: bytes


class Claims(NamedTuple):
    """What a claim brought. `wait_ms` says when something falls due there; None when nothing will."""

    jobs: list[Claimed]
    wait_ms: int | None
    #: There is news for dependents that nobody is delivering.
    has_news: bool = False
    #: When the failures of the queue want to be looked at; None when there are none at all.
    failures_ms: int | None = None
    #: Runs that were taken from workers that vanished.
    vanished: tuple[str, ...] = ()


class Completed(NamedTuple):
    """Report: the attempt succeeded. `rule` is how long it is kept, and behind a space its task."""

    run: str
    claim: str
    rule: str
    result: bytes


class Failed(NamedTuple):
    """Report: the attempt failed; `next_attempt` is a moment, or "final"."""

    run: str
    claim: str
    next_attempt: str
    rule: str
    error: bytes


class Snoozed(NamedTuple):
    """Report: the handler asked to be run at that moment."""

    run: str
    claim: str
    next_attempt: str


class Returned(NamedTuple):
    """Report: given back unfinished; `started` is "started" or "unstarted"."""

    run: str
    claim: str
    started: str


class Cancelled(NamedTuple):
    """Report: the handler itself asked to end as cancelled."""

    run: str
    claim: str
    reason: str


class Lost(NamedTuple):
    """Report: the process that ran it is dead."""

    run: str
    claim: str


Report = Completed | Failed | Snoozed | Returned | Cancelled | Lost
#: What each of them does to its run.
VERBS: Final[dict[type, str]] = {
    Completed: "complete",
    Failed: "fail",
    Snoozed: "snooze",
    Returned: "return",
    Cancelled: "give_up",
    Lost: "reap",
}


def read_claims(queue: str, token: str, answer: list[bytes]) -> Claims:
    """What a claim's answer says."""
    fence, wait, said, runs, counts = (text.decode() for text in answer[:5])
    claim = f"{fence}.{token}"
    each_counts = map(decode_counts, counts.split(",")) if counts else itertools.repeat(FIRST_ATTEMPT)
    jobs = [
        Claimed(queue, run, claim, of_run, record)
        for run, of_run, record in zip(runs.split(), each_counts, answer[5:], strict=False)
    ]
    words = said.split()
    failures = next((int(word.removeprefix("fail:")) for word in words if word.startswith("fail:")), None)
    vanished = next((word.removeprefix("vanished:").split(",") for word in words if word.startswith("vanished:")), ())
    return Claims(jobs, int(wait) if wait else None, "outbox" in words, failures, tuple(vanished))


def read_push(message: bytes) -> tuple[int, Claimed]:
    """What a push says that brings a job: the number of the claim that was carried out, and the job."""
    head, _, record = message.partition(b"\n")
    _, queue, call, claim, run, counts = head.decode().split(" ", 5)
    return int(call), Claimed(queue, run, claim, decode_counts(counts), record)


def group_completed(reports: Sequence[Report], words: list[Argument]) -> list[Report]:
    """Puts completed runs into words, those of one claim and rule together; the reports in the order of the words."""
    groups: dict[tuple[str, str], list[Completed]] = {}
    for report in cast("Sequence[Completed]", reports):
        groups.setdefault((report.claim, report.rule), []).append(report)
    for (claim, rule), group in groups.items():
        results = [report.result for report in group]
        has_results = any(results)
        words += (claim, rule, len(group), "results" if has_results else "", *(report.run for report in group))
        if has_results:
            words += results
    return [report for group in groups.values() for report in group]


def read_refusals(answer: list[bytes], reports: Sequence[Report]) -> dict[str, str]:
    """run -> why, for each report that was refused."""
    return {reports[int(answer[at])].run: answer[at + 1].decode() for at in range(0, len(answer), 2)}
