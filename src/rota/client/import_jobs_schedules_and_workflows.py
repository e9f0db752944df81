"""`rota.import_lines()`: restores the lines of an export, on this or another server."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from rota.client.export_jobs_schedules_and_workflows import job_ids_of
from rota.core.export_line_codec import VERSION, decode_line
from rota.errors import InvalidOption
from rota.store.create_dependents_and_deliver_outcomes import Edge
from rota.store.index_repair import IndexRepair
from rota.store.keys import failures_of
from rota.store.read_and_restore_exported_records import JobCopies
from rota.store.workflow_records import compensation_id, workflow_edge

if TYPE_CHECKING:
    from rota.client.session import Session
    from rota.core.workflow_record_and_decisions import WorkflowRecord

#: Jobs of one queue that are collected before they are restored.
COLLECTED: Final = 200


@dataclass(slots=True)
class ImportReport:
    """What an import has done."""

    #: Jobs, schedules and workflows that were restored.
    jobs: int = 0
    schedules: int = 0
    workflows: int = 0
    #: Jobs, schedules and workflows that were there, or had been restored from this export before.
    present: int = 0
    #: Jobs that were left out, because their id has another unfinished job here: `queue:id`.
    in_use: list[str] = field(default_factory=list[str])
    #: Jobs that were left out, because a blob of theirs is not in the lines, or another job here has it: `queue:id`.
    without_blob: list[str] = field(default_factory=list[str])
    #: False if the lines end early: what they have is restored, and the whole export may be imported again.
    is_complete: bool = False


async def import_lines(session: Session, lines: Iterable[str] | AsyncIterable[str]) -> ImportReport:
    """Restores what the lines have. May be repeated: nothing is restored twice. Raises InvalidOption."""
    importing = _Import(session)
    number = 0
    async for line in _each(lines):
        number += 1
        if line.strip():
            await importing.read(decode_line(line, number), number)
    await importing.finish()
    return importing.report


class _Import:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._copies = JobCopies(session.store)
        self.report = ImportReport()
        self._export = ""
        self._headers: dict[str, dict[str, Any]] = {}
        #: Jobs of one queue to be restored together.
        self._collected: list[dict[str, Any]] = []
        #: (queue, run) of the export -> its run here, where that is another.
        self._renamed: dict[tuple[str, str], str] = {}
        self._workflows: list[str] = []
        #: Queue and name of blobs that lack a chunk.
        self._incomplete: set[tuple[str, str]] = set()

    async def read(self, line: dict[str, Any], number: int) -> None:
        """Restores one line, or collects it."""
        kind = line["kind"]
        if kind == "export":
            if line.get("version") != VERSION:
                raise InvalidOption("lines", f"the export has version {line.get('version')}: upgrade Rota")
            self._export = str(line["id"])
            return
        if not self._export:
            raise InvalidOption("lines", "the first line is not that of an export: give the whole file")
        try:
            await self._restore(kind, line)
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidOption("lines", f"line {number} cannot be restored: {error!r}") from error

    async def _restore(self, kind: str, line: dict[str, Any]) -> None:
        if kind == "job":
            missing = [name for name in ("queue", "run", "record", "state") if not isinstance(line[name], str)]
            if missing:
                raise TypeError(missing)
            if self._collected and "follows" not in line:
                is_other = self._collected[0]["queue"] != line["queue"]
                if is_other or len(self._collected) >= COLLECTED:
                    await self._flush()
            self._collected.append(line)
            return
        await self._flush()
        if kind == "shards":
            await self._session.store.register_queues({str(line["queue"]): int(line["shards"])})
        elif kind == "queue":
            await self._open_queue(line)
        elif kind == "blob":
            if not await self._copies.restore_blob(line):
                self._incomplete.add((str(line["queue"]), str(line["blob"])))
        elif kind == "schedule":
            is_new = await self._copies.restore_schedule(line)
            self.report.schedules += is_new
            self.report.present += not is_new
        elif kind == "workflow":
            is_new = await self._copies.restore_workflow(self._export, line)
            self.report.workflows += is_new
            self.report.present += not is_new
            self._workflows.append(str(line["id"]))
        elif kind == "end":
            self.report.is_complete = True

    async def _open_queue(self, header: dict[str, Any]) -> None:
        queue = str(header["queue"])
        self._headers[queue] = header
        if not queue.endswith("-fail"):
            await self._session.store.add_queue_names([queue])
        here = await self._copies.read_queue(queue)
        if header.get("is_paused") and here["run"] == "0":
            await self._session.store.pause_queue(queue, wanted="paused")

    async def _flush(self) -> None:
        collected, self._collected = self._collected, []
        if not collected:
            return
        queue = str(collected[0]["queue"])
        jobs = [job for job in collected if not self._lacks_chunk(queue, job)]
        self.report.without_blob += [f"{queue}:{job['id']}" for job in collected if job not in jobs]
        header = self._headers.get(queue) or {"queue": queue}
        outcomes = await self._copies.restore_runs(self._export, header, jobs)
        for job, (outcome, place) in zip(jobs, outcomes, strict=True):
            if outcome == "imported":
                self.report.jobs += 1
            elif outcome in ("in_use", "blob"):
                left_out = self.report.in_use if outcome == "in_use" else self.report.without_blob
                left_out.append(f"{queue}:{job['id']}")
                continue
            else:
                self.report.present += 1
            if place != job["run"]:
                self._renamed[queue, job["run"]] = place

    def _lacks_chunk(self, queue: str, job: dict[str, Any]) -> bool:
        return any((queue, blob) in self._incomplete for blob in str(job.get("blobs", "")).split())

    async def finish(self) -> None:
        """Connects what the lines have with each other: dependents with parents, workflows with their jobs."""
        await self._flush()
        repair = IndexRepair(self._session.store)
        for queue in self._headers:
            await repair.register_dependents_again(queue, self._renamed)
        for workflow_id in self._workflows:
            workflow = await self._session.workflows.read(workflow_id)
            if workflow is not None and workflow.ended_at is None:
                await self._session.dependencies.register_dependents(await self._edges(workflow))
                await self._session.workflows.look_again(workflow_id)
        for queue in self._headers:
            await self._session.dependencies.deliver_all(queue)
            if not queue.endswith("-fail"):
                await self._session.dependencies.deliver_all(failures_of(queue))

    async def _edges(self, workflow: WorkflowRecord) -> list[Edge]:
        """The edges from a workflow to those of its jobs that are stored."""
        edges: list[Edge] = []
        stored = {
            (queue, job["id"]): job["run"]
            for queue, ids in job_ids_of(workflow).items()
            for job in await self._copies.read_runs(queue, ids)
        }
        for index, step in enumerate(workflow.steps):
            items = range(max(0, workflow.lengths.get(index, 0))) if step.items is not None else ()
            parts = [(f"m{index}.{item}", step.queue, f"{step.id}.{item}") for item in items]
            if step.items is None:
                parts.append((f"s{index}", step.queue, step.id))
                if (step.queue, step.id) not in stored and _must_exist(workflow, index):
                    edges.append(workflow_edge(workflow.id, f"s{index}", step.queue, step.id, ""))
            if step.undo is not None:
                parts.append((f"u{index}", step.undo.queue, compensation_id(workflow.id, index)))
            edges += (
                workflow_edge(workflow.id, part, queue, job_id, stored[queue, job_id])
                for part, queue, job_id in parts
                if (queue, job_id) in stored
            )
        return edges


def _must_exist(workflow: WorkflowRecord, step: int) -> bool:
    """True for a step that has not ended: if its job is not stored, it counts as deleted."""
    return workflow.is_committed and not workflow.step_state(step).has_ended


async def _each(lines: Iterable[str] | AsyncIterable[str]) -> AsyncIterator[str]:
    if isinstance(lines, AsyncIterable):
        async for line in lines:
            yield line
    else:
        for line in lines:
            yield line
