"""How a worker and its runners log: lines for people, or one JSON object per line for programs."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, Final

from rota.context import current

TEXT: Final = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"
#: What a log call may add with `extra=`, under the same names everywhere.
EXTRAS: Final = ("job_id", "queue", "task", "attempt", "worker", "took_ms", "trace_id")


class JsonFormatter(logging.Formatter):
    """One object per line: time, level, logger, message, and those of `EXTRAS` that the call gave.

    What a handler logs says by itself which attempt of which job it was, and in which trace.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line. A message that cannot be built is no reason to lose the rest."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC)
            .isoformat(timespec="milliseconds")
            .replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= _attempt()
        line |= {name: value for name in EXTRAS if (value := getattr(record, name, None)) is not None}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        if record.stack_info:
            line["stack"] = self.formatStack(record.stack_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def _attempt() -> dict[str, Any]:
    """The attempt that is being logged from; nothing outside of one."""
    context_of = current.get()
    if context_of is None:
        return {}
    context = context_of()
    job = context.job
    fields: dict[str, Any] = {
        "job_id": job.ref.full_id, "queue": job.ref.queue, "task": job.task, "attempt": context.attempt,
    }  # fmt: skip
    if job.options.trace_id:
        fields["trace_id"] = job.options.trace_id
    tracing = sys.modules.get("opentelemetry.trace")  # loaded where the program is traced
    if tracing is not None:
        span = tracing.get_current_span().get_span_context()
        if span.is_valid:
            fields |= {"trace_id": f"{span.trace_id:032x}", "span_id": f"{span.span_id:016x}"}
    return fields


def configure(log_format: str, level: str) -> None:
    """Sends what is logged from `level` on to stderr, as "text" or "json"."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if log_format == "json" else logging.Formatter(TEXT))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
