"""Every error Rota raises, in one tree.

RotaError
├── ConfigurationError        the program is set up wrong; it will fail again until it is changed
│   ├── TaskConflict          two functions under one task name
│   ├── UnknownTask           a name that no declared task has
│   └── EmbeddedUnavailable   no embedded server on this platform
├── InvalidJob                refused at enqueue; nothing was stored (also a ValueError)
│   ├── InvalidOption         an id, queue, priority, time … out of bounds
│   ├── InvalidArguments      arguments that do not fit the task's annotations
│   └── PayloadTooLarge       more bytes than the limit
├── IdInUse                   another run of that id has not ended, and `Reject()` was asked for
├── JobNotFound               no such job, or no longer kept
├── ScheduleNotFound          no such schedule
├── ScheduleOutdated          the schedule that is stored has a higher version; nothing was changed
├── WrongState                the state of the job or workflow does not allow it; `.state` says which it is in
├── WorkflowNotFound          no such workflow, or no longer kept
├── WorkflowFailed            raised by a workflow's `result()`: `.state` says how it stands, `.cause` why
├── OperationNotFound         no such operation, or no longer kept
├── WorkerNotFound            no such worker, or none that was heard of in the last day
├── LeaseLost                 another worker owns the job now; this attempt's result was not stored
├── JobFailed                 raised by `result()`: the job failed for good; `.error` has the record
├── JobCancelled              raised by `result()`: the job was cancelled; `.reason` says why
├── ResultTimeout             raised by `result(timeout=…)`: it has not ended yet (also a TimeoutError)
└── StoreError                the server refused or could not be asked
    ├── StoreUnavailable      down, unreachable, loading, or a read-only replica; worth trying again
    ├── StoreFull             `maxmemory` reached; nothing was stored; drain or add memory
    ├── StoreDenied           wrong password, or a user without the rights Rota needs
    └── StoreUnsupported      too old a server, or a stored format newer than this Rota

What a task may raise on purpose is a branch of its own:

TaskSignal
├── RetryLater(after=… | at=…)   fail this attempt, and try again at that time
├── Snooze(seconds)              not now: run it later, no failure spent
├── PermanentError(message)      fail for good, no retry
└── Cancel(reason)               end as cancelled
"""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

__all__ = [
    "Cancel",
    "ConfigurationError",
    "EmbeddedUnavailable",
    "IdInUse",
    "InvalidArguments",
    "InvalidJob",
    "InvalidOption",
    "JobCancelled",
    "JobFailed",
    "JobNotFound",
    "LeaseLost",
    "OperationNotFound",
    "PayloadTooLarge",
    "PermanentError",
    "ResultTimeout",
    "RetryLater",
    "RotaError",
    "ScheduleNotFound",
    "ScheduleOutdated",
    "Snooze",
    "StoreDenied",
    "StoreError",
    "StoreFull",
    "StoreUnavailable",
    "StoreUnsupported",
    "TaskConflict",
    "TaskSignal",
    "UnknownTask",
    "WorkerNotFound",
    "WorkflowFailed",
    "WorkflowNotFound",
    "WrongState",
]


def _subject(name: str) -> str:
    """How a message calls what it is about."""
    return name if name.startswith(("workflow ", "worker ")) else f"job {name}"


class RotaError(Exception):
    """Base of everything Rota raises by itself."""


class ConfigurationError(RotaError):
    """The program is set up wrong: trying again will not help, changing it will."""


class TaskConflict(ConfigurationError):
    """Two different functions were declared under one task name."""


class UnknownTask(ConfigurationError):
    """A task name that nobody declared."""


class EmbeddedUnavailable(ConfigurationError):
    """There is no embedded server here: give the URL of one."""


class InvalidJob(RotaError, ValueError):
    """Refused at enqueue. Nothing was stored."""


class InvalidOption(InvalidJob):
    """An option is out of bounds; `option` names it."""

    def __init__(self, option: str, message: str) -> None:
        super().__init__(f"{option}: {message}")
        self.option = option


class InvalidArguments(InvalidJob):
    """The arguments do not fit the task's parameters and their annotations."""

    def __init__(self, task: str, message: str) -> None:
        super().__init__(f"task {task!r}: {message}")
        self.task = task


class PayloadTooLarge(InvalidJob):
    """More bytes than the limit. Store the data elsewhere and pass a reference to it."""

    def __init__(self, what: str, size: int, limit: int) -> None:
        super().__init__(
            f"{what} takes {size:,} bytes, the limit is {limit:,}: keep large data elsewhere and pass a reference to it"
        )
        self.size = size
        self.limit = limit


class WorkflowNotFound(RotaError, LookupError):
    """There is no such workflow: it never was, or ended longer ago than it is kept."""

    def __init__(self, workflow_id: str) -> None:
        super().__init__(f"there is no workflow {workflow_id}: it never was, or it ended more than a day ago")
        self.workflow_id = workflow_id


class OperationNotFound(RotaError, LookupError):
    """There is no such operation: it never was, or ended longer ago than it is kept."""

    def __init__(self, operation_id: str) -> None:
        super().__init__(f"there is no operation {operation_id}: it never was, or it ended more than a week ago")
        self.operation_id = operation_id


class WorkerNotFound(RotaError, LookupError):
    """There is no such worker: it never was, or has not been heard of for a day."""

    def __init__(self, worker: str) -> None:
        super().__init__(f"there is no worker {worker}: see which there are with `rota workers`")
        self.worker = worker


class WorkflowFailed(RotaError):
    """A workflow did not end well: `state` says how it stands, `cause` why."""

    def __init__(self, workflow_id: str, state: str, cause: str) -> None:
        hint = {"failed": "; resume it to go on", "parked": "; a compensation needs help: mend it, then resume"}
        super().__init__(f"workflow {workflow_id} is {state}: {cause or 'by request'}{hint.get(state, '')}")
        self.workflow_id = workflow_id
        self.state = state
        self.cause = cause


class IdInUse(RotaError):
    """A run of that id has not ended yet, and was not to be changed, or cannot be changed into the job asked for."""

    def __init__(self, job_id: str, run: str, why: str = "in_use") -> None:
        unlike = {"task": ", which calls another task", "after": ", which comes after other jobs"}.get(why, "")
        super().__init__(
            f"{_subject(job_id)} already has an unfinished run ({run}){unlike}: "
            "wait for it, cancel it, or choose another id"
            if job_id != run
            else f"there is a workflow {run} already, or steps of one that are still kept: choose another id"
        )
        self.job_id = job_id
        self.run = run


class JobNotFound(RotaError, LookupError):
    """No such job: the id is wrong, or the job ended and is no longer kept."""

    def __init__(self, job_id: str) -> None:
        super().__init__(f"job {job_id} does not exist, or ended and is no longer kept")
        self.job_id = job_id


class ScheduleNotFound(RotaError, LookupError):
    """No such schedule: the name is wrong, or it was removed."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no schedule {name}: see which there are with `rota schedule list`")
        self.name = name


class ScheduleOutdated(RotaError):
    """The schedule that is stored has a higher version than the one given. Nothing was changed."""

    def __init__(self, name: str, version: int, stored: int) -> None:
        super().__init__(
            f"schedule {name} is stored with version {stored}, which is newer than {version}: "
            f"give version={stored} or more to change it"
        )
        self.name = name
        self.version = version
        self.stored = stored


class WrongState(RotaError):
    """The job is in a state that does not allow this; `state` says which, and nothing was changed."""

    def __init__(self, job_id: str, state: str, verb: str, hint: str = "") -> None:
        super().__init__(f"cannot {verb} {_subject(job_id)}: it is {state}" + (f"; {hint}" if hint else ""))
        self.job_id = job_id
        self.state = state
        self.verb = verb


class LeaseLost(RotaError):
    """Another worker owns the job now, or it has ended: this attempt's report was not stored."""

    def __init__(self, job_id: str) -> None:
        super().__init__(f"the lease of job {job_id} is lost: another worker may own it, stop working on it")
        self.job_id = job_id


class JobFailed(RotaError):
    """The awaited job failed for good. `error` is the record: kind, type, message, traceback, attributes."""

    def __init__(self, job_id: str, error: Any) -> None:
        summary = f": {error.type}: {error.message}" if error is not None else ""
        super().__init__(f"job {job_id} failed for good{summary}")
        self.job_id = job_id
        self.error = error


class JobCancelled(RotaError):
    """The awaited job was cancelled; `reason` says why."""

    def __init__(self, job_id: str, reason: str) -> None:
        super().__init__(f"job {job_id} was cancelled" + (f": {reason}" if reason else ""))
        self.job_id = job_id
        self.reason = reason


class ResultTimeout(RotaError, TimeoutError):
    """The job has not ended within the time given. It goes on."""

    def __init__(self, job_id: str, state: str, timeout: float) -> None:
        super().__init__(f"{_subject(job_id)} has not ended within {timeout:g} s, it is {state}; it goes on")
        self.job_id = job_id
        self.state = state


class StoreError(RotaError):
    """The server refused a call, or could not be asked."""


class StoreUnavailable(StoreError):
    """The server is down, unreachable, loading, or a replica that takes no writes. Worth trying again."""


class StoreFull(StoreError):
    """The server is at its `maxmemory`. Nothing was stored; running jobs can still finish."""


class StoreDenied(StoreError):
    """The password is missing or wrong, or the user lacks a right that Rota needs."""


class StoreUnsupported(StoreError):
    """The server is too old, or holds a format that is newer than this version of Rota."""


class TaskSignal(Exception):
    """Base of what a task raises on purpose to say how its attempt ends."""


class RetryLater(TaskSignal):
    """This attempt failed; try again after some seconds, or at a time. It replaces the backoff."""

    def __init__(self, message: str = "", *, after: float | None = None, at: datetime | None = None) -> None:
        if (after is None) == (at is None):
            raise TypeError("RetryLater takes exactly one of after= and at=")
        if at is not None and at.tzinfo is None:
            raise TypeError("RetryLater(at=…) needs a datetime with a time zone")
        if after is not None and not math.isfinite(after):
            raise ValueError(f"RetryLater(after=…) takes a number of seconds, not {after!r}")
        super().__init__(message or "to be retried later")
        self.after = after
        self.at = at


class Snooze(TaskSignal):
    """Not now: run the job again after `seconds`. Spends no failure."""

    def __init__(self, seconds: float) -> None:
        if not math.isfinite(seconds):
            raise ValueError(f"Snooze takes a number of seconds, not {seconds!r}")
        super().__init__(f"snoozed for {seconds:g} s")
        self.seconds = seconds


class PermanentError(TaskSignal):
    """Fail for good, whatever retries are left."""


class Cancel(TaskSignal):
    """End this job as cancelled, with a reason."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
