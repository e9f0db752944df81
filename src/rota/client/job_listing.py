"""Lists and searches jobs, page by page, in an order that concurrent writes do not disturb."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any, Final, Protocol

from rota.client.merge_job_pages_by_time import Entry, Merge, QueueEntries
from rota.client.page_limit import checked_limit
from rota.client.session import Session, Sessions
from rota.core.ids import JobRef, checked_queue, checked_text, decode_run, encode_run
from rota.core.job_index_terms import error_term, field_term, tag_term
from rota.core.job_options import checked_time_ms
from rota.core.job_record import JobRecord
from rota.core.masking import Mask
from rota.core.state_transitions import JobState
from rota.errors import InvalidOption
from rota.store.job_search import SearchQuery
from rota.store.reads import PAGE_BATCH, Page, Position, Positions

#: Records that one page examines at most, where no index answers the query.
EXAMINED: Final = 1_000
#: Jobs that are read at least of each queue at a time.
MIN_BATCH: Final = 5
#: Above this number of queues a search goes queue by queue: a cursor with the position in each would be too long for a
#: URL.
MERGED_QUEUES: Final = 200
#: Bytes of the records after which a page ends.
PAGE_BYTES: Final = 4_000_000
#: Bytes that are searched for a text before other tasks of the event loop run.
SLICE_BYTES: Final = 100_000
#: Bytes of the arguments of a job that are searched for a text, where only some are read.
SEARCHED_BYTES: Final = 10_000


class TextOf(Protocol):
    """Returns the arguments of a job as the text that may be searched."""

    def __call__(self, record: JobRecord) -> str: ...


def stored_text(record: JobRecord) -> str:
    """Returns the arguments of a job as they are stored."""
    return record.arguments.decode(errors="replace")


class MaskedText:
    """The arguments of a job without masked values: a search must not find what its caller may not read.

    `positional` has, by task, the names of its positional arguments.
    """

    def __init__(self, names: Sequence[str], positional: Mapping[str, Sequence[str]]) -> None:
        self._mask = Mask(names)
        self._positional = {
            task: parameters for task, parameters in positional.items() if any(map(self._mask.hides, parameters))
        }

    def __call__(self, record: JobRecord) -> str:
        """Returns the first bytes of the arguments, masked."""
        positional = self._positional.get(record.task, ())
        return self._mask.text(record.arguments, positional=positional, limit=SEARCHED_BYTES)

    def to_json(self) -> dict[str, Any]:
        """Returns what the constructor takes, to be stored with a bulk operation."""
        return {"names": self._mask.names, "positional": self._positional}


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Conditions that a listed job meets; None is no condition. Times are ms since 1970."""

    task: str | None = None
    tag: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    worker: str | None = None
    error: str | None = None
    group: str | None = None
    since: int | None = None
    until: int | None = None
    text: str | None = None
    #: Tasks that the caller may run, with wildcards as in file names; None: all. Applied to bulk operations.
    only_tasks: tuple[str, ...] | None = None
    #: The text that is searched: without masked values where the caller may not see them.
    text_of: TextOf = stored_text

    @classmethod
    def of(
        cls,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        fields: Mapping[str, Any] | None = None,
        text_of: TextOf = stored_text,
        only_tasks: Sequence[str] | None = None,
        **wanted: str | None,
    ) -> Filters:
        """Returns checked filters. Raises InvalidOption."""
        for name, text in wanted.items():
            if text is not None:
                checked_text(text, name)
        filters = cls(
            **wanted,
            fields=dict(fields or {}),
            text_of=text_of,
            only_tasks=None if only_tasks is None else tuple(only_tasks),
            since=None if since is None else checked_time_ms(since, "since"),
            until=None if until is None else checked_time_ms(until, "until"),
        )
        _ = filters.terms  # refuses a value that cannot be searched for
        return filters

    @property
    def terms(self) -> tuple[str, ...]:
        """The terms to search the index for."""
        found = [field_term(name, value) for name, value in self.fields.items()]
        if self.tag is not None:
            found.append(tag_term(self.tag))
        if self.error is not None:
            found.append(error_term(self.error))
        if self.group is not None:
            found.append(f"group={self.group}")
        return tuple(found)

    @property
    def has_time(self) -> bool:
        """True when there is a condition on the time."""
        return self.since is not None or self.until is not None

    def match(self, record: JobRecord) -> bool:
        """True when the record meets every condition but the group, which is not part of the record."""
        at = record.ended_at if record.state.is_finished else record.enqueued_at
        return (
            (self.task is None or record.task == self.task)
            and (self.only_tasks is None or any(fnmatchcase(record.task, one) for one in self.only_tasks))
            and (self.tag is None or self.tag in record.options.tags)
            and all(field_term(name, value) in record.options.terms for name, value in self.fields.items())
            and (self.worker is None or record.worker == self.worker)
            and (self.error is None or (record.error is not None and record.error.type == self.error))
            and (self.since is None or (at or 0) >= self.since)
            and (self.until is None or (at or 0) < self.until)
            and (self.text is None or self._mentions(record, self.text))
        )

    def _mentions(self, record: JobRecord, text: str) -> bool:
        error = f"{record.error.type} {record.error.message}" if record.error else ""
        haystack = f"{record.ref} {record.task} {self.text_of(record)} {error} {record.worker}"
        return text.lower() in haystack.lower()


async def list_jobs(
    sessions: Sessions,
    state: JobState | str | None,
    *,
    queue: str | None,
    filters: Filters,
    cursor: str | None,
    limit: int,
    order: str | None,
    max_arguments: int | None = None,
) -> Page:
    """See `Rota.jobs`. Arguments are checked before the server is contacted.

    The arguments of a job are cut to `max_arguments` bytes, if given.
    """
    wanted = None if state is None else checked_state(state)
    checked_limit(limit)
    if order not in (None, "oldest", "newest"):
        raise InvalidOption("order", f"{order!r} is neither oldest nor newest")
    query = _query(wanted, filters)
    if queue:
        checked_queue(queue)
    session = await sessions.checked()
    queues = sorted(await session.shards.names_of_all(queue))
    is_finished = wanted is not None and wanted.is_finished
    order = order or ("newest" if is_finished or wanted is None else "oldest")
    if wanted is None or wanted is JobState.PROCESSING or query.needs_index:
        return await _found_by_index(session, queues, query, filters, cursor, limit, order, max_arguments)
    return await _found_in_state(session, wanted, queues, filters, cursor, limit, order, max_arguments)


async def find_jobs(
    sessions: Sessions, filters: Filters, where: Mapping[str, Any], cursor: str | None, limit: int
) -> Page:
    """Returns a page for a bulk operation: jobs that match, queue by queue, the newest enqueued first."""
    state = where.get("state")
    query = _query(None if state is None else checked_state(state), filters)
    queue = where.get("queue")
    if queue:
        checked_queue(queue)
    session = await sessions.checked()
    queues = await session.shards.names_of_all(queue)
    return await _found_queue_by_queue(session, queues, query, filters, cursor, limit, "newest", SEARCHED_BYTES + 1)


async def read_jobs(sessions: Sessions, refs: Sequence[JobRef], cursor: str | None, limit: int) -> Page:
    """Returns a page of the named jobs, in that order; those that are not kept are left out."""
    session = await sessions.checked()
    start = int(cursor or 0)
    end = start + limit
    records = await session.read_records(refs[start:end])
    found = [record for record in records if record is not None]
    return Page(found, str(end) if end < len(refs) else None, len(records))


def _query(state: JobState | None, filters: Filters) -> SearchQuery:
    return SearchQuery(
        state=state,
        task=filters.task,
        terms=filters.terms,
        worker=filters.worker,
        since=filters.since,
        until=filters.until,
    )


async def _found_in_state(
    session: Session,
    state: JobState,
    queues: list[str],
    filters: Filters,
    cursor: str | None,
    limit: int,
    order: str,
    max_arguments: int | None,
) -> Page:
    """Returns a page of all queues, in the order of the state's own index; a text is searched in each record.

    The order is that of score, queue and run, so a cursor with these three is the position in every queue.
    """
    listing = f"{state.value} {order}"
    position = None if cursor is None else Position.from_cursor(cursor)
    if position is not None and (position.queue not in queues or position.listing != listing):
        raise InvalidOption("cursor", f"{cursor!r} belongs to another listing")
    after = {queue: _after(queue, position, order) for queue in queues}
    # With a text few records may match, so a small page still reads many at a time.
    batch = PAGE_BATCH if filters.text is not None else _first_batch(limit, queues)

    async def fill(some: Sequence[QueueEntries]) -> None:
        nonlocal batch
        while some := [one for one in some if not one.entries and not one.is_done]:
            positions = {one.queue: after[one.queue] for one in some}
            answer = await session.views.list_runs(
                state,
                positions,
                limit=batch,
                order=order,
                span=(filters.since, filters.until),
                max_arguments=max_arguments,
            )
            for one in some:
                rows, is_more = answer[one.queue]
                one.is_done = not is_more
                if rows:
                    after[one.queue] = rows[-1][:2]
                one.entries.extend(Entry(score, run, record) for score, run, record in rows if record is not None)
            batch = min(2 * batch, PAGE_BATCH)

    merge = Merge([QueueEntries(queue) for queue in queues], fill, is_newest=order == "newest")
    found: list[JobRecord] = []
    examined = 0
    size = PageSize()
    while len(found) < limit and examined < EXAMINED and not size.is_reached:
        taken = await merge.take()
        if taken is None:
            break
        one, (score, run, record) = taken
        position = Position(listing, one.queue, score, run)
        examined += 1
        await size.add(record)
        if filters.text is None or filters.match(record):
            found.append(record)
    if position is None or merge.is_at_end:
        return Page(found, None, examined)
    return Page(found, position.to_cursor(), examined)


def _after(queue: str, position: Position | None, order: str) -> tuple[float | None, str]:
    """Returns the score and run after which a queue continues, from the position in the merged listing."""
    if position is None:
        return None, ""
    if queue == position.queue:
        return position.score, position.run
    # Entries with the same score follow in later queues only. Every run is between these two.
    is_after_all = (queue < position.queue) == (order == "oldest")
    return position.score, "~" if is_after_all else "0"


def _first_batch(limit: int, queues: Sequence[str]) -> int:
    """Returns how many jobs to read of each queue at first: twice its share of the page."""
    share = -(-2 * limit // max(1, len(queues)))
    return min(limit, PAGE_BATCH, max(share, MIN_BATCH))


async def _found_by_index(
    session: Session,
    queues: list[str],
    query: SearchQuery,
    filters: Filters,
    cursor: str | None,
    limit: int,
    order: str,
    max_arguments: int | None,
) -> Page:
    """Returns a page of all queues in the order in which jobs were enqueued."""
    if len(queues) > MERGED_QUEUES:
        return await _found_queue_by_queue(session, queues, query, filters, cursor, limit, order, max_arguments)
    is_newest = order == "newest"
    listing = f"{query.state.value if query.state else 'any'} {order} merged"
    runs = dict[str, str]()
    if cursor is not None:
        positions = Positions.from_cursor(cursor)
        runs = positions.runs
        if positions.listing != listing or not runs or not runs.keys() <= set(queues):
            raise InvalidOption("cursor", f"{cursor!r} belongs to another listing")
        if is_newest:  # a queue without a position is newer than the listing
            queues = [queue for queue in queues if queue in runs]
    batch = _first_batch(limit, queues)
    sources = {
        queue: session.search.find(
            queue, query, after=runs.get(queue, ""), order=order, batch=batch, max_arguments=max_arguments
        )
        for queue in queues
    }

    async def advance(one: QueueEntries) -> None:
        try:
            run, record = await anext(sources[one.queue])
        except StopAsyncIteration:
            one.is_done = True
        else:
            if record is None:
                one.stopped_at = run
            else:
                one.entries.append(Entry(record.enqueued_at, run, record))

    async def fill(some: Sequence[QueueEntries]) -> None:
        for failure in await asyncio.gather(*(advance(one) for one in some), return_exceptions=True):
            if failure is not None:
                raise failure

    listed = [QueueEntries(queue, taken=runs.get(queue, "")) for queue in queues]
    merge = Merge(listed, fill, is_newest=is_newest)
    found: list[JobRecord] = []
    examined = 0
    size = PageSize()
    try:
        while len(found) < limit and examined < EXAMINED and not size.is_reached:
            taken = await merge.take()
            if taken is None:
                break
            record = taken[1].record
            examined += 1
            await size.add(record)
            if (query.state is None or record.state is query.state) and filters.match(record):
                found.append(record)
    finally:
        for source in sources.values():
            await source.aclose()
    if merge.is_at_end:
        return Page(found, None, examined)
    reached = {one.queue: run for one in listed if (run := _reached(one, is_newest))}
    return Page(found, Positions(listing, reached).to_cursor(), examined)


def _reached(one: QueueEntries, is_newest: bool) -> str:
    """Returns the run at which the next page continues in a queue; empty for its start.

    A listing of the newest first never returns to runs that are newer than its first page.
    """
    if run := one.stopped_at or one.taken:
        return run
    if not is_newest:
        return ""
    return encode_run(decode_run(one.entries[0].run) + 1) if one.entries else encode_run(0)


async def _found_queue_by_queue(
    session: Session,
    queues: list[str],
    query: SearchQuery,
    filters: Filters,
    cursor: str | None,
    limit: int,
    order: str,
    max_arguments: int | None,
) -> Page:
    """Returns a page in the order in which jobs were enqueued, queue by queue: its cursor is short."""
    listing = f"{query.state.value if query.state else 'any'} {order} run"
    position = Position.from_cursor(cursor) if cursor is not None else Position(listing, queues[0] if queues else "")
    if cursor is not None and (position.queue not in queues or position.listing != listing):
        raise InvalidOption("cursor", f"{cursor!r} belongs to another listing")
    found: list[JobRecord] = []
    examined = 0
    size = PageSize()
    for queue in queues[queues.index(position.queue) if queues else 0 :]:
        after = position.run if queue == position.queue else ""
        async for run, record in session.search.find(
            queue, query, after=after, order=order, max_arguments=max_arguments
        ):
            if record is not None:
                examined += 1
                await size.add(record)
                if (query.state is None or record.state is query.state) and filters.match(record):
                    found.append(record)
            # No record: the search has examined enough, and the page ends at this run.
            if record is None or len(found) == limit or examined >= EXAMINED or size.is_reached:
                return Page(found, Position(listing, queue, 0.0, run).to_cursor(), examined)
    return Page(found, None, examined)


class PageSize:
    """Counts the bytes of the records that a page has read, and lets other tasks run in between."""

    def __init__(self) -> None:
        self._bytes = 0
        self._slice = 0

    @property
    def is_reached(self) -> bool:
        """True if the page has to end."""
        return self._bytes >= PAGE_BYTES

    async def add(self, record: JobRecord) -> None:
        """Counts a record that was read."""
        size = len(record.arguments)
        if record.error is not None:
            size += len(record.error.message) + len(record.error.traceback)
        self._bytes += size
        self._slice += size
        if self._slice >= SLICE_BYTES:
            self._slice = 0
            await asyncio.sleep(0)


def checked_state(state: JobState | str) -> JobState:
    """Returns a state by its name, in any case. Raises InvalidOption."""
    try:
        return JobState(state.lower())
    except (AttributeError, ValueError):
        raise InvalidOption("state", f"{state!r} is none of {', '.join(JobState)}") from None
