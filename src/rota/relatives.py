"""Which jobs a job comes after, and which come after it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec

from rota.core.job import JobRecord, JobRef
from rota.errors import InvalidOption
from rota.link import Link
from rota.store.ties import FLOWS

#: Records that one call reads: what keeps it below 5 ms.
READ: Final = 100


class Relative(msgspec.Struct, frozen=True):
    """A job that another comes after, or that comes after another. `record` is None of one that is no longer kept."""

    ref: JobRef
    record: JobRecord | None
    #: It counts however it ends.
    may_fail: bool = False


class Relatives(msgspec.Struct, frozen=True):
    """Some of them, and how to go on; None at the end."""

    jobs: list[Relative]
    cursor: str | None


async def dependencies_of(link: Link, record: JobRecord, *, cursor: str | None, limit: int) -> Relatives:
    """What a run comes after, in the order that was given."""
    start = _number(cursor)
    # A step's place in its workflow is no job.
    all_named = [name for name in record.options.after if not name.lstrip("?").startswith(FLOWS)]
    named = all_named[start : start + limit]
    refs = [JobRef.parse(name.lstrip("?")) for name in named]
    records = await _read(link, refs)
    jobs = [Relative(ref, found, name.startswith("?")) for name, ref, found in zip(named, refs, records, strict=True)]
    end = start + limit
    return Relatives(jobs, str(end) if end < len(all_named) else None)


async def dependents_of(link: Link, ref: JobRef, *, cursor: str | None, limit: int) -> Relatives:
    """What waits for a run: about `limit` at a time, each once at least. For one that has completed nobody waits."""
    place, names = await link.views.heirs(ref, _number(cursor), limit)
    parts = [name.split(" ", 2) for name in names]
    refs = [JobRef(queue, "", run) for queue, run, _ in parts if queue != FLOWS]
    records = await _read(link, refs)
    jobs = [Relative(found.ref, found) for found in records if found is not None]
    return Relatives(jobs, str(place) if place else None)


async def _read(link: Link, refs: Sequence[JobRef]) -> list[JobRecord | None]:
    located = list(await asyncio.gather(*(link.locate(ref) for ref in refs)))
    found: dict[JobRef, JobRecord] = {}
    for queue in {ref.queue for ref in located}:
        of_queue = [ref for ref in located if ref.queue == queue]
        for start in range(0, len(of_queue), READ):
            part = of_queue[start : start + READ]
            for ref, snapshot in zip(part, await link.views.read(queue, part, detail="brief"), strict=True):
                if snapshot is not None:
                    found[ref] = snapshot.record
    return [found.get(ref) for ref in located]


def _number(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdecimal()) or int(cursor) >= 2**64:
        raise InvalidOption("cursor", f"{cursor!r} was not made by this listing")
    return int(cursor)
