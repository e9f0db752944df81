"""Reports of attempts: how each ended, as types, and their encoding for the scripts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, cast

import msgspec

from rota.store.batch_limit_constants import BATCH_BYTES
from rota.store.redis.retrying_client import Argument


class Completed(msgspec.Struct, frozen=True, array_like=True, tag="completed", gc=False):
    """Report: the attempt succeeded. `retention` is how long the run is kept, and after a space its task."""

    run: str
    claim: str
    retention: str
    result: bytes


class Failed(msgspec.Struct, frozen=True, array_like=True, tag="failed", gc=False):
    """Report: the attempt failed. `next_attempt` is a time, or "final"."""

    run: str
    claim: str
    next_attempt: str
    retention: str
    error: bytes


class Snoozed(msgspec.Struct, frozen=True, array_like=True, tag="snoozed", gc=False):
    """Report: the handler asked to run again at `next_attempt`."""

    run: str
    claim: str
    next_attempt: str


class Returned(msgspec.Struct, frozen=True, array_like=True, tag="returned", gc=False):
    """Report: the run was handed back unfinished. `started` is "started" or "unstarted"."""

    run: str
    claim: str
    started: str


class Cancelled(msgspec.Struct, frozen=True, array_like=True, tag="cancelled", gc=False):
    """Report: the handler cancelled its own job."""

    run: str
    claim: str
    reason: str


class CancelConfirmed(msgspec.Struct, frozen=True, array_like=True, tag="cancel_confirmed", gc=False):
    """Report: the handler of a cancelled or deleted run has stopped."""

    run: str
    claim: str


class Lost(msgspec.Struct, frozen=True, array_like=True, tag="lost", gc=False):
    """Report: the process that ran the attempt died.

    `charge` is "charged", or "uncharged" if it also ran other jobs, and any of them may be the reason. `what_happened`
    is a sentence about the process.
    """

    run: str
    claim: str
    charge: str = "charged"
    what_happened: str = "the process running this job died"


Report = Completed | Failed | Snoozed | Returned | Cancelled | CancelConfirmed | Lost
#: Report -> the script that stores it.
VERBS: Final[dict[type, str]] = {
    Completed: "complete",
    Failed: "fail",
    Snoozed: "snooze",
    Returned: "return",
    Cancelled: "cancel_self",
    CancelConfirmed: "confirm_cancelled_run_stopped",
    Lost: "report_dead_process",
}


#: The reason for refusing a report that is to be sent again: the call had enough to do with those before it.
LATER: Final = "later"


def split_reports(reports: Iterable[Report], count: int) -> Iterator[list[Report]]:
    """Splits reports of one verb into parts that one call may carry: `count` of them, and `BATCH_BYTES`."""
    part: list[Report] = []
    size = 0
    for report in reports:
        length = 0
        if isinstance(report, Completed):
            length = len(report.result)
        elif isinstance(report, Failed):
            length = len(report.error)
        if part and (len(part) == count or size + length > BATCH_BYTES):
            yield part
            part, size = [], 0
        part.append(report)
        size += length
    if part:
        yield part


def encode_completed(reports: Sequence[Report], words: list[Argument]) -> list[Report]:
    """Appends completed runs to `words`, grouped by claim and retention. Returns the reports in the order written."""
    groups: dict[tuple[str, str], list[Completed]] = {}
    for report in cast("Sequence[Completed]", reports):
        groups.setdefault((report.claim, report.retention), []).append(report)
    for (claim, retention), group in groups.items():
        results = [report.result for report in group]
        has_results = any(results)
        words += (claim, retention, len(group), "results" if has_results else "", *(report.run for report in group))
        if has_results:
            words += results
    return [report for group in groups.values() for report in group]


def read_postponed(answer: list[bytes], reports: Sequence[Report]) -> list[Report]:
    """Returns the reports that are to be sent again."""
    return [reports[int(answer[at])] for at in range(0, len(answer), 2) if answer[at + 1].decode() == LATER]


def read_refusals(answer: list[bytes], reports: Sequence[Report]) -> dict[str, str]:
    """Decodes the reply to a report. Returns run -> reason, for each report that was refused."""
    return {reports[int(answer[at])].run: answer[at + 1].decode() for at in range(0, len(answer), 2)}
