"""The running jobs of a worker, each from its claim until its report is stored."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any

from rota.core.job_options import DEFAULT_OPTIONS, Options
from rota.core.job_record_codec import UndecodableRecord, decode_body
from rota.store.claim_replies import ClaimedJob
from rota.worker.deadline_queue import Deadline, Deadlines
from rota.worker.slots_per_task import TaskSlots

if TYPE_CHECKING:
    from rota.worker.runners.pool import RunnerProcess


@dataclass(slots=True, eq=False)
class RunningJob:
    """One claimed job. It has a slot while its handler runs, and a lease until the store has stored its report."""

    job: ClaimedJob
    options: Options = DEFAULT_OPTIONS
    #: Which kind of runner it needs: loop or process.
    kind: str = "loop"
    #: None while it waits for a slot.
    runner: RunnerProcess | None = None
    #: Identifies the attempt in the messages to and from its runner.
    attempt_id: int = 0
    claimed_at: float = 0.0
    started_at: float = 0.0
    #: Why it must stop: timeout, progress, cancelled, lost, shutdown, retired; None while it may run.
    stop_reason: str | None = None
    #: The handler has ended, or never began, and the report has not been stored yet.
    is_finished: bool = False
    has_slot: bool = False
    #: The task whose limit `per_worker` it counts towards, until its handler has ended.
    counted_task: bytes = b""
    deadlines: tuple[Deadline, ...] = ()

    @property
    def job_id(self) -> str:
        """`queue:id`, for log lines and the registry."""
        try:
            return f"{self.job.queue}:{decode_body(self.job.run, self.job.record).id}"
        except UndecodableRecord:
            return f"{self.job.queue}:@{self.job.run}"

    @property
    def task(self) -> str:
        """The name of its task; "" if the record cannot be decoded."""
        try:
            return decode_body(self.job.run, self.job.record).task
        except UndecodableRecord:
            return ""

    @property
    def timeout_message(self) -> str:
        """Which of its two timeouts an attempt that was stopped has exceeded."""
        if self.stop_reason == "progress":
            return f"made no progress for {(self.options.progress_timeout_ms or 0) / 1000:g} s and was stopped"
        return f"ran for more than {(self.options.timeout_ms or 0) / 1000:g} s and was stopped"

    def log_fields(self) -> dict[str, Any]:
        """The `extra` fields of a log record, under the names used everywhere."""
        took = monotonic() - self.started_at if self.started_at else 0
        return {
            "job_id": self.job_id,
            "queue": self.job.queue,
            "task": self.task,
            "attempt": self.job.counts.attempt,
            "took_ms": round(took * 1000),
            "trace_id": self.options.trace_id or None,
        }


@dataclass(slots=True)
class RunningJobs:
    """The jobs that a worker holds, by queue and run; those that wait for a slot, in the order they were claimed.

    A run whose lease was lost may be claimed again by the worker that lost it. The newer claim then replaces the older
    one here, and is the one that heartbeats renew.
    """

    #: How many handlers may run at once. `Autosizer` changes it.
    slots: int = 1
    #: Slots of tasks with a limit of their own.
    task_slots: TaskSlots = field(default_factory=lambda: TaskSlots({}))
    by_run: dict[tuple[str, str], RunningJob] = field(default_factory=dict[tuple[str, str], RunningJob])
    waiting: deque[RunningJob] = field(default_factory=deque[RunningJob])
    deadlines: Deadlines = field(default_factory=Deadlines)
    #: Slots in use.
    busy: int = 0
    #: Claimed, and not dispatched yet.
    arriving: int = 0
    #: How many have had a slot, and left it.
    finished: int = 0

    @property
    def free_slots(self) -> int:
        """Slots that no claimed job will take. Negative when jobs have been claimed ahead."""
        return self.slots - self.busy - len(self.waiting) - self.arriving

    def add(self, job: RunningJob) -> RunningJob | None:
        """Adds a job; returns the older claim of the same run that it replaces, if there is one."""
        key = job.job.queue, job.job.run
        older = self.by_run.get(key)
        self.by_run[key] = job
        return older

    def start(self, job: RunningJob) -> None:
        """Gives a job a slot."""
        job.has_slot = True
        self.busy += 1

    def finish(self, job: RunningJob) -> None:
        """Frees the slot of a job whose handler has ended. Its lease is held until it is acknowledged."""
        job.is_finished = True
        if job.counted_task:
            self.task_slots.release(job.counted_task)
            job.counted_task = b""
        if job.has_slot:
            job.has_slot = False
            self.busy -= 1
            self.finished += 1
        if job.deadlines:
            self.deadlines.drop(job)

    def acknowledge(self, queue: str, run: str, claim: str) -> None:
        """Removes a job whose report has been stored: its lease is over."""
        job = self.by_run.get((queue, run))
        if job is not None and job.job.claim == claim:
            del self.by_run[queue, run]

    def leases(self) -> dict[str, list[tuple[str, str]]]:
        """Queue -> (run, claim) of every lease."""
        leases: dict[str, list[tuple[str, str]]] = {}
        for job in self.by_run.values():
            leases.setdefault(job.job.queue, []).append((job.job.run, job.job.claim))
        return leases

    def with_slot(self) -> Iterator[RunningJob]:
        """Those whose handler is running."""
        return (job for job in self.by_run.values() if job.has_slot)
