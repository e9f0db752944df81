"""The lines of an export: all that is stored of a job, schedule or workflow, as one JSON object each.

Records are kept as they are stored, so that a copy is exact. Bytes that are not UTF-8 are kept as lone surrogates.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from rota.errors import InvalidOption

#: Version of the lines; a newer one is refused.
VERSION: Final = 1
#: What `read_runs_to_copy.lua` returns of a run, in order.
RUN_FIELDS: Final = (
    *("run", "record", "status", "state", "index", "score", "plan", "expires_at", "error", "result", "history"),
    *("log_counts", "log", "is_step", "parents", "failed_parents", "parent_results", "dependents", "follows"),
    *("follow_up_flags", "merged_from", "blobs"),
)
#: Fields that are lists.
_LISTS: Final = frozenset({"log", "parents", "failed_parents", "parent_results", "dependents"})


def text_of(value: Any) -> str:
    """Decodes a stored value; `bytes_of` restores the same bytes."""
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)


def bytes_of(text: str) -> bytes:
    """Encodes what `text_of` returned."""
    return text.encode("utf-8", "surrogateescape")


def encode_line(kind: str, fields: Mapping[str, Any]) -> str:
    """Returns one line without its end."""
    return json.dumps({"kind": kind, **fields}, separators=(",", ":"))


def decode_line(line: str, number: int) -> dict[str, Any]:
    """Decodes one line. Raises InvalidOption, with its number."""
    try:
        found = json.loads(line)
        if not isinstance(found, dict) or not isinstance(cast("dict[str, Any]", found).get("kind"), str):
            raise ValueError("it has no kind")
    except ValueError as error:
        raise InvalidOption("lines", f"line {number} is not a line of `rota export`: {error}") from error
    return cast("dict[str, Any]", found)


def run_of_reply(queue: str, reply: Sequence[Any]) -> dict[str, Any]:
    """The fields of a job's line, from the reply of `read_runs_to_copy`. Empty ones are left out."""
    fields: dict[str, Any] = {"queue": queue}
    for name, value in zip(RUN_FIELDS, reply, strict=True):
        shown = [text_of(item) for item in value] if name in _LISTS else text_of(value)
        if shown not in ("", [], "0"):
            fields[name] = shown
    lines = str(fields["record"]).split("\n", 3)
    head = lines[0].partition(" ")[0]
    fields["id"] = head[1:] if head.startswith("=") else f"{fields['run']}-{head}"
    fields["task"] = lines[2] if len(lines) > 3 else "?"
    return fields


def words_of_run(fields: Mapping[str, Any]) -> list[bytes]:
    """The arguments of `import_runs` for one job."""

    def text(name: str) -> bytes:
        return bytes_of(str(fields.get(name, "")))

    def items(name: str) -> bytes:
        return bytes_of(json.dumps(fields.get(name, []), ensure_ascii=False))

    follows = fields.get("follows", "")
    plan = bytes_of(f"follows {follows} {fields.get('follow_up_flags', '')}") if follows else text("plan")
    head = [text(name) for name in ("run", "record", "status", "state", "index", "score")]
    middle = [text(name) for name in ("expires_at", "error", "result", "history", "log_counts")]
    lists = [items(name) for name in ("parents", "failed_parents", "parent_results", "dependents")]
    return [*head, plan, *middle, items("log"), text("is_step"), *lists, text("merged_from")]


def in_batches(jobs: Sequence[Mapping[str, Any]], size: int, most_bytes: int) -> Iterator[list[Mapping[str, Any]]]:
    """Splits jobs of one queue into batches of one call. A follow-up stays with the run before it."""
    batch: list[Mapping[str, Any]] = []
    length = 0
    for job in jobs:
        its_length = len(str(job.get("record", ""))) + len(str(job.get("result", "")))
        if batch and "follows" not in job and (len(batch) >= size or length + its_length > most_bytes):
            yield batch
            batch, length = [], 0
        batch.append(job)
        length += its_length
    if batch:
        yield batch
