"""Every error Rota raises, in one tree.

RotaError
├── ConfigurationError        the program is configured wrongly; retrying does not help
│   ├── TaskConflict          two functions under one task name
│   ├── UnknownTask           a name that no declared task has
│   └── EmbeddedUnavailable   no embedded server on this platform
├── InvalidJob                rejected at enqueue; nothing was stored (also a ValueError)
│   ├── InvalidOption         an id, queue, priority, time … out of bounds
│   ├── InvalidArguments      arguments that do not fit the task's annotations
│   └── PayloadTooLarge       more bytes than the limit
├── Undecryptable             an encrypted value whose key is missing, or that was changed or copied
├── IdInUse                   another run of that id has not ended, and `Reject()` was requested
├── JobNotFound               no such job, or no longer kept
├── BlobNotFound              the data of a `Blob` is gone, incomplete, or belongs to another job
├── ScheduleNotFound          no such schedule
├── ScheduleOutdated          the stored schedule has a higher version; nothing was changed
├── WrongState                the state of the job or workflow, `.state`, does not allow it
├── WorkflowNotFound          no such workflow, or no longer kept
├── WorkflowFailed            raised by a workflow's `result()`; has its `.state` and the `.cause`
├── OperationNotFound         no such operation, or no longer kept
├── WorkerNotFound            no such worker, or it has been silent for more than 24 h
├── JobFailed                 raised by `result()`: the job failed for good; `.error` has the record
├── JobCancelled              raised by `result()`: the job was cancelled, with a `.reason`
├── Timeout                   an attempt was stopped: it exceeded `timeout` or `progress_timeout` (also a TimeoutError)
├── ProcessKilled             the process of an attempt died: `.signal`, or `.exit_code` if it exited
├── WorkerLost                the worker of an attempt vanished: `.worker`
├── ResultTimeout             raised by `result(timeout=…)`: it has not ended yet (also a TimeoutError)
└── StoreError                the server refused a command, or could not be reached
    ├── StoreUnavailable      down, unreachable, loading, or a read-only replica; retry later
    ├── StoreFull             `maxmemory` reached; nothing was stored; drain or add memory
    ├── StoreDenied           wrong password, or a user without the rights Rota needs
    └── StoreUnsupported      too old a server, or a stored format newer than this Rota

Exceptions that a task may raise to end its attempt are a tree of their own:

TaskSignal
├── RetryLater(after=… | at=…)   fail this attempt, and retry at that time
├── Snooze(seconds)              run it later; counts as no failure
├── PermanentError(message)      fail for good, no retry
└── Cancel(reason)               end as cancelled
"""

from __future__ import annotations

import math
import signal
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
    "OperationNotFound",
    "PayloadTooLarge",
    "PermanentError",
    "ProcessKilled",
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
    "Timeout",
    "UnknownTask",
    "WorkerLost",
    "WorkerNotFound",
    "WorkflowFailed",
    "WorkflowNotFound",
    "WrongState",
]


def _subject(name: str) -> str:
    """Returns the subject of a message."""
    return name if name.startswith(("workflow ", "worker ")) else f"job {name}"


class RotaError(Exception):
    """Base class of all errors of Rota."""


class ConfigurationError(RotaError):
    """The program is configured wrongly. Retrying does not help."""


class TaskConflict(ConfigurationError):
    """Two different functions were declared under one task name."""


class UnknownTask(ConfigurationError):
    """No declared task has this name."""


class EmbeddedUnavailable(ConfigurationError):
    """There is no embedded server on this platform: set the URL of a server."""


class InvalidJob(RotaError, ValueError):
    """Rejected at enqueue. Nothing was stored."""


class InvalidOption(InvalidJob):
    """An option is out of bounds: `option` is its name, `reason` what is wrong with it."""

    def __init__(self, option: str, message: str) -> None:
        super().__init__(f"{option}: {message}")
        self.option = option
        self.reason = message


class Undecryptable(RotaError):
    """A stored value cannot be decrypted: its key is missing, or it was changed or copied from elsewhere."""


class InvalidArguments(InvalidJob):
    """The arguments do not fit the task's parameters and their annotations.

    `field` is the path of the argument concerned ("address.street", "items.1"), empty if there is no single one;
    `reason` is what is wrong with it.
    """

    def __init__(self, task: str, message: str, *, field: str = "", reason: str = "") -> None:
        super().__init__(f"task {task!r}: {message}")
        self.task = task
        self.field = field
        self.reason = reason or message


class PayloadTooLarge(InvalidJob):
    """More bytes than the limit. Store the data elsewhere and pass a reference to it."""

    def __init__(self, what: str, size: int, limit: int) -> None:
        super().__init__(
            f"{what} takes {size:,} bytes, the limit is {limit:,}: keep large data elsewhere and pass a reference to it"
        )
        self.size = size
        self.limit = limit


class WorkflowNotFound(RotaError, LookupError):
    """No such workflow, or it ended and is no longer kept."""

    def __init__(self, workflow_id: str) -> None:
        super().__init__(f"there is no workflow {workflow_id}: the id is wrong, or it ended more than a day ago")
        self.workflow_id = workflow_id


class OperationNotFound(RotaError, LookupError):
    """No such bulk operation, or it ended and is no longer kept."""

    def __init__(self, operation_id: str) -> None:
        super().__init__(f"there is no operation {operation_id}: the id is wrong, or it ended more than a week ago")
        self.operation_id = operation_id


class WorkerNotFound(RotaError, LookupError):
    """No such worker, or it has been silent for more than 24 h."""

    def __init__(self, worker: str) -> None:
        super().__init__(f"there is no worker {worker}: list the workers with `rota workers`")
        self.worker = worker


class WorkflowFailed(RotaError):
    """A workflow failed, was undone or cancelled, or waits for an operator. `cause` is the reason."""

    def __init__(self, workflow_id: str, state: str, cause: str) -> None:
        hint = {"failed": "; resume it to continue", "parked": "; a compensation failed: fix its cause, then resume"}
        super().__init__(f"workflow {workflow_id} is {state}: {cause or 'by request'}{hint.get(state, '')}")
        self.workflow_id = workflow_id
        self.state = state
        self.cause = cause


class IdInUse(RotaError):
    """A run of that id has not ended, and was not to be changed, or cannot become the requested job."""

    def __init__(self, job_id: str, run: str, why: str = "in_use") -> None:
        unlike = {"task": ", which calls another task", "after": ", which depends on other jobs"}.get(why, "")
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


class BlobNotFound(RotaError, LookupError):
    """The data of a `Blob` is gone, incomplete, or belongs to another job."""

    def __init__(self, job_id: str, blob: str, reason: str) -> None:
        super().__init__(f"blob {blob} of job {job_id} cannot be read: {reason}")
        self.job_id = job_id
        self.blob = blob


class ScheduleNotFound(RotaError, LookupError):
    """No such schedule: the name is wrong, or it was removed."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no schedule {name}: list the schedules with `rota schedule list`")
        self.name = name


class ScheduleOutdated(RotaError):
    """The stored schedule has a higher version than the given one. Nothing was changed."""

    def __init__(self, name: str, version: int, stored: int) -> None:
        super().__init__(
            f"schedule {name} is stored with version {stored}, which is newer than {version}: "
            f"give version={stored} or more to change it"
        )
        self.name = name
        self.version = version
        self.stored = stored


class WrongState(RotaError):
    """The state of the job or workflow, `state`, does not allow this. Nothing was changed."""

    def __init__(self, job_id: str, state: str, verb: str, hint: str = "") -> None:
        super().__init__(f"cannot {verb} {_subject(job_id)}: it is {state}" + (f"; {hint}" if hint else ""))
        self.job_id = job_id
        self.state = state
        self.verb = verb


class JobFailed(RotaError):
    """The awaited job failed for good. `error` is the record: kind, type, message, traceback, attributes."""

    def __init__(self, job_id: str, error: Any) -> None:
        summary = f": {error.type}: {error.message}" if error is not None else ""
        super().__init__(f"job {job_id} failed for good{summary}")
        self.job_id = job_id
        self.error = error


class JobCancelled(RotaError):
    """The awaited job was cancelled, with a `reason`."""

    def __init__(self, job_id: str, reason: str) -> None:
        super().__init__(f"job {job_id} was cancelled" + (f": {reason}" if reason else ""))
        self.job_id = job_id
        self.reason = reason


class Timeout(RotaError, TimeoutError):
    """An attempt exceeded its `timeout` or `progress_timeout` and was stopped. Middleware and error hooks see it."""


class ProcessKilled(RotaError):
    """The process of an attempt died. `signal` is the signal that killed it; None if it exited with `exit_code`."""

    def __init__(self, message: str, *, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code

    @property
    def signal(self) -> signal.Signals | None:
        """The signal that killed it; None if it exited, or for a number without a name."""
        try:
            return signal.Signals(-self.exit_code)
        except ValueError:
            return None


class WorkerLost(RotaError):
    """The worker of an attempt vanished: its machine or its supervisor died, or it lost the connection for too long."""

    def __init__(self, worker: str) -> None:
        super().__init__(f"worker {worker} vanished")
        self.worker = worker


class ResultTimeout(RotaError, TimeoutError):
    """The job has not ended within the given time. It continues."""

    def __init__(self, job_id: str, state: str, timeout: float) -> None:
        super().__init__(f"{_subject(job_id)} has not ended within {timeout:g} s, it is {state}; it continues")
        self.job_id = job_id
        self.state = state


class StoreError(RotaError):
    """The server refused a command, or could not be reached."""


class StoreUnavailable(StoreError):
    """The server is down, unreachable, loading, or a read-only replica. Retry later."""


class StoreFull(StoreError):
    """The server is at its `maxmemory`. Nothing was stored; running jobs can still finish."""


class StoreDenied(StoreError):
    """The password is missing or wrong, or the user lacks a right that Rota needs."""


class StoreUnsupported(StoreError):
    """The server is too old, or holds a format that is newer than this version of Rota."""


class TaskSignal(Exception):
    """Base class of the exceptions that a task raises to end its attempt."""


class RetryLater(TaskSignal):
    """Fails this attempt, and retries after some seconds or at a time, instead of the backoff."""

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
    """Runs the job again after `seconds`. Counts as no failure."""

    def __init__(self, seconds: float) -> None:
        if not math.isfinite(seconds):
            raise ValueError(f"Snooze takes a number of seconds, not {seconds!r}")
        super().__init__(f"snoozed for {seconds:g} s")
        self.seconds = seconds


class PermanentError(TaskSignal):
    """Fails the job for good, without further retries."""


class Cancel(TaskSignal):
    """Ends the job as cancelled, with a reason; one that is no text is converted to text."""

    def __init__(self, reason: object = "") -> None:
        super().__init__(reason)
        self.reason = "" if reason is None else str(reason)
