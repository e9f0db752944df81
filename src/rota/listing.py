"""Listing and finding jobs: pages of one state or of all, in an order that no write disturbs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from rota.core.job import JobRecord, JobRef, checked_queue, checked_text, checked_time_ms
from rota.core.states import JobState
from rota.core.terms import error_term, field_term, tag_term
from rota.errors import InvalidOption
from rota.link import Link
from rota.store.search import Question
from rota.store.views import PAGE, Page, Position

#: Records that one page looks at, at most, where they are all that can tell.
EXAMINED: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What a job must be to be listed; None asks for nothing. Times are ms since 1970."""

    task: str | None = None
    tag: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    worker: str | None = None
    error: str | None = None
    group: str | None = None
    since: int | None = None
    until: int | None = None
    text: str | None = None

    @classmethod
    def of(
        cls, *, since: datetime | None = None, until: datetime | None = None, fields: Mapping[str, Any] | None = None,
        **wanted: str | None,
    ) -> Filters:  # fmt: skip
        """Checked, from what a program gives."""
        for name, text in wanted.items():
            if text is not None:
                checked_text(text, name)
        filters = cls(
            **wanted, fields=dict(fields or {}), since=None if since is None else checked_time_ms(since, "since"),
            until=None if until is None else checked_time_ms(until, "until"),
        )  # fmt: skip
        _ = filters.terms  # a value that cannot be looked for is refused here
        return filters

    @property
    def terms(self) -> tuple[str, ...]:
        """What the index of terms is asked for."""
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
        """True when the time matters."""
        return self.since is not None or self.until is not None

    def match(self, record: JobRecord) -> bool:
        """True when the record is all that is asked for, as far as it can tell: of its group it knows nothing."""
        at = record.ended_at if record.state.is_finished else record.enqueued_at
        return (
            (self.task is None or record.task == self.task)
            and (self.tag is None or self.tag in record.options.tags)
            and all(field_term(name, value) in record.options.terms for name, value in self.fields.items())
            and (self.worker is None or record.worker == self.worker)
            and (self.error is None or (record.error is not None and record.error.type == self.error))
            and (self.since is None or (at or 0) >= self.since)
            and (self.until is None or (at or 0) < self.until)
            and (self.text is None or _mentions(record, self.text))
        )


async def list_jobs(
    connect: Callable[[], Awaitable[Link]],
    state: JobState | str | None,
    *,
    queue: str | None,
    filters: Filters,
    cursor: str | None,
    limit: int,
    order: str | None,
) -> Page:
    """See `Rota.jobs`. What is asked for is checked before the server is."""
    wanted = None if state is None else checked_state(state)
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= 1000:
        raise InvalidOption("limit", f"{limit!r} is not between 1 and 1,000")
    if order not in (None, "oldest", "newest"):
        raise InvalidOption("order", f"{order!r} is neither oldest nor newest")
    question = _question(wanted, filters)
    if queue:
        checked_queue(queue)
    link = await connect()
    queues = await link.names_of(queue) if queue else await link.views.queues()
    is_finished = wanted is not None and wanted.is_finished
    order = order or ("newest" if is_finished or wanted is None else "oldest")
    if wanted is None or wanted is JobState.PROCESSING or question.needs_index:
        return await _found_by_index(link, queues, question, filters, cursor, limit, order)
    return await _found_in_state(link, wanted, queues, filters, cursor, limit, order)


async def find_jobs(
    connect: Callable[[], Awaitable[Link]], filters: Filters, where: Mapping[str, Any], cursor: str | None, limit: int
) -> Page:
    """A page for who wants to act on all jobs that match: from the newest to the oldest, in the order of enqueueing."""
    state = where.get("state")
    question = _question(None if state is None else checked_state(state), filters)
    link = await connect()
    queue = where.get("queue")
    queues = await link.names_of(checked_queue(queue)) if queue else await link.views.queues()
    return await _found_by_index(link, queues, question, filters, cursor, limit, "newest")


async def read_jobs(
    connect: Callable[[], Awaitable[Link]], refs: Sequence[JobRef], cursor: str | None, limit: int
) -> Page:
    """A page of jobs that are known by name, in that order; those that are no more are left out."""
    link = await connect()
    start = int(cursor or 0)
    end = start + limit
    part = [await link.locate(ref) for ref in refs[start:end]]
    found: dict[JobRef, JobRecord] = {}
    for queue in {ref.queue for ref in part}:
        mine = [ref for ref in part if ref.queue == queue]
        for ref, snapshot in zip(mine, await link.views.read(queue, mine, detail="brief"), strict=True):
            if snapshot is not None:
                found[ref] = snapshot.record
    return Page([found[ref] for ref in part if ref in found], str(end) if end < len(refs) else None, len(part))


def _question(state: JobState | None, filters: Filters) -> Question:
    return Question(
        state=state, task=filters.task, terms=filters.terms, worker=filters.worker, since=filters.since,
        until=filters.until,
    )  # fmt: skip


async def _found_in_state(
    link: Link, state: JobState, queues: list[str], filters: Filters, cursor: str | None, limit: int, order: str
) -> Page:
    """Pages of one state's own order; a text is looked for in each record."""
    span = (filters.since, filters.until)
    found: list[JobRecord] = []
    examined = 0
    while True:
        # Where few may match, a small page is no reason to ask for few at a time.
        wanted = limit if filters.text is None else min(max(limit, PAGE), EXAMINED - examined)
        records, position = await link.views.page(
            state, queues=queues, cursor=cursor, limit=wanted, order=order, span=span
        )
        for place, (record, reached) in enumerate(records, 1):
            examined += 1
            if filters.text is None or filters.match(record):
                found.append(record)
                if len(found) == limit:
                    position = reached if place < len(records) else position
                    break
        cursor = position.cursor() if position else None
        if cursor is None or len(found) >= limit or examined >= EXAMINED:
            return Page(found, cursor, examined)


async def _found_by_index(
    link: Link, queues: list[str], question: Question, filters: Filters, cursor: str | None, limit: int, order: str
) -> Page:
    """Pages in the order in which jobs were enqueued, queue by queue."""
    listing = f"{question.state.value if question.state else 'any'} {order} run"
    position = Position.of(cursor) if cursor is not None else Position(listing, queues[0] if queues else "")
    if cursor is not None and (position.queue not in queues or position.listing != listing):
        raise InvalidOption("cursor", f"{cursor!r} belongs to another listing")
    found: list[JobRecord] = []
    examined = 0
    for queue in queues[queues.index(position.queue) if queues else 0 :]:
        after = position.run if queue == position.queue else ""
        async for run, record in link.search.find(queue, question, after=after, order=order):
            if record is not None:
                examined += 1
                if (question.state is None or record.state is question.state) and filters.match(record):
                    found.append(record)
            # Without a record: it has looked long enough, and this is how far it came.
            if record is None or len(found) == limit or examined >= EXAMINED:
                return Page(found, Position(listing, queue, 0.0, run).cursor(), examined)
    return Page(found, None, examined)


def checked_state(state: JobState | str) -> JobState:
    """A state by its name, in any case."""
    try:
        return JobState(state.lower())
    except (AttributeError, ValueError):
        raise InvalidOption("state", f"{state!r} is none of {', '.join(JobState)}") from None


def _mentions(record: JobRecord, text: str) -> bool:
    error = f"{record.error.type} {record.error.message}" if record.error else ""
    haystack = f"{record.ref} {record.task} {record.arguments.decode(errors='replace')} {error} {record.worker}"
    return text.lower() in haystack.lower()
