"""What a job is: identifiers, options, counts, and the record of one run.

Everything here is a frozen value. The store keeps times as whole milliseconds since 1970 by the server's clock.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from rota.core.retry import Retry, checked_retry, to_ms, to_seconds
from rota.core.states import JobState
from rota.errors import InvalidOption

DEFAULT_QUEUE: Final = "default"
PRIORITIES: Final[Mapping[str, int]] = {"critical": -15, "high": -10, "medium": -5, "normal": 0, "low": 10}
DEFAULT_TIMEOUT_MS: Final = 300_000
#: Also known to `include/policy.lua`: what a record without options stands for.
DEFAULT_MAX_STALLS: Final = 3
MAX_TAGS: Final = 20
MAX_META_BYTES: Final = 4096
MAX_LOCK: Final = 128
MAX_SHARDS: Final = 256
#: Latest time that fits the ordering of the pending index: 2109.
MAX_TIME_MS: Final = 2**42 - 1

_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,128}")
_QUEUE: Final = re.compile(r"[A-Za-z0-9._-]{1,64}(?:~([0-9]{1,3})of([0-9]{1,3}))?")
_TASK: Final = re.compile(r"[^\s\x00-\x1f\x7f\ud800-\udfff]{1,200}")
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")
_DIGITS: Final = "0123456789abcdefghjkmnpqrstvwxyz"
#: Two digits at a time, because every job that is made has its run written down.
_PAIRS: Final = [first + second for first in _DIGITS for second in _DIGITS]
_VALUE: Final = {digit: value for value, digit in enumerate(_DIGITS)}
#: A run is written with nine digits of base 32, so that text order is number order.
RUN_WIDTH: Final = 9
_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}.*")
_AUTO_ID: Final = re.compile(rf"([{_DIGITS}]{{{RUN_WIDTH}}})-([{_DIGITS}]{{8}})")


# --- identifiers -------------------------------------------------------------------------------------------------


def encode_run(number: int) -> str:
    """A run number as nine sortable characters: 34 → "000000012"."""
    return "".join(
        (
            _DIGITS[number >> 40 & 31],
            _PAIRS[number >> 30 & 1023],
            _PAIRS[number >> 20 & 1023],
            _PAIRS[number >> 10 & 1023],
            _PAIRS[number & 1023],
        )
    )


def decode_run(run: str) -> int:
    """The number that `encode_run` wrote."""
    number = 0
    for digit in run:
        number = number * 32 + _VALUE[digit]
    return number


def is_run(text: str) -> bool:
    """True for the nine characters of a run."""
    return len(text) == RUN_WIDTH and all(digit in _VALUE for digit in text)


def make_suffix(chance: int) -> str:
    """Eight characters from 40 random bits: what makes an id nobody chose hard to guess."""
    return encode_run(chance & (2**40 - 1))[1:]


def make_suffixes(chances: bytes) -> list[str]:
    """The same for many, from eight random bytes each."""
    pairs = [_PAIRS[chance & 1023] for chance in memoryview(chances).cast("H")]
    return [a + b + c + d for a, b, c, d in zip(pairs[::4], pairs[1::4], pairs[2::4], pairs[3::4], strict=True)]


def auto_id(run: str, suffix: str) -> str:
    """The id of a job that was given none: its run, so that ids sort by age, and a random part."""
    return f"{run}-{suffix}"


def run_of_auto_id(job_id: str) -> str | None:
    """The run inside an id that `auto_id` made; None for an id that somebody chose."""
    match = _AUTO_ID.fullmatch(job_id)
    return match[1] if match else None


class JobRef(msgspec.Struct, frozen=True):
    """Names a job: `queue:id`, or one run of it: `queue:id@run`. Without a run: the newest one."""

    queue: str
    id: str
    run: str | None = None

    @classmethod
    def parse(cls, text: str) -> JobRef:
        """Reads `queue:id`, `queue:id@run` or a bare `id`, which means queue `default`."""
        queue, colon, rest = checked_text(text, "id").partition(":")
        if not colon:
            queue, rest = DEFAULT_QUEUE, text
        job_id, at, run = rest.partition("@")
        if at and not is_run(run):
            raise InvalidOption("id", f"{text!r} has no run behind the @: it is {RUN_WIDTH} of {_DIGITS}")
        return cls(checked_queue(queue), checked_id(job_id), run or None)

    @property
    def full_id(self) -> str:
        """`queue:id`, which says where the job lives."""
        return f"{self.queue}:{self.id}"

    def __str__(self) -> str:
        return f"{self.full_id}@{self.run}" if self.run else self.full_id


def checked_id(job_id: Any, *, option: str = "id") -> str:
    """The id, if it is 1 to 128 of A–Z a–z 0–9 - _ and the dot."""
    if not isinstance(job_id, str) or not _ID.fullmatch(job_id):
        raise InvalidOption(option, f"{job_id!r} is not 1 to 128 of A-Z a-z 0-9 - _ .")
    return job_id


def checked_queue(queue: Any) -> str:
    """The queue's name, if it is 1 to 64 of A–Z a–z 0–9 - _ and the dot; or that of one of its shards."""
    # The failures of a queue have its name, and five characters more.
    name = _QUEUE.fullmatch(queue.removesuffix("-fail") or queue) if isinstance(queue, str) else None
    if name is None:
        raise InvalidOption("queue", f"{queue!r} is not 1 to 64 of A-Z a-z 0-9 - _ .")
    if queue == "-fail":
        raise InvalidOption("queue", "'-fail' would hold the failure handlers of a queue without a name")
    if name[1] and not 1 <= int(name[1]) <= int(name[2]) <= MAX_SHARDS:
        raise InvalidOption("queue", f"{queue!r} cannot be a shard: there are {MAX_SHARDS} at most, counted from 1")
    return queue


def checked_text(text: Any, option: str) -> str:
    """The text, if it can be written down."""
    if not isinstance(text, str) or _SURROGATE.search(text):
        raise InvalidOption(option, f"{text!r} is not a text that can be stored")
    return text


def checked_task_name(name: Any) -> str:
    """The task's name, if it is 1 to 200 characters without white space or control characters."""
    if not isinstance(name, str) or not _TASK.fullmatch(name):
        raise InvalidOption("name", f"{name!r} is not a task name: 1 to 200 characters without white space")
    return name


def checked_new_queue(queue: Any) -> str:
    """A queue's name that jobs may be put into: not the queue of failure handlers."""
    if checked_queue(queue).endswith("-fail"):
        raise InvalidOption("queue", f"{queue!r}: names that end in -fail are reserved for failure handlers")
    if "~" in queue:
        base = base_of(queue)
        raise InvalidOption("queue", f"{queue!r} is a shard: jobs are put into {base!r}, which has one for each")
    return queue


# --- shards ------------------------------------------------------------------------------------------------------


def shard_name(queue: str, shard: int, count: int) -> str:
    """One shard of a queue, which is a queue of its own: `mail~3of8`; of its failures: `mail~3of8-fail`."""
    base = queue.removesuffix("-fail")
    return f"{base}~{shard + 1}of{count}{queue[len(base) :]}"


def shard_names(queue: str, count: int) -> list[str]:
    """All shards of a queue; the queue itself where it has none, or is one."""
    return [shard_name(queue, shard, count) for shard in range(count)] if count and "~" not in queue else [queue]


def base_of(queue: str) -> str:
    """The queue that a shard is a part of: `mail~3of8` → `mail`. Others are their own."""
    base = queue.removesuffix("-fail")
    return base.partition("~")[0] + queue[len(base) :]


def choose_shard(queue: str, count: int, *, id: str, lock: str, turn: int) -> str:
    """Where a job belongs: with others of its lock, with others of its id; one that has neither, where it is its turn.

    Jobs that must meet cannot be told by both: refused.
    """
    if id and lock:
        raise InvalidOption(
            "lock", f"queue {queue!r} has shards: a job there has an id or a lock, as either says which shard it is in"
        )
    return shard_name(queue, zlib.crc32((lock or id).encode()) % count if lock or id else turn % count, count)


# --- options -----------------------------------------------------------------------------------------------------


class Keep(msgspec.Struct, frozen=True, omit_defaults=True):
    """How long a finished run is kept, in seconds, and how many at most per queue and state.

    `finished` is for completed and cancelled runs, `failed` for dead letters. 0 seconds: not kept at all.
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

    def rule(self, state: JobState) -> str:
        """`age in ms:count`, as the scripts take it."""
        if state is JobState.FAILED:
            return f"{round(self.failed * 1000)}:{self.failed_count}"
        return f"{round(self.finished * 1000)}:{self.finished_count}"


class Options(msgspec.Struct, frozen=True, omit_defaults=True):
    """The effective options of a job, as its record carries them. What is absent has its default."""

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
    #: What it comes after: `queue:id@run`, with a ? before one that may also fail.
    after: tuple[str, ...] = ()
    #: What it is found by: see `core.terms`.
    terms: tuple[str, ...] = ()
    #: The workflow that it is a step, or a compensation, of.
    workflow: str = ""
    #: The trace that it was enqueued in, as W3C headers (`traceparent`, …); nothing where there was none.
    trace: dict[str, str] = {}

    @property
    def trace_id(self) -> str:
        """The id of that trace, 32 hex digits; "" where there is none."""
        match = _TRACEPARENT.fullmatch(self.trace.get("traceparent", ""))
        return match[1] if match else ""

    @property
    def attempts(self) -> int:
        """How many failures end the run."""
        return 1 if self.at_most_once else self.retry.attempts


DEFAULT_OPTIONS: Final = Options()


def checked_priority(priority: Any) -> int:
    """−100 … 100, lower first, from a name or a number."""
    if isinstance(priority, str):
        if priority not in PRIORITIES:
            raise InvalidOption("priority", f"{priority!r} is none of {', '.join(PRIORITIES)}")
        return PRIORITIES[priority]
    if isinstance(priority, bool) or not isinstance(priority, int) or not -100 <= priority <= 100:
        raise InvalidOption("priority", f"{priority!r} is not a whole number from -100 to 100, lower first")
    return priority


def checked_time_ms(when: Any, option: str) -> int:
    """Milliseconds since 1970 of a datetime with a time zone."""
    if not isinstance(when, datetime):
        raise InvalidOption(option, f"takes a datetime, not {when!r}")
    if when.utcoffset() is None:
        raise InvalidOption(option, f"{when!r} has no time zone, so it is not clear which moment is meant")
    ms = round(when.timestamp() * 1000)
    if not 0 <= ms <= MAX_TIME_MS:
        raise InvalidOption(option, f"{when!r} is not between 1970 and 2109")
    return ms


def make_options(given: Mapping[str, Any]) -> Options:
    """Checks the public options of a job (seconds, names, datetimes) and turns them into its effective ones."""
    values: dict[str, Any] = {}
    for name, value in given.items():
        check = _CHECKS.get(name)
        if check is None:
            raise InvalidOption(name, f"no such option; there are {', '.join(sorted(_CHECKS))}")
        check(value, values)
    if values.get("timeout_ms", 0) is None and values.get("progress_timeout_ms") is None:
        raise InvalidOption("timeout", "None needs progress_timeout=…, or a handler that hangs is never stopped")
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
        raise InvalidOption("at_most_once", f"is True or False, not {value!r}")
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
        raise InvalidOption("tags", f"takes a list of texts, not {value!r}")
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
    values["meta"] = kept  # a copy, which the caller cannot change any more


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


# --- records -----------------------------------------------------------------------------------------------------


class Counts(msgspec.Struct, frozen=True):
    """What has happened to a run so far. Attempts only grow; the others are counted apart."""

    attempt: int = 0
    failures: int = 0
    stalls: int = 0
    snoozes: int = 0
    handbacks: int = 0


class ErrorRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why an attempt failed, as text: nothing of it is ever turned back into code."""

    kind: str = "exception"  # exception | timeout | stall | permanent
    type: str = ""
    message: str = ""
    traceback: str = ""
    attributes: dict[str, Any] = {}


class HistoryEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One change of state: what, when, and by whom."""

    at: int
    verb: str
    state: str = ""
    worker: str = ""
    attempt: int = 0
    since: int = 0  # when the attempt that it ended had begun
    note: str = ""


class Progress(msgspec.Struct, frozen=True):
    """How far an attempt has come."""

    done: float
    total: float
    note: str
    started_at: int
    at: int

    @property
    def percent(self) -> int:
        """0 … 100."""
        if self.total <= 0 or self.done >= self.total:
            return 100
        # Compared first and divided then: by a tiny total the quotient would be infinite.
        return int(100 * (self.done / self.total)) if self.done > 0 else 0

    @property
    def per_second(self) -> float | None:
        """The rate so far, once there is one."""
        elapsed = (self.at - self.started_at) / 1000
        return self.done / elapsed if elapsed > 0 and self.done > 0 else None

    @property
    def seconds_left(self) -> float | None:
        """Time left at that rate."""
        rate = self.per_second
        return None if rate is None else max(0.0, (self.total - self.done) / rate)


class Obstacle(msgspec.Struct, frozen=True):
    """What keeps a blocked run from starting."""

    kind: str  # same_id | after | lock
    #: The jobs it waits for; of many only some.
    jobs: tuple[str, ...]
    count: int = 1
    lock: str = ""
    #: When the holder of the lock began, ms; None if it has yet to begin.
    since: int | None = None


class JobRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One run as the store holds it."""

    ref: JobRef
    task: str
    state: JobState
    arguments: bytes
    options: Options
    counts: Counts
    enqueued_at: int
    due_at: int | None = None
    claim: str = ""
    worker: str = ""
    claimed_at: int | None = None
    lease_until: int | None = None
    ended_at: int | None = None
    reason: str = ""
    progress: Progress | None = None
    error: ErrorRecord | None = None
    result: bytes | None = None
    obstacle: Obstacle | None = None
