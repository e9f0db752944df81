"""The doctor's check of the indexes: walks the jobs of all queues, and repairs what does not agree if asked to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from rota.client.rota import Rota
from rota.client.session import session_of
from rota.core.explain import format_count
from rota.errors import StoreDenied
from rota.monitoring.doctor import Finding
from rota.monitoring.keys_of_wrong_type import find_queue_keys_of_wrong_type
from rota.store.index_repair import IndexProblem, IndexRepair
from rota.store.job_store import JobStore
from rota.store.keys import failures_of

#: Runs of each queue that `rota doctor` checks without `--repair`: about two seconds of round trips.
CHECKED_RUNS: Final = 20_000
#: Problems that one finding names.
SHOWN: Final = 3


@dataclass(slots=True)
class IndexReport:
    """What the check of the indexes found."""

    is_repairing: bool
    checked: int = 0
    problems: list[IndexProblem] = field(default_factory=list[IndexProblem])
    #: Queues with more runs than were checked.
    cut_off: list[str] = field(default_factory=list[str])
    #: Why nothing was checked.
    denied: str = ""


async def examine_indexes(rota: Rota, *, is_repairing: bool = False) -> list[Finding]:
    """Checks the indexes of all queues, and repairs them if asked to. Call it after `examine` has found a server."""
    return list(judge_indexes(await check_indexes(rota, is_repairing=is_repairing)))


async def check_indexes(rota: Rota, *, is_repairing: bool = False) -> IndexReport:
    """Walks the queues. Without repairing it checks at most `CHECKED_RUNS` jobs of each, and changes nothing.

    Workers and producers may continue meanwhile. Queues with keys of a wrong type, which the doctor reports, are left
    out.
    """
    store, report = session_of(rota).store, IndexReport(is_repairing)
    bases = await session_of(rota).views.queues()
    names = dict.fromkeys(name for base in bases for name in (base, failures_of(base)))
    unreadable = {wrong.queue for wrong in await find_queue_keys_of_wrong_type(store, list(names))}
    try:
        for queue in names:
            if queue not in unreadable:
                await _check_queue(store, queue, report)
    except StoreDenied as error:
        report.denied = str(error)
    return report


async def _check_queue(store: JobStore, queue: str, report: IndexReport) -> None:
    repair, checked = IndexRepair(store), 0
    if report.is_repairing:
        async for found in repair.walk(queue, "repair"):
            report.checked += found.checked
            report.problems += found.problems
        return
    async for found in repair.walk_runs(queue, "check"):
        checked += found.checked
        report.problems += found.problems
        if checked >= CHECKED_RUNS:
            report.cut_off.append(queue)
            break
    else:
        async for found in repair.walk_entries(queue, "check"):
            report.problems += found.problems
    report.checked += checked


def judge_indexes(report: IndexReport) -> Iterator[Finding]:
    """Yields the findings that follow from the check."""
    if report.denied:
        yield Finding("ok", "indexes", f"not checked: {report.denied}")
        return
    repairable = [problem for problem in report.problems if problem.is_repairable]
    lost = [problem for problem in report.problems if not problem.is_repairable]
    if repairable and report.is_repairing:
        yield Finding("warn", "indexes", f"repaired {_named(repairable)}; check what else writes to this namespace")
    elif repairable:
        yield Finding(
            "fail", "indexes", f"{_named(repairable)}: run `rota doctor --repair`, which works while jobs run"
        )
    if lost:
        yield Finding("fail" if not report.is_repairing else "warn", "records", _named(lost))
    if report.problems:
        return
    checked = f"the indexes of {format_count(report.checked, 'job')} agree"
    if report.cut_off:
        checked += f"; only the first {CHECKED_RUNS:,} of {', '.join(report.cut_off)}: `--repair` checks all"
    yield Finding("ok", "indexes", checked)


def _named(problems: Sequence[IndexProblem]) -> str:
    shown = [f"{p.queue} {p.run} ({p.index}: {p.what})" for p in problems[:SHOWN]]
    more = f" and {len(problems) - SHOWN:,} more" if len(problems) > SHOWN else ""
    return f"{format_count(len(problems), 'problem')}: {'; '.join(shown)}{more}"
