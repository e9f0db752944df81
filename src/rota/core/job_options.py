"""Job options: the checked public options (seconds, names, datetimes) and their stored form."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final, Literal

import msgspec

from rota.core.retry import Retry, checked_retry, to_ms, to_seconds
from rota.core.state_transitions import JobState
from rota.errors import InvalidOption

#: Names of priorities, for type checkers; `PRIORITIES` has their numbers.
PriorityName = Literal["critical", "high", "medium", "normal", "low"]
#: A name, or a number from -100 to 100, lower first.
Priority = PriorityName | int
PRIORITIES: Final[Mapping[str, int]] = {"critical": -15, "high": -10, "medium": -5, "normal": 0, "low": 10}
DEFAULT_TIMEOUT_MS: Final = 300_000
#: Also known to `stall_and_retention_policy_of_run.lua`: the value for a record without options.
DEFAULT_MAX_STALLS: Final = 3
MAX_TAGS: Final = 20
MAX_META_BYTES: Final = 4096
MAX_LOCK: Final = 128
#: Latest time that fits the ordering of the pending index: 2109.
MAX_TIME_MS: Final = 2**42 - 1

_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}.*")


class Keep(msgspec.Struct, frozen=True, omit_defaults=True):
    """Retention of ended runs: how long, in seconds, and how many at most per queue and state.

    `finished` applies to completed and cancelled runs, `failed` to dead letters. 0 seconds: not kept at all.
    """

    finished: float = 3600
    finished_count: int = 10_000
    failed: float = 30 * 24 * 3600
    failed_count: int = 100_000

    def __post_init__(self) -> None:
        for name in ("finished", "failed"):
            msgspec.structs.force_setattr(self, name, to_seconds(getattr(self, name), "keep"))
        for count in (self.finished_count, self.failed_count):
            if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= 10_000_000:
                raise InvalidOption("keep", f"a count must be 0 to 10,000,000, not {count!r}")

    def retention(self, state: JobState) -> str:
        """Returns `age in ms:count`, the retention argument of the scripts."""
        if state is JobState.FAILED:
            return f"{round(self.failed * 1000)}:{self.failed_count}"
        return f"{round(self.finished * 1000)}:{self.finished_count}"


class Options(msgspec.Struct, frozen=True, omit_defaults=True):
    """The effective options of a job, as stored in its record."""

    priority: int = 0
    timeout_ms: int | None = DEFAULT_TIMEOUT_MS
    progress_timeout_ms: int | None = None
    retry: Retry = Retry()
    max_stalls: int = DEFAULT_MAX_STALLS
    at_most_once: bool = False
    expires_ms: int | None = None
    expires_at: int | None = None
    keep: Keep = Keep()
    tags: tuple[str, ...] = ()
    meta: dict[str, Any] = {}
    lock: str = ""
    #: Parents: `queue:id@run`, with a ? before a parent that may fail.
    after: tuple[str, ...] = ()
    #: Search terms, see `core.job_index_terms`.
    terms: tuple[str, ...] = ()
    #: Names of the blobs among its arguments.
    blobs: tuple[str, ...] = ()
    #: Id of the workflow that the job is a step or a compensation of.
    workflow: str = ""
    #: Trace context of the enqueue, as W3C headers (`traceparent`, …).
    trace: dict[str, str] = {}
    #: Caller of the HTTP API or user of the command line that enqueued the job.
    enqueued_by: str = ""

    @property
    def trace_id(self) -> str:
        """Id of the trace, 32 hex digits; "" if there is none."""
        match = _TRACEPARENT.fullmatch(self.trace.get("traceparent", ""))
        return match[1] if match else ""

    @property
    def attempts(self) -> int:
        """Number of failures after which the run is a dead letter."""
        return 1 if self.at_most_once else self.retry.attempts


DEFAULT_OPTIONS: Final = Options()


def checked_priority(priority: Any) -> int:
    """Returns a priority from -100 to 100, lower first, for a name or a number. Raises InvalidOption."""
    if isinstance(priority, str):
        if priority not in PRIORITIES:
            raise InvalidOption("priority", f"{priority!r} is none of {', '.join(PRIORITIES)}")
        return PRIORITIES[priority]
    if isinstance(priority, bool) or not isinstance(priority, int) or not -100 <= priority <= 100:
        raise InvalidOption("priority", f"{priority!r} is not a whole number from -100 to 100, lower first")
    return priority


def checked_time_ms(when: Any, option: str) -> int:
    """Returns milliseconds since 1970 for a datetime with a time zone. Raises InvalidOption."""
    if not isinstance(when, datetime):
        raise InvalidOption(option, f"takes a datetime, not {when!r}")
    if when.utcoffset() is None:
        raise InvalidOption(option, f"{when!r} has no time zone: pass an aware datetime")
    ms = round(when.timestamp() * 1000)
    if not 0 <= ms <= MAX_TIME_MS:
        raise InvalidOption(option, f"{when!r} is not between 1970 and 2109")
    return ms


def due_time(delay: Any, run_at: Any) -> str:
    """Returns when a job may start, as the scripts take it: "" is now, "+250" in 250 ms, else ms since 1970."""
    if delay is not None and run_at is not None:
        raise InvalidOption("delay", "give delay or run_at, not both")
    if run_at is not None:
        return str(checked_time_ms(run_at, "run_at"))
    return "" if delay is None else f"+{to_ms(delay, 'delay')}"


def make_options(given: Mapping[str, Any]) -> Options:
    """Returns the effective options for public ones (seconds, names, datetimes). Raises InvalidOption."""
    values: dict[str, Any] = {}
    for name, value in given.items():
        check = _CHECKS.get(name)
        if check is None:
            raise InvalidOption(name, f"unknown option; the options are {', '.join(sorted(_CHECKS))}")
        check(value, values)
    if values.get("timeout_ms", 0) is None and values.get("progress_timeout_ms") is None:
        raise InvalidOption("timeout", "None requires progress_timeout=…: otherwise a handler that hangs never stops")
    return Options(**values)


def _check_timeout(value: Any, values: dict[str, Any]) -> None:
    values["timeout_ms"] = None if value is None else _positive_ms(value, "timeout")


def _check_progress_timeout(value: Any, values: dict[str, Any]) -> None:
    values["progress_timeout_ms"] = None if value is None else _positive_ms(value, "progress_timeout")


def _check_max_stalls(value: Any, values: dict[str, Any]) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 1_000_000:
        raise InvalidOption("max_stalls", f"must be 0 to 1,000,000, not {value!r}")
    values["max_stalls"] = value


def _check_at_most_once(value: Any, values: dict[str, Any]) -> None:
    if not isinstance(value, bool):
        raise InvalidOption("at_most_once", f"must be True or False, not {value!r}")
    values["at_most_once"] = value


def _check_expires(value: Any, values: dict[str, Any]) -> None:
    if value is None:
        return
    if isinstance(value, datetime):
        values["expires_at"] = checked_time_ms(value, "expires")
    else:
        values["expires_ms"] = to_ms(value, "expires")


def _check_keep(value: Any, values: dict[str, Any]) -> None:
    if isinstance(value, Keep):
        values["keep"] = value
    elif isinstance(value, int | float | timedelta):
        values["keep"] = Keep(finished=to_seconds(value, "keep"))
    else:
        raise InvalidOption("keep", f"takes seconds, a timedelta or Keep(...), not {value!r}")


def _check_tags(value: Any, values: dict[str, Any]) -> None:
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise InvalidOption("tags", f"takes a list of strings, not {value!r}")
    given = list(value)
    for tag in given:
        if not isinstance(tag, str) or not 1 <= len(tag) <= 64 or not tag.isprintable():
            raise InvalidOption("tags", f"{tag!r} is not 1 to 64 printable characters")
    tags = tuple(dict.fromkeys(given))
    if len(tags) > MAX_TAGS:
        raise InvalidOption("tags", f"at most {MAX_TAGS} tags, not {len(tags)}")
    values["tags"] = tags


def _check_meta(value: Any, values: dict[str, Any]) -> None:
    if not isinstance(value, dict):
        raise InvalidOption("meta", f"takes a dictionary, not {value!r}")
    try:
        encoded = msgspec.json.encode(value)
        kept = msgspec.json.decode(encoded)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidOption("meta", f"is not JSON: {error}") from error
    if len(encoded) > MAX_META_BYTES:
        raise InvalidOption("meta", f"takes {len(encoded):,} bytes, the limit is {MAX_META_BYTES:,}")
    values["meta"] = kept  # a copy, which the caller cannot change


def _check_lock(value: Any, values: dict[str, Any]) -> None:
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_LOCK or not value.isprintable():
        raise InvalidOption("lock", f"{value!r} is not 1 to {MAX_LOCK} printable characters")
    values["lock"] = value


def _check_priority(value: Any, values: dict[str, Any]) -> None:
    values["priority"] = checked_priority(value)


def _check_retry(value: Any, values: dict[str, Any]) -> None:
    values["retry"] = checked_retry(value)


def _positive_ms(value: Any, option: str) -> int:
    ms = to_ms(value, option)
    if ms == 0:
        raise InvalidOption(option, "must be more than 0 s")
    return ms


_CHECKS: Final = {
    "priority": _check_priority,
    "timeout": _check_timeout,
    "progress_timeout": _check_progress_timeout,
    "retry": _check_retry,
    "max_stalls": _check_max_stalls,
    "at_most_once": _check_at_most_once,
    "expires": _check_expires,
    "keep": _check_keep,
    "tags": _check_tags,
    "meta": _check_meta,
    "lock": _check_lock,
}
