"""Listing jobs: pages of one state, filtered by what their records say."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from rota.core.job import JobRecord, checked_queue
from rota.core.states import JobState
from rota.errors import InvalidOption
from rota.link import Link
from rota.store.views import PAGE, Page

#: Records that one page of a filtered listing looks at, at most.
EXAMINED: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What a record must have to be listed; None asks for nothing."""

    task: str | None = None
    tag: str | None = None
    error: str | None = None
    text: str | None = None

    @property
    def are_any(self) -> bool:
        """True when a record can fail to match."""
        return any(wanted is not None for wanted in (self.task, self.tag, self.error, self.text))

    def match(self, record: JobRecord) -> bool:
        """True when the record has all that is asked for."""
        return (
            (self.task is None or record.task == self.task)
            and (self.tag is None or self.tag in record.options.tags)
            and (self.error is None or (record.error is not None and record.error.type == self.error))
            and (self.text is None or _mentions(record, self.text))
        )


async def list_jobs(
    connect: Callable[[], Awaitable[Link]],
    state: JobState | str,
    *,
    queue: str | None,
    filters: Filters,
    cursor: str | None,
    limit: int,
    order: str | None,
) -> Page:
    """See `Rota.jobs`. What is asked for is checked before the server is."""
    state = checked_state(state)
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= 1000:
        raise InvalidOption("limit", f"{limit!r} is not between 1 and 1,000")
    order = order or ("newest" if state.is_finished else "oldest")
    if order not in ("oldest", "newest"):
        raise InvalidOption("order", f"{order!r} is neither oldest nor newest")
    if queue:
        checked_queue(queue)
    link = await connect()
    views = link.views
    queues = await link.names_of(queue) if queue else await views.queues()
    found: list[JobRecord] = []
    examined = 0
    while True:
        # Where few may match, a small page is no reason to ask for few at a time.
        wanted = min(max(limit, PAGE), EXAMINED - examined) if filters.are_any else limit
        records, position = await views.page(state, queues=queues, cursor=cursor, limit=wanted, order=order)
        for place, (record, reached) in enumerate(records, 1):
            examined += 1
            if filters.match(record):
                found.append(record)
                if len(found) == limit:
                    position = reached if place < len(records) else position
                    break
        cursor = position.cursor() if position else None
        if cursor is None or len(found) >= limit or examined >= EXAMINED:
            return Page(found, cursor, examined)


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
