"""The verdict: all findings of a situation, and the state of the system in one line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from rota.core.health.finding import RANK, Finding, Verdict
from rota.core.health.job_rules import blocked_locks, long_running_jobs
from rota.core.health.queue_rules import queue_findings, slow_tasks
from rota.core.health.situation import Situation
from rota.core.health.system_rules import (
    dead_workers,
    paused_tasks,
    scaling_findings,
    schedule_findings,
    server_findings,
    workflow_findings,
)

#: Subjects that the line names, and phrases for each.
MAX_SUBJECTS: Final = 3
MAX_PHRASES: Final = 3
#: Findings of one situation.
MAX_FINDINGS: Final = 100


def findings(situation: Situation) -> list[Finding]:
    """Returns what is unusual, the worst first; at most a hundred."""
    found = [
        *server_findings(situation),
        *workflow_findings(situation),
        *(one for queue in situation.queues for one in queue_findings(queue)),
        *slow_tasks(situation.queues),
        *long_running_jobs(situation),
        *blocked_locks(situation),
        *schedule_findings(situation),
        *dead_workers(situation),
        *scaling_findings(situation),
        *paused_tasks(situation),
    ]
    return sorted(found, key=lambda one: RANK[one.level])[:MAX_FINDINGS]


def verdict(found: Iterable[Finding]) -> Verdict:
    """Returns the verdict on findings. Leave out what an operator has acknowledged."""
    severe = sorted((one for one in found if one.level != "notice"), key=lambda one: RANK[one.level])
    if not severe:
        return Verdict("ok", "Healthy")
    by_subject: dict[str, list[Finding]] = {}
    for one in severe:
        by_subject.setdefault(one.subject, []).append(one)
    parts = [_part(subject, of_subject) for subject, of_subject in by_subject.items()]
    rest = len(parts) - MAX_SUBJECTS
    shown = "; ".join(parts[:MAX_SUBJECTS]) + (f"; and {rest} more" if rest > 0 else "")
    if severe[0].level == "fail":
        return Verdict("fail", f"Critical: {shown}")
    return Verdict("warn", f"Degraded: {shown}")


def _part(subject: str, found: Sequence[Finding]) -> str:
    phrases = list(dict.fromkeys(one.phrase for one in found))[:MAX_PHRASES]
    return f"{subject} {', '.join(phrases)}".strip()
