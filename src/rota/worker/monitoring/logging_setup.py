"""Logging of a worker and its runners: text lines, or one JSON object per line."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, Final

from rota.client.context import current
from rota.core.printable_text import printable, printable_json
from rota.worker.monitoring.background_stderr_handler import BackgroundHandler

#: `in_job` is the id of the job whose handler logs, in brackets.
TEXT: Final = "%(asctime)s %(levelname)-7s %(name)s: %(in_job)s%(message)s"
#: The fields that a log call may add with `extra=`, and that records of a handler have.
FIELDS: Final = (
    "job_id",
    "queue",
    "task",
    "attempt",
    "attempts",
    "worker",
    "took_ms",
    "error_type",
    "error_message",
    "retry_in_ms",
    "trace_id",
    "span_id",
    "traceback",
)


def add_job_fields(record: logging.LogRecord) -> bool:
    """A filter that passes every record. One that is logged by a handler gets the fields of its job.

    Fields that the log call gave are kept.
    """
    fields = _attempt()
    if fields:
        fields["in_job"] = f"[{fields['job_id']}] "
    for name, value in fields.items():
        if not hasattr(record, name):
            setattr(record, name, value)
    return True


class TextFormatter(logging.Formatter):
    """One line of text, and below it the traceback of a failed attempt."""

    def __init__(self) -> None:
        super().__init__(TEXT, defaults={"in_job": ""})

    def format(self, record: logging.LogRecord) -> str:
        """Returns the record as text."""
        text = super().format(record)
        traceback = getattr(record, "traceback", None)
        return printable(f"{text}\n{traceback}" if traceback else text)


class JsonFormatter(logging.Formatter):
    """One object per line: time, level, logger, message, and those of `FIELDS` that the record has."""

    def format(self, record: logging.LogRecord) -> str:
        """Returns the record as one line of JSON."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC)
            .isoformat(timespec="milliseconds")
            .replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: value for name in FIELDS if (value := getattr(record, name, None)) is not None}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        if record.stack_info:
            line["stack"] = self.formatStack(record.stack_info)
        return printable_json(json.dumps(line, ensure_ascii=False, default=str))


def _attempt() -> dict[str, Any]:
    """The fields of the attempt that logs; empty outside of one."""
    context_of = current.get()
    if context_of is None:
        return {}
    context = context_of()
    job = context.job
    fields: dict[str, Any] = {
        "job_id": job.ref.full_id,
        "queue": job.ref.queue,
        "task": job.task,
        "attempt": context.attempt,
    }
    if job.options.trace_id:
        fields["trace_id"] = job.options.trace_id
    tracing = sys.modules.get("opentelemetry.trace")  # loaded if the program is traced
    if tracing is not None:
        span = tracing.get_current_span().get_span_context()
        if span.is_valid:
            fields |= {"trace_id": f"{span.trace_id:032x}", "span_id": f"{span.span_id:016x}"}
    return fields


def configure(log_format: str, level: str, *, patience_s: float = 0.0) -> None:
    """Logs records of at least `level` to stderr, as "text" or "json". See `BackgroundHandler` for `patience_s`."""
    handler = BackgroundHandler(sys.stderr.fileno(), patience_s=patience_s)
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    handler.addFilter(add_job_fields)
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
