"""Log lines of failed attempts: which job, which attempt, why, and when the next attempt starts."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

from rota.core.explain import format_duration
from rota.core.job_record_codec import decode_error

if TYPE_CHECKING:
    from rota.store.report_encoding import Failed
    from rota.worker.running_jobs import RunningJob

logger = logging.getLogger("rota.worker")


def log_failure(job: RunningJob, report: Failed, *, always_traceback: bool) -> None:
    """Logs a failed attempt: a warning if the job is retried; an error with the traceback if it failed for good."""
    retry_in_ms = _retry_in_ms(report.next_attempt)
    level = logging.ERROR if retry_in_ms is None else logging.WARNING
    if not logger.isEnabledFor(level):
        return
    error = decode_error(report.error)
    assert error is not None, "a failure has an error"
    fields: dict[str, Any] = {
        **job.log_fields(),
        "attempts": job.options.attempts,
        "error_type": error.type,
        "error_message": error.message,
        "retry_in_ms": retry_in_ms,
    }
    if error.traceback and (always_traceback or retry_in_ms is None):
        fields["traceback"] = error.traceback.rstrip()
    logger.log(
        level,
        "%s %s failed%s (%s): %s: %s%s",
        fields["task"] or "?",
        fields["job_id"],
        " for good" if retry_in_ms is None else "",
        _which_attempt(job),
        error.type,
        error.message.partition("\n")[0],
        "" if retry_in_ms is None else f"; next attempt in {format_duration(retry_in_ms)}",
        extra=fields,
    )


def log_killed(job: RunningJob, what_happened: str) -> None:
    """Logs an attempt whose process died."""
    fields = job.log_fields()
    task, job_id, attempt = fields["task"] or "?", fields["job_id"], _which_attempt(job)
    logger.warning("%s %s stalled (%s): %s", task, job_id, attempt, what_happened, extra=fields)


def _which_attempt(job: RunningJob) -> str:
    """The limit counts failures; attempts that stalled or were returned make the two numbers differ."""
    attempt, failure, limit = job.job.counts.attempt, job.job.counts.failures + 1, job.options.attempts
    return f"attempt {attempt} of {limit}" if attempt == failure else f"attempt {attempt}, failure {failure} of {limit}"


def _retry_in_ms(next_attempt: str) -> int | None:
    if next_attempt == "final":
        return None
    return int(next_attempt) if next_attempt.startswith("+") else max(0, int(next_attempt) - round(time.time() * 1000))
