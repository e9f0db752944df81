"""Rota: a job queue for Python on Valkey and Redis."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rota.client.blob import Blob
    from rota.client.bulk_operations import Operations
    from rota.client.context import Context
    from rota.client.dead_letters import DeadLetters
    from rota.client.dependency_listing import DependencyJob, DependencyPage
    from rota.client.depends import Depends
    from rota.client.encryption import Encrypted
    from rota.client.events import Event
    from rota.client.failed_attempt import FailedAttempt
    from rota.client.import_jobs_schedules_and_workflows import ImportReport
    from rota.client.job import Job
    from rota.client.middleware import Middleware
    from rota.client.overview import Overview
    from rota.client.queue import Queue
    from rota.client.queue_metrics import QueueLoad
    from rota.client.rota import Rota
    from rota.client.schedules import Forecast, ScheduledRun, ScheduleInfo, Schedules
    from rota.client.search_suggestions import SearchSuggestions
    from rota.client.tasks import Call, Task
    from rota.client.workflow_builder import Step, WorkflowBuilder
    from rota.client.workflows import Workflow, WorkflowPage
    from rota.core.attempts_from_history import Attempt, LostAttempt
    from rota.core.debounce_and_throttle import Debounce, Throttle
    from rota.core.dependencies import known, may_fail
    from rota.core.ids import JobRef
    from rota.core.job_options import Keep
    from rota.core.job_record import AttemptCounts, ErrorRecord, HistoryEntry, JobRecord, Obstacle, Progress
    from rota.core.metric_series import Counts, Series, Times
    from rota.core.retry import Exponential, Fixed, Retry, Rule, Steps
    from rota.core.same_id_policy import Ignore, Reject, Update
    from rota.core.schedule import Cron, Every
    from rota.core.state_transitions import CancelOutcome, JobState
    from rota.core.workflow_record_and_decisions import WorkflowInfo, WorkflowRecord
    from rota.errors import (
        BlobNotFound,
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
        OperationNotFound,
        PayloadTooLarge,
        PermanentError,
        ProcessKilled,
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
        Timeout,
        Undecryptable,
        UnknownTask,
        WorkerLost,
        WorkerNotFound,
        WorkflowFailed,
        WorkflowNotFound,
        WrongState,
    )
    from rota.store.bulk_operation_records import OperationInfo
    from rota.store.job_search import DeadLetterGroup
    from rota.store.reads import LockInfo, LockPage, LogLine, Page, Pause, PausedTask, QueueInfo, WorkerInfo

__all__ = [
    "Attempt",
    "AttemptCounts",
    "Blob",
    "BlobNotFound",
    "Call",
    "Cancel",
    "CancelOutcome",
    "ConfigurationError",
    "Context",
    "Counts",
    "Cron",
    "DeadLetterGroup",
    "DeadLetters",
    "Debounce",
    "DependencyJob",
    "DependencyPage",
    "Depends",
    "EmbeddedUnavailable",
    "Encrypted",
    "ErrorRecord",
    "Event",
    "Every",
    "Exponential",
    "FailedAttempt",
    "Fixed",
    "Forecast",
    "HistoryEntry",
    "IdInUse",
    "Ignore",
    "ImportReport",
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
    "LockInfo",
    "LockPage",
    "LogLine",
    "LostAttempt",
    "Middleware",
    "Obstacle",
    "OperationInfo",
    "OperationNotFound",
    "Operations",
    "Overview",
    "Page",
    "Pause",
    "PausedTask",
    "PayloadTooLarge",
    "PermanentError",
    "ProcessKilled",
    "Progress",
    "Queue",
    "QueueInfo",
    "QueueLoad",
    "Reject",
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
    "SearchSuggestions",
    "Series",
    "Snooze",
    "Step",
    "Steps",
    "StoreDenied",
    "StoreError",
    "StoreFull",
    "StoreUnavailable",
    "StoreUnsupported",
    "Task",
    "TaskConflict",
    "TaskSignal",
    "Throttle",
    "Timeout",
    "Times",
    "Undecryptable",
    "UnknownTask",
    "Update",
    "WorkerInfo",
    "WorkerLost",
    "WorkerNotFound",
    "Workflow",
    "WorkflowBuilder",
    "WorkflowFailed",
    "WorkflowInfo",
    "WorkflowNotFound",
    "WorkflowPage",
    "WorkflowRecord",
    "WrongState",
    "known",
    "may_fail",
]

#: Module -> its public names. A module is imported on the first use of one of them: `rota --help` needs none.
_HOMES: Final = {
    "rota.client.rota": "Rota",
    "rota.client.blob": "Blob",
    "rota.client.encryption": "Encrypted",
    "rota.client.context": "Context",
    "rota.client.depends": "Depends",
    "rota.core.dependencies": "known may_fail",
    "rota.core.attempts_from_history": "Attempt LostAttempt",
    "rota.core.metric_series": "Counts Series Times",
    "rota.core.ids": "JobRef",
    "rota.core.job_record": "AttemptCounts ErrorRecord HistoryEntry JobRecord Obstacle Progress",
    "rota.core.job_options": "Keep",
    "rota.core.retry": "Exponential Fixed Retry Rule Steps",
    "rota.core.debounce_and_throttle": "Debounce Throttle",
    "rota.core.same_id_policy": "Ignore Reject Update",
    "rota.core.schedule": "Cron Every",
    "rota.core.state_transitions": "CancelOutcome JobState",
    "rota.core.workflow_record_and_decisions": "WorkflowRecord WorkflowInfo",
    "rota.client.workflow_builder": "WorkflowBuilder Step",
    "rota.errors": (
        "BlobNotFound Cancel ConfigurationError EmbeddedUnavailable IdInUse InvalidArguments InvalidJob InvalidOption "
        "JobCancelled JobFailed JobNotFound OperationNotFound PayloadTooLarge PermanentError ProcessKilled "
        "ResultTimeout RetryLater RotaError ScheduleNotFound ScheduleOutdated Snooze StoreDenied StoreError StoreFull "
        "StoreUnavailable StoreUnsupported TaskConflict TaskSignal Timeout Undecryptable UnknownTask WorkerLost "
        "WorkerNotFound WorkflowFailed WorkflowNotFound WrongState"
    ),
    "rota.client.failed_attempt": "FailedAttempt",
    "rota.client.events": "Event",
    "rota.client.import_jobs_schedules_and_workflows": "ImportReport",
    "rota.client.queue_metrics": "QueueLoad",
    "rota.client.dead_letters": "DeadLetters",
    "rota.client.job": "Job",
    "rota.client.queue": "Queue",
    "rota.client.middleware": "Middleware",
    "rota.client.bulk_operations": "Operations",
    "rota.client.overview": "Overview",
    "rota.client.dependency_listing": "DependencyJob DependencyPage",
    "rota.client.schedules": "Forecast ScheduledRun ScheduleInfo Schedules",
    "rota.store.bulk_operation_records": "OperationInfo",
    "rota.store.job_search": "DeadLetterGroup",
    "rota.store.reads": "LockInfo LockPage LogLine Page Pause PausedTask QueueInfo WorkerInfo",
    "rota.client.search_suggestions": "SearchSuggestions",
    "rota.client.tasks": "Call Task",
    "rota.client.workflows": "Workflow WorkflowPage",
}
_HOME_OF: Final = {name: module for module, names in _HOMES.items() for name in names.split()}


if not TYPE_CHECKING:  # else a type checker would accept every name

    def __getattr__(name: str) -> Any:
        if name not in _HOME_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_HOME_OF[name]), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
