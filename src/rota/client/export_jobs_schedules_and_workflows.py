"""`rota.export_lines()`: writes every job, schedule and workflow as lines of JSON while the system runs."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, AsyncIterator
from typing import TYPE_CHECKING, Any

from rota.core.export_line_codec import VERSION, encode_line
from rota.core.workflow_record_and_decisions import WorkflowRecord
from rota.store.keys import failures_of
from rota.store.read_and_restore_exported_records import JobCopies
from rota.store.workflow_records import compensation_id

if TYPE_CHECKING:
    from rota.client.session import Session


async def export_lines(session: Session) -> AsyncGenerator[str]:
    """Yields the lines of an export.

    Each job is written as it was at one moment, a follow-up together with the run before it. Jobs change while the
    export runs: one that is enqueued after it began may be missing.
    """
    export = Export(session)
    yield encode_line("export", {"version": VERSION, "id": secrets.token_hex(8), "namespace": session.keys.namespace})
    async for kind, fields in export.records():
        yield encode_line(kind, fields)
    yield encode_line("end", {"jobs": export.jobs})


class Export:
    """Reads everything that is to be copied, in an order in which it can be restored."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._copies = JobCopies(session.store)
        #: How many jobs have been read.
        self.jobs = 0
        #: Steps of workflows that the walk of the queues has passed, and those that were written with their workflow.
        self._passed: dict[tuple[str, str], None] = {}
        self._written: set[tuple[str, str]] = set()

    async def records(self) -> AsyncIterator[tuple[str, dict[str, Any]]]:
        """Yields kind and fields of each line."""
        async for shards in self._sharded():
            yield shards
        for base in await self._session.views.queues():
            for queue in (base, failures_of(base)):
                async for record in self._queue(queue):
                    yield record
        for workflow_id in await self._copies.workflow_ids():
            async for record in self._workflow(workflow_id):
                yield record
        for queue, run in [key for key in self._passed if key not in self._written]:
            for fields in await self._copies.read_runs(queue, [run]):
                async for record in self._job(fields):
                    yield record

    async def _sharded(self) -> AsyncIterator[tuple[str, dict[str, Any]]]:
        found = await self._session.redis.command("HGETALL", self._session.keys.shared("shards"))
        for queue, count in zip(found[::2], found[1::2], strict=True):
            yield "shards", {"queue": queue.decode(), "shards": int(count)}

    async def _queue(self, queue: str) -> AsyncIterator[tuple[str, dict[str, Any]]]:
        yield "queue", await self._copies.read_queue(queue)
        for fields in await self._copies.read_schedules(queue):
            yield "schedule", fields
        async for runs in self._copies.walk_runs(queue):
            for fields in runs:
                if "is_step" in fields:
                    self._passed[queue, fields["run"]] = None
                elif fields.get("index") != "prepared":  # its producer is about to publish or to discard it
                    async for record in self._job(fields):
                        yield record

    async def _workflow(self, workflow_id: str) -> AsyncIterator[tuple[str, dict[str, Any]]]:
        """A workflow, and its jobs as they are a moment later."""
        fields, record = await self._copies.read_workflow(workflow_id), await self._session.workflows.read(workflow_id)
        if fields is None or record is None:
            return
        yield "workflow", fields
        for queue, ids in job_ids_of(record).items():
            for job in await self._copies.read_runs(queue, ids):
                self._written.add((queue, job["run"]))
                async for part in self._job(job):
                    yield part

    async def _job(self, fields: dict[str, Any]) -> AsyncIterator[tuple[str, dict[str, Any]]]:
        """A job, after its blobs."""
        async for chunk in self._copies.read_blobs(fields):
            yield "blob", chunk
        self.jobs += 1
        yield "job", fields


def job_ids_of(workflow: WorkflowRecord) -> dict[str, list[str]]:
    """The ids of all jobs that a workflow may have, by queue: steps, items of lists, compensations."""
    ids: dict[str, list[str]] = {}
    for index, step in enumerate(workflow.steps):
        of_queue = ids.setdefault(step.queue, [])
        if step.items is None:
            of_queue.append(step.id)
        else:
            of_queue += (f"{step.id}.{item}" for item in range(max(0, workflow.lengths.get(index, 0))))
        if step.undo is not None:
            ids.setdefault(step.undo.queue, []).append(compensation_id(workflow.id, index))
    return ids
