"""The dependencies of a job: its parents and its dependents, with their records."""

from __future__ import annotations

import msgspec

from rota.client.session import Session
from rota.core.ids import JobRef
from rota.core.job_record import JobRecord
from rota.errors import InvalidOption
from rota.store.create_dependents_and_deliver_outcomes import WORKFLOWS


class DependencyJob(msgspec.Struct, frozen=True):
    """A parent or a dependent of a job. `record` is None for a job that is no longer kept, and has no arguments."""

    ref: JobRef
    record: JobRecord | None
    #: Of a parent: the dependent starts however this parent ends.
    may_fail: bool = False


class DependencyPage(msgspec.Struct, frozen=True):
    """Some parents or dependents, and the cursor of the next page; None at the end."""

    jobs: list[DependencyJob]
    cursor: str | None


async def dependencies_of(session: Session, record: JobRecord, *, cursor: str | None, limit: int) -> DependencyPage:
    """Returns the parents of a run, in the order in which they were given."""
    start = _number(cursor)
    # The workflow of a step is among its parents, and is no job.
    all_named = [name for name in record.options.after if not name.lstrip("?").startswith(WORKFLOWS)]
    named = all_named[start : start + limit]
    refs = [JobRef.parse(name.lstrip("?")) for name in named]
    records = await session.read_records(refs)
    jobs = [
        DependencyJob(ref, found, name.startswith("?")) for name, ref, found in zip(named, refs, records, strict=True)
    ]
    end = start + limit
    return DependencyPage(jobs, str(end) if end < len(all_named) else None)


async def dependents_of(session: Session, ref: JobRef, *, cursor: str | None, limit: int) -> DependencyPage:
    """Returns the dependents that wait for a run: about `limit` at a time, each at least once."""
    next_cursor, names = await session.views.dependents(ref, _number(cursor), limit)
    parts = [name.split(" ", 2) for name in names]
    refs = [JobRef(queue, "", run) for queue, run, _ in parts if queue != WORKFLOWS]
    records = await session.read_records(refs)
    jobs = [DependencyJob(found.ref, found) for found in records if found is not None]
    return DependencyPage(jobs, str(next_cursor) if next_cursor else None)


def _number(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdecimal()) or int(cursor) >= 2**64:
        raise InvalidOption("cursor", f"{cursor!r} was not made by this listing")
    return int(cursor)
