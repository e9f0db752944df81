"""Identifiers: run numbers, job ids, references, and the names of queues and tasks."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from rota.core.shards import MAX_SHARDS, base_of
from rota.errors import InvalidOption

DEFAULT_QUEUE: Final = "default"
#: A run number is written as nine base-32 digits, so that text order is number order.
RUN_WIDTH: Final = 9

_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,128}")
_QUEUE: Final = re.compile(r"[A-Za-z0-9._-]{1,64}(?:~([0-9]{1,3})of([0-9]{1,3}))?")
_TASK: Final = re.compile(r"[^\s\x00-\x1f\x7f\ud800-\udfff]{1,200}")
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")
_DIGITS: Final = "0123456789abcdefghjkmnpqrstvwxyz"
#: Two digits at a time: every enqueued job encodes a run number.
_PAIRS: Final = [first + second for first in _DIGITS for second in _DIGITS]
_VALUE: Final = {digit: value for value, digit in enumerate(_DIGITS)}


def encode_run(number: int) -> str:
    """Returns a run number as nine sortable characters: 34 → "000000012"."""
    return "".join(
        (
            _DIGITS[number >> 40 & 31],
            _PAIRS[number >> 30 & 1023],
            _PAIRS[number >> 20 & 1023],
            _PAIRS[number >> 10 & 1023],
            _PAIRS[number & 1023],
        )
    )


def encode_runs(first: int, count: int) -> list[str]:
    """Returns consecutive run numbers, encoded. Faster than one by one: most share all but two characters."""
    if count == 1:
        return [encode_run(first)]
    runs: list[str] = []
    while count > 0:
        low, shared = first & 1023, encode_run(first)[:-2]
        lows = _PAIRS[low : low + count]
        runs += [shared + pair for pair in lows]
        first, count = first + len(lows), count - len(lows)
    return runs


def decode_run(run: str) -> int:
    """Returns the number that `encode_run` encoded."""
    number = 0
    for digit in run:
        number = number * 32 + _VALUE[digit]
    return number


def is_run(text: str) -> bool:
    """Returns whether the text is an encoded run number."""
    return len(text) == RUN_WIDTH and all(digit in _VALUE for digit in text)


def make_suffix(chance: int) -> str:
    """Returns eight characters from 40 random bits, which make a generated id hard to guess."""
    return encode_run(chance & (2**40 - 1))[1:]


def make_suffixes(chances: bytes) -> list[str]:
    """Returns many suffixes, from eight random bytes each."""
    pairs = [_PAIRS[chance & 1023] for chance in memoryview(chances).cast("H")]
    return [a + b + c + d for a, b, c, d in zip(pairs[::4], pairs[1::4], pairs[2::4], pairs[3::4], strict=True)]


def auto_id(run: str, suffix: str) -> str:
    """Returns the generated id of a job: its run, so that ids sort by age, and a random suffix."""
    return f"{run}-{suffix}"


class JobRef(msgspec.Struct, frozen=True, gc=False):
    """Reference to a job, `queue:id`, or to one of its runs, `queue:id@run`. Without a run: the newest."""

    queue: str
    id: str
    run: str | None = None

    @classmethod
    def parse(cls, text: str) -> JobRef:
        """Parses `queue:id`, `queue:id@run` or a bare `id` in queue `default`. Raises InvalidOption."""
        queue, colon, rest = checked_text(text, "id").partition(":")
        if not colon:
            queue, rest = DEFAULT_QUEUE, text
        job_id, at, run = rest.partition("@")
        if at and not is_run(run):
            raise InvalidOption("id", f"{text!r} has no valid run after the @: use {RUN_WIDTH} of {_DIGITS}")
        return cls(checked_queue(queue), checked_id(job_id), run or None)

    @property
    def full_id(self) -> str:
        """`queue:id`."""
        return f"{self.queue}:{self.id}"

    def __str__(self) -> str:
        return f"{self.full_id}@{self.run}" if self.run else self.full_id


def checked_id(job_id: Any, *, option: str = "id") -> str:
    """Returns the id if it is 1 to 128 of A-Z a-z 0-9 - _ and the dot. Raises InvalidOption."""
    if not isinstance(job_id, str) or not _ID.fullmatch(job_id):
        raise InvalidOption(option, f"{job_id!r} is not 1 to 128 of A-Z a-z 0-9 - _ .")
    return job_id


def checked_queue(queue: Any) -> str:
    """Returns the queue name if it is 1 to 64 of A-Z a-z 0-9 - _ and the dot, or the name of a shard.

    Raises InvalidOption.
    """
    # The failure queue of a queue has the same name with the suffix "-fail", which the limit leaves out.
    name = _QUEUE.fullmatch(queue.removesuffix("-fail") or queue) if isinstance(queue, str) else None
    if name is None:
        raise InvalidOption("queue", f"{queue!r} is not 1 to 64 of A-Z a-z 0-9 - _ .")
    if queue == "-fail":
        raise InvalidOption("queue", "'-fail' would be the failure queue of a queue without a name")
    if name[1] and not 1 <= int(name[1]) <= int(name[2]) <= MAX_SHARDS:
        raise InvalidOption("queue", f"{queue!r} is not a valid shard: use 1 to {MAX_SHARDS}, counted from 1")
    return queue


def checked_text(text: Any, option: str) -> str:
    """Returns the text if it can be encoded as UTF-8. Raises InvalidOption."""
    if not isinstance(text, str) or _SURROGATE.search(text):
        raise InvalidOption(option, f"{text!r} is not valid text")
    return text


def checked_task_name(name: Any) -> str:
    """Returns the task name if it is 1 to 200 characters without white space and control characters.

    Raises InvalidOption.
    """
    if not isinstance(name, str) or not _TASK.fullmatch(name):
        raise InvalidOption("name", f"{name!r} is not a task name: 1 to 200 characters without white space")
    return name


def checked_new_queue(queue: Any) -> str:
    """Returns the queue name if jobs may be enqueued there: no failure queue, no shard. Raises InvalidOption."""
    if checked_queue(queue).endswith("-fail"):
        raise InvalidOption("queue", f"{queue!r}: names that end in -fail are reserved for failure handlers")
    if "~" in queue:
        raise InvalidOption("queue", f"{queue!r} is a shard: enqueue to {base_of(queue)!r}, which selects the shard")
    return queue
