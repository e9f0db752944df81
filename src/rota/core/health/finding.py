"""Findings: what is unusual now, about which queue, job, worker or schedule, and how severe it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

import msgspec

#: "notice": to be looked at, nothing is degraded; "warn": degraded; "fail": jobs do not run, or may be lost.
Level = Literal["notice", "warn", "fail"]
Kind = Literal[
    "slow_queue",
    "slow_task",
    "long_wait",
    "growing_backlog",
    "saturated",
    "error_rate",
    "long_running_job",
    "blocked_lock",
    "missed_schedule",
    "failed_schedule",
    "orphaned_schedule",
    "scaling",
    "server",
    "parked_workflows",
    "held_workflows",
    "dead_letters",
    "dead_worker",
    "unserved_queue",
    "paused_queue",
    "paused_task",
]
RANK: Final[Mapping[str, int]] = {"fail": 0, "warn": 1, "notice": 2}
#: Names listed by one finding; its count includes all of them.
MAX_NAMES: Final = 20


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One unusual condition. `key` stays the same for as long as the condition lasts."""

    key: str
    kind: Kind
    level: Level
    #: What it is about, and what is unusual: "mail", "30 × slower than usual".
    subject: str
    phrase: str
    #: A sentence with the figures and what to do.
    detail: str
    count: int = 1
    queue: str | None = None
    task: str | None = None
    #: Full id.
    job: str | None = None
    worker: str | None = None
    #: Full name.
    schedule: str | None = None
    names: tuple[str, ...] = ()
    #: The measured value and the usual one, in ms, jobs or as a share.
    value: float | None = None
    usual: float | None = None

    @property
    def text(self) -> str:
        """The finding in a few words."""
        return f"{self.subject} {self.phrase}" if self.subject else self.phrase


class Verdict(msgspec.Struct, frozen=True):
    """The state of the whole system in one line."""

    level: Literal["ok", "warn", "fail"]
    text: str
