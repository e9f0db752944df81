"""The input of a scaling decision: the demand of the served queues, the workers, and earlier decisions.

Times are milliseconds of the server's clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class WorkerState(StrEnum):
    """The state of a worker's machine, pod or process, as far as scaling is concerned."""

    #: Requested from the provider; the worker has not registered yet.
    BOOTING = "booting"
    #: Registered and claiming.
    RUNNING = "running"
    #: Marked to leave: it claims nothing, finishes its jobs and exits. No capacity.
    DRAINING = "draining"
    #: The provider reports it as broken, or it exited without having been drained. No capacity.
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueDemand:
    """The demand of one served queue. Of a sharded queue, the sum over its shards."""

    queue: str
    #: Pending jobs with a priority above normal (below 0), and all other pending jobs.
    high: int = 0
    normal: int = 0
    #: For how long the next job to start has been due; None when none is pending.
    oldest_wait_ms: int | None = None
    #: Scheduled jobs, and ticks of schedules if known, that fall due within `Policy.boot_ms` from now.
    due: int = 0
    #: Jobs enqueued per second: over about the last minute, and over about the last five.
    arrivals_per_second: float = 0.0
    arrivals_per_second_5m: float = 0.0
    #: Mean duration of the attempts that ended in about the last five minutes, or of all that ever ended if those are
    #: fewer than ten; None when none ended. The same of about the last minute; None when fewer than ten ended.
    mean_run_ms: float | None = None
    mean_run_ms_1m: float | None = None
    #: Jobs that run now.
    processing: int = 0
    #: No job of a paused queue starts: it adds no demand.
    is_paused: bool = False
    #: Slots that limits let this queue use at once; None without limits.
    max_slots: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedWorker:
    """One worker, or a machine on which one boots."""

    #: Names the worker in `Decision.drain` and `Decision.replace`. The caller maps it to a machine and a worker id.
    id: str
    state: WorkerState
    #: Its slots and how many of them are busy; of a booting worker: the slots it will have, 0 if unknown.
    slots: int = 0
    busy: int = 0
    #: When it was requested from the provider, or registered if that is unknown.
    started_ms: int = 0
    #: When it registered first; None while it boots, or if unknown. Its boot time is measured with it.
    registered_ms: int | None = None
    #: Its latest heartbeat or registration; None before the first.
    heartbeat_ms: int | None = None
    #: When the oldest of its running jobs started; None if it runs none.
    work_started_ms: int | None = None
    #: It runs a job of a task that is protected from scale-down.
    is_protected: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PastDecision:
    """An earlier decision, as the caller stored it."""

    at_ms: int
    #: `Decision.count` and `Decision.needed`.
    count: int
    needed: int
    #: `Decision.launch` and the number of workers in `Decision.drain`.
    launched: int = 0
    drained: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Everything a decision depends on, apart from the policy and the time."""

    #: When the demand and the workers were read; None if they could not be read.
    at_ms: int | None
    #: Since when every reading has succeeded: the planner's start, or the end of the latest outage. Heartbeats that
    #: are missing from before that moment do not count against a worker.
    readable_since_ms: int | None = None
    queues: Sequence[QueueDemand] = ()
    #: Every worker of the pool and every machine that boots, is draining or has failed. Machines that are gone are left
    #: out.
    workers: Sequence[ObservedWorker] = ()
    #: Decisions of at least the last `Policy.history_ms`, oldest first. Held decisions are left out.
    history: Sequence[PastDecision] = ()
    #: Why the store could not be read, or why the provider could not list or change machines; None if all is well.
    store_error: str | None = None
    provider_error: str | None = None
