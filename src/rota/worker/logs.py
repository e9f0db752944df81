"""How a worker and its runners log: lines for people, or one JSON object per line for programs."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any, Final

TEXT: Final = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"
#: What a log call may add with `extra=`, under the same names everywhere.
EXTRAS: Final = ("job_id", "queue", "task", "attempt", "worker", "took_ms")


class JsonFormatter(logging.Formatter):
    """One object per line: time, level, logger, message, and those of `EXTRAS` that the call gave."""

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
        line |= {name: value for name in EXTRAS if (value := getattr(record, name, None)) is not None}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        if record.stack_info:
            line["stack"] = self.formatStack(record.stack_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def configure(log_format: str, level: str) -> None:
    """Sends what is logged from `level` on to stderr, as "text" or "json"."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if log_format == "json" else logging.Formatter(TEXT))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
