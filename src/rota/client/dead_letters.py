"""The dead letters: jobs that failed for good, listed, grouped, redriven or deleted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from rota.client.job_listing import Filters, list_jobs
from rota.client.page_limit import checked_limit
from rota.client.redrive_jobs_and_workflow_steps import closed_workflows, redrive
from rota.client.session import Sessions
from rota.client.sync_methods import sync_method
from rota.core.ids import checked_queue
from rota.core.job_record import JobRecord
from rota.core.state_transitions import JobState
from rota.errors import InvalidOption
from rota.store.job_search import DeadLetterGroup
from rota.store.reads import Page

#: Records that a redrive or a delete reads at a time.
PAGE = 200


class DeadLetters:
    """The dead letters of all queues: `rota.dead`."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def list(
        self,
        *,
        queue: str | None = None,
        task: str | None = None,
        error: str | None = None,
        text: str | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> Page:
        """Returns a page of dead letters, the latest first: by error class, or by any text of the record."""
        filters = Filters.of(task=task, error=error, text=text)
        return await self._page(queue, filters, cursor, limit)

    async def groups(
        self, *, queue: str | None = None, samples: int = 3, limit: int = 100, max_arguments: int | None = None
    ) -> Sequence[DeadLetterGroup]:
        """Groups dead letters by class of error and message, where numbers and names in the message are ignored.

        Returns the largest groups first, up to `limit`, each with its latest `samples`, whose arguments are cut to
        `max_arguments` bytes, if given.
        `rota.jobs("failed", queue=…, group=…)` lists all jobs of one group.
        """
        checked_limit(samples, 10, option="samples", least=0)
        checked_limit(limit)
        if queue:
            checked_queue(queue)
        session = await self._sessions.checked()
        names = await session.shards.names_of_all(queue)
        found = [group for name in names for group in await session.search.groups(name)]
        found.sort(key=lambda group: (-group.count, group.queue, group.id))
        if not samples:
            return found[:limit]
        return [
            await session.search.with_samples(group, samples, max_arguments=max_arguments) for group in found[:limit]
        ]

    async def redrive(
        self,
        *,
        queue: str | None = None,
        task: str | None = None,
        error: str | None = None,
        text: str | None = None,
        limit: int | None = None,
        per_second: float | None = None,
    ) -> int:
        """Redrives every dead letter that matches, at most `limit`, no faster than `per_second`; returns their number.

        Steps of workflows that have ended, or are being undone, are left out; those of a limited workflow continue
        once it may advance.
        """
        if per_second is not None and not per_second > 0:
            raise InvalidOption("per_second", f"must be more than 0, not {per_second!r}")
        redriven = 0
        async for records in self._pages(queue, Filters.of(task=task, error=error, text=text), limit):
            session = await self._sessions.checked()
            closed = await closed_workflows(session, records)
            for part in _slices([record for record in records if record.options.workflow not in closed], per_second):
                outcomes = await redrive(session, part)
                redriven += list(outcomes.values()).count("redriven")
                if per_second is not None:
                    await asyncio.sleep(len(part) / per_second)
        return redriven

    async def delete(
        self,
        *,
        queue: str | None = None,
        task: str | None = None,
        error: str | None = None,
        text: str | None = None,
        limit: int | None = None,
    ) -> int:
        """Deletes every dead letter that matches, at most `limit`; returns their number."""
        deleted = 0
        async for records in self._pages(queue, Filters.of(task=task, error=error, text=text), limit):
            store = self._sessions.current().store
            outcomes = await asyncio.gather(*(store.delete(record.ref) for record in records))
            deleted += sum(outcome == "deleted" for outcome in outcomes)
        return deleted

    list_sync = sync_method(list)
    groups_sync = sync_method(groups)
    redrive_sync = sync_method(redrive)
    delete_sync = sync_method(delete)

    async def _page(self, queue: str | None, filters: Filters, cursor: str | None, limit: int) -> Page:
        return await list_jobs(
            self._sessions, JobState.FAILED, queue=queue, filters=filters, cursor=cursor, limit=limit, order=None
        )

    async def _pages(
        self, queue: str | None, filters: Filters, limit: int | None
    ) -> AsyncIterator[Sequence[JobRecord]]:
        """Pages until the end. Jobs that are acted upon leave the index; the cursor is not affected by that."""
        if limit is not None and limit < 0:
            raise InvalidOption("limit", f"must be 0 or more, not {limit!r}")
        cursor: str | None = None
        left = limit
        while left is None or left > 0:
            page = await self._page(queue, filters, cursor, min(PAGE, left or PAGE))
            if page.jobs:
                yield page.jobs
            left = None if left is None else left - len(page.jobs)
            cursor = page.cursor
            if cursor is None:
                return


def _slices(records: Sequence[JobRecord], per_second: float | None) -> Sequence[Sequence[JobRecord]]:
    size = len(records) if per_second is None else max(1, int(per_second / 10))
    return [records[start : start + size] for start in range(0, len(records), max(1, size))]
