"""Rota: a job queue for Python on Valkey and Redis."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rota.client import Rota
    from rota.context import Context, Depends
    from rota.core.after import known, may_fail
    from rota.core.attempts import Attempt, Vanished
    from rota.core.history import Counted, Series, Times
    from rota.core.job import Counts, ErrorRecord, HistoryEntry, JobRecord, JobRef, Keep, Obstacle, Progress
    from rota.core.retry import Exponential, Fixed, Retry, Rule, Steps
    from rota.core.same_id import Ignore, Reject, Update
    from rota.core.schedule import Cron, Every
    from rota.core.states import JobState
    from rota.core.workflow import Flow, WorkflowInfo
    from rota.drafts import Draft, Step
    from rota.errors import (
        Cancel,
        ConfigurationError,
        EmbeddedUnavailable,
        IdInUse,
        InvalidArguments,
        InvalidJob,
        InvalidOption,
        JobCancelled,
        JobFailed,
        JobNotFound,
        LeaseLost,
        OperationNotFound,
        PayloadTooLarge,
        PermanentError,
        ResultTimeout,
        RetryLater,
        RotaError,
        ScheduleNotFound,
        ScheduleOutdated,
        Snooze,
        StoreDenied,
        StoreError,
        StoreFull,
        StoreUnavailable,
        StoreUnsupported,
        TaskConflict,
        TaskSignal,
        UnknownTask,
        WorkerNotFound,
        WorkflowFailed,
        WorkflowNotFound,
        WrongState,
    )
    from rota.events import Event
    from rota.history import Load
    from rota.jobs import DeadLetters, Job, Queue
    from rota.middleware import Middleware
    from rota.operations import Operations
    from rota.overview import Overview
    from rota.relatives import Relative, Relatives
    from rota.schedules import Ahead, ScheduledRun, ScheduleInfo, Schedules
    from rota.store.operations import OperationInfo
    from rota.store.search import Group
    from rota.store.views import LockInfo, LockPage, LogLine, Page, QueueInfo, WorkerInfo
    from rota.suggestions import Suggestions
    from rota.tasks import Call, Task
    from rota.workflows import Workflow, WorkflowPage

__all__ = [
    "Ahead",
    "Attempt",
    "Call",
    "Cancel",
    "ConfigurationError",
    "Context",
    "Counted",
    "Counts",
    "Cron",
    "DeadLetters",
    "Depends",
    "Draft",
    "EmbeddedUnavailable",
    "ErrorRecord",
    "Event",
    "Every",
    "Exponential",
    "Fixed",
    "Flow",
    "Group",
    "HistoryEntry",
    "IdInUse",
    "Ignore",
    "InvalidArguments",
    "InvalidJob",
    "InvalidOption",
    "Job",
    "JobCancelled",
    "JobFailed",
    "JobNotFound",
    "JobRecord",
    "JobRef",
    "JobState",
    "Keep",
    "LeaseLost",
    "Load",
    "LockInfo",
    "LockPage",
    "LogLine",
    "Middleware",
    "Obstacle",
    "OperationInfo",
    "OperationNotFound",
    "Operations",
    "Overview",
    "Page",
    "PayloadTooLarge",
    "PermanentError",
    "Progress",
    "Queue",
    "QueueInfo",
    "Reject",
    "Relative",
    "Relatives",
    "ResultTimeout",
    "Retry",
    "RetryLater",
    "Rota",
    "RotaError",
    "Rule",
    "ScheduleInfo",
    "ScheduleNotFound",
    "ScheduleOutdated",
    "ScheduledRun",
    "Schedules",
    "Series",
    "Snooze",
    "Step",
    "Steps",
    "StoreDenied",
    "StoreError",
    "StoreFull",
    "StoreUnavailable",
    "StoreUnsupported",
    "Suggestions",
    "Task",
    "TaskConflict",
    "TaskSignal",
    "Times",
    "UnknownTask",
    "Update",
    "Vanished",
    "WorkerInfo",
    "WorkerNotFound",
    "Workflow",
    "WorkflowFailed",
    "WorkflowInfo",
    "WorkflowNotFound",
    "WorkflowPage",
    "WrongState",
    "known",
    "may_fail",
]

#: Where each name lives. A module is imported when a name of it is first asked for: `rota --help` needs none of them.
_HOMES: Final = {
    "rota.client": "Rota",
    "rota.context": "Context Depends",
    "rota.core.after": "known may_fail",
    "rota.core.attempts": "Attempt Vanished",
    "rota.core.history": "Counted Series Times",
    "rota.core.job": "Counts ErrorRecord HistoryEntry JobRecord JobRef Keep Obstacle Progress",
    "rota.core.retry": "Exponential Fixed Retry Rule Steps",
    "rota.core.same_id": "Ignore Reject Update",
    "rota.core.schedule": "Cron Every",
    "rota.core.states": "JobState",
    "rota.core.workflow": "Flow WorkflowInfo",
    "rota.drafts": "Draft Step",
    "rota.errors": (
        "Cancel ConfigurationError EmbeddedUnavailable IdInUse InvalidArguments InvalidJob InvalidOption "
        "JobCancelled JobFailed JobNotFound LeaseLost OperationNotFound PayloadTooLarge PermanentError ResultTimeout "
        "RetryLater RotaError ScheduleNotFound ScheduleOutdated Snooze StoreDenied StoreError StoreFull "
        "StoreUnavailable StoreUnsupported TaskConflict TaskSignal UnknownTask WorkerNotFound WorkflowFailed "
        "WorkflowNotFound WrongState"
    ),
    "rota.events": "Event",
    "rota.history": "Load",
    "rota.jobs": "DeadLetters Job Queue",
    "rota.middleware": "Middleware",
    "rota.operations": "Operations",
    "rota.overview": "Overview",
    "rota.relatives": "Relative Relatives",
    "rota.schedules": "Ahead ScheduledRun ScheduleInfo Schedules",
    "rota.store.operations": "OperationInfo",
    "rota.store.search": "Group",
    "rota.store.views": "LockInfo LockPage LogLine Page QueueInfo WorkerInfo",
    "rota.suggestions": "Suggestions",
    "rota.tasks": "Call Task",
    "rota.workflows": "Workflow WorkflowPage",
}
_HOME_OF: Final = {name: module for module, names in _HOMES.items() for name in names.split()}


if not TYPE_CHECKING:  # a type checker would take every name for one that exists

    def __getattr__(name: str) -> Any:
        if name not in _HOME_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_HOME_OF[name]), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
