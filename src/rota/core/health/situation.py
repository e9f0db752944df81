"""The situation that the rules judge: measurements of one moment, with what is usual at this hour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from rota.core.health.usual_values import Usual
from rota.core.metric_series import Counts


class QueueSituation(msgspec.Struct, frozen=True, kw_only=True):
    """One queue now: its load, its last five minutes by task, and what is usual."""

    name: str
    is_paused: bool = False
    paused_by: str = ""
    pending: int = 0
    #: Dead letters.
    failed: int = 0
    #: For how long the next job to start has been due, ms; None when none is pending.
    oldest_wait_ms: int | None = None
    arrivals_per_second: float = 0.0
    #: Jobs that ended per second, in any state.
    services_per_second: float = 0.0
    #: The live workers that serve it, their slots, and those that are busy.
    workers: int = 0
    slots: int = 0
    busy: int = 0
    #: The last five minutes.
    recent: Counts = Counts()
    recent_by_task: Mapping[str, Counts] = {}
    #: What is usual at this hour; None without enough history.
    usual: Usual | None = None
    usual_by_task: Mapping[str, Usual] = {}


class RunningJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job that is being processed."""

    queue: str
    task: str
    #: Full id.
    job: str
    run: str
    worker: str
    age_ms: int
    #: True if its handler reports progress.
    has_progress: bool = False


class HeldLock(msgspec.Struct, frozen=True, kw_only=True):
    """A lock whose holder is being processed while other jobs wait for it."""

    queue: str
    name: str
    #: `queue:id@run`
    holder: str
    held_ms: int
    waiting: int


class DeadWorker(msgspec.Struct, frozen=True, kw_only=True):
    """A worker that stopped sending registrations without a clean stop."""

    id: str
    silent_ms: int
    queues: Sequence[str] = ()
    #: Jobs that it was running when it was last seen.
    running: int = 0


class ScheduleSituation(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule: its next tick and its last job."""

    #: `queue:name`
    id: str
    queue: str
    is_paused: bool = False
    is_orphaned: bool = False
    #: For how long its next tick has been due without being fired, ms; 0 if it is not due.
    overdue_ms: int = 0
    last_job: str | None = None
    has_last_run_failed: bool = False
    #: Why the last run failed.
    error: str = ""
    #: Why its latest tick created no job, if it did not and is recent; else "".
    missed: str = ""


class ServerRisk(msgspec.Struct, frozen=True):
    """A problem of the server, as found by `rota doctor`."""

    level: Literal["warn", "fail"]
    check: str
    message: str


class ScalingSituation(msgspec.Struct, frozen=True, kw_only=True):
    """The autoscaler and its pool."""

    is_paused: bool = False
    is_hold: bool = False
    reason: str = ""
    #: Time since its latest round, and between rounds.
    silent_ms: int = 0
    interval_ms: int = 0
    workers: int = 0
    max_workers: int = 0
    #: Workers that the demand alone calls for.
    needed: int = 0
    oldest_wait_ms: int = 0
    target_wait_ms: int | None = None


class PausedTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task whose jobs do not start in a queue."""

    task: str
    queue: str
    by: str = ""
    waiting: int = 0


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is judged, at one moment of the server's clock."""

    at: int
    queues: Sequence[QueueSituation] = ()
    running: Sequence[RunningJob] = ()
    locks: Sequence[HeldLock] = ()
    dead_workers: Sequence[DeadWorker] = ()
    schedules: Sequence[ScheduleSituation] = ()
    held_workflows: Sequence[str] = ()
    parked_workflows: Sequence[str] = ()
    risks: Sequence[ServerRisk] = ()
    paused_tasks: Sequence[PausedTask] = ()
    scaling: ScalingSituation | None = None

    def usual_of(self, queue: str, task: str) -> Usual | None:
        """Returns what is usual for a task of a queue."""
        found = next((one for one in self.queues if one.name == queue), None)
        return found.usual_by_task.get(task) if found is not None else None
