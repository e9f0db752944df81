"""Drives workflows: decides what is next for each, and carries it out.

Any participant may drive a workflow that waits for a decision: it holds the workflow for `HOLD_MS`, every action is
idempotent, and if the record changed meanwhile the decision is made again.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from rota.core.dependencies import Parent
from rota.core.ids import JobRef
from rota.core.workflow_record_and_decisions import (
    MAX_ITEMS,
    NO_LIST,
    NOT_ENDED,
    RESULTS_TOO_LONG,
    StepState,
    WorkflowDecision,
    WorkflowRecord,
    decide,
    undo_order,
    why_not_resumable,
)
from rota.errors import StoreUnavailable
from rota.store.create_dependents_and_deliver_outcomes import (
    SLICE,
    TRIES,
    WORKFLOWS,
    JobWithParents,
    ParentOutcome,
    PreparedJob,
    preparation_weight,
    slices,
)
from rota.store.enqueue_batcher import NewJob
from rota.store.job_store import JobStore
from rota.store.redis.error_replies import SERVER_ERRORS
from rota.store.workflow_records import (
    HOLD_MS,
    PAGE,
    WorkflowRecords,
    compensation_id,
    find_part,
    gate_parent_name,
    list_parent_name,
    workflow_edge,
)

logger = logging.getLogger("rota.workflows")

#: Decisions in a row that one drive makes; usually a few. Another driver continues after that.
MAX_DECISIONS: Final = 100


class WorkflowStore(WorkflowRecords):
    """Reads, changes and drives workflows."""

    def __init__(self, store: JobStore) -> None:
        super().__init__(store)
        self._dependencies = store.dependencies

    async def drive_due(self) -> int:
        """Drives every workflow that waits for a decision and has no driver. Returns how many."""
        driven = 0
        while taken := await self._run("take_due_workflows", [16, HOLD_MS]):
            for workflow_id in taken:
                await self._act_on(workflow_id.decode(), self.drive)
                driven += 1
        return driven

    async def _act_on(self, workflow_id: str, act: Callable[[str], Awaitable[None]]) -> None:
        try:
            await act(workflow_id)
        except SERVER_ERRORS:
            raise
        except Exception:
            # One broken workflow must not block the others: it is taken again later.
            logger.exception("workflow %s could not be driven", workflow_id)

    async def drive(self, workflow_id: str) -> None:
        """Decides and acts until the workflow waits for outcomes of its jobs."""
        for _ in range(MAX_DECISIONS):
            workflow = await self.read(workflow_id)
            if workflow is None:
                return
            decision = decide(workflow)
            if decision is None:
                if await self.save_decision(workflow) != "stale":
                    return
                continue
            more = await self._apply(workflow, decision)
            look_again = None if decision.check_again_s is None else round(decision.check_again_s * 1000)
            answer = await self.save_decision(
                workflow,
                decision.state,
                fields={**decision.fields, **more},
                next_ms=HOLD_MS if look_again is None else look_again,
            )
            if look_again is not None and answer != "stale":
                return  # the outcomes of these actions make it due again

    async def resume_failed(self) -> None:
        """Resumes failed workflows that are configured to resume when a worker starts."""
        # Read once: a workflow that fails again is listed again.
        held = [name.decode() for name in await self._redis.command("ZRANGE", self._key("stuck_workflows"), 0, -1)]
        for start in range(0, len(held), PAGE):
            ids = held[start : start + PAGE]
            modes = await self._redis.commands(
                [["HGET", self._key("workflow", workflow_id), "resume"] for workflow_id in ids]
            )
            for workflow_id, mode in zip(ids, modes, strict=True):
                if mode == b"on_start":
                    await self._act_on(workflow_id, self._resume_if_failed)

    async def _resume_if_failed(self, workflow_id: str) -> None:
        workflow = await self.read(workflow_id)
        if workflow is not None and workflow.state == "failed" and not why_not_resumable(workflow):
            await self.resume(workflow)

    async def resume(self, workflow: WorkflowRecord) -> bool:
        """Runs the failed steps again. False if the record has changed since it was read."""
        if not await self._save_resuming(workflow, workflow.failed_parts):
            return False
        await self.drive(workflow.id)
        return True

    async def resume_steps(self, workflow_id: str, refs: Sequence[JobRef]) -> list[JobRef]:
        """Runs some failed steps again once the limit of the workflow's name allows it. Returns those steps.

        Redriving the jobs directly would run them beyond the limit.
        """
        for queue in {ref.queue for ref in refs}:
            await self._dependencies.deliver_all(queue, include="all")  # the record must have the failures
        while True:
            workflow = await self.read(workflow_id)
            if workflow is None or workflow.state not in ("waiting", "running", "failed"):
                return []
            numbers = workflow.failed_parts
            parts = {ref: part for ref in refs if (part := _part_of(workflow, ref)) in numbers}
            wanted = workflow.resuming | {part: numbers[part] for part in parts.values()}
            if not parts or await self._save_resuming(workflow, wanted):
                break
        await self.drive(workflow_id)
        return list(parts)

    async def _save_resuming(self, workflow: WorkflowRecord, parts: Mapping[str, int]) -> bool:
        """Stores that these parts are to run again, once the limit allows it. False if the record has changed."""
        words, token = " ".join(f"{part}:{number}" for part, number in parts.items()), secrets.token_hex(8)
        fields = {"resuming": words, "resume_token": token, "cause": "", "busy": ""}
        if await self.save_decision(workflow, "running", fields=fields, next_ms=HOLD_MS) != "stale":
            return True
        # Its reply may have been lost: sent again, it finds the record changed by itself.
        return await self._redis.command("HGET", self._key("workflow", workflow.id), "resume_token") == token.encode()

    async def _apply(self, workflow: WorkflowRecord, decision: WorkflowDecision) -> dict[str, str]:
        fields: dict[str, str] = {}
        if decision.commit:
            await self._commit(workflow)
        if decision.open_gate:
            await self._open_gate(workflow)
        if decision.redrive:
            await self._redrive(workflow, decision.redrive)
        for index in decision.expand:
            fields[f"n{index}"] = str(await self._expand(workflow, index))
        for index, outcome in decision.step_outcomes:
            if not await self._report_list_step(workflow, index, outcome):
                fields[f"n{index}"] = str(RESULTS_TOO_LONG)
        if decision.cancel:
            await self._cancel(workflow, decision.cancel)
        if decision.compensate:
            await self._compensate(workflow, decision.compensate)
        if decision.release_jobs:
            await self._release_jobs(workflow)
        return fields

    async def _commit(self, workflow: WorkflowRecord) -> None:
        by_queue: dict[str, list[tuple[int, str]]] = defaultdict(list)
        for index, step in enumerate(workflow.steps):
            if step.items is None:
                by_queue[step.queue].append((index, step.run))
        for queue, of_queue in by_queue.items():
            outcomes = await self._dependencies.publish_prepared_runs(queue, [run for _, run in of_queue])
            lost = [index for (index, _), outcome in zip(of_queue, outcomes, strict=True) if outcome != "visible"]
            if lost:
                # A step may have ended, and not be kept: deliver its outcome first.
                await self._dependencies.deliver_all(queue, include="all")
            await self._record_outcomes(
                [ParentOutcome(workflow.id, f"s{index}", "0", "deleted", "", b"", "0") for index in lost]
            )

    async def _open_gate(self, workflow: WorkflowRecord) -> None:
        by_queue: dict[str, list[ParentOutcome]] = defaultdict(list)
        for step in workflow.steps:
            if step.items is None:
                by_queue[step.queue].append(
                    ParentOutcome(step.run, gate_parent_name(workflow.id), "1", "completed", "", b"", "1")
                )
        for queue, outcomes in by_queue.items():
            await self._dependencies.apply_parent_outcomes(queue, outcomes)

    async def _redrive(self, workflow: WorkflowRecord, parts: Iterable[str]) -> None:
        by_queue: dict[str, list[tuple[JobRef, str, StepState]]] = defaultdict(list)
        for part in parts:
            index, _, item = part[1:].partition(".")
            step = workflow.steps[int(index)]
            if item:
                ref, state = JobRef(step.queue, f"{step.id}.{item}"), workflow.item_states[int(index)][int(item)]
            else:
                ref, state = JobRef(step.queue, step.id, step.run), workflow.step_state(int(index))
            by_queue[step.queue].append((ref, part, state))
        for queue, of_queue in by_queue.items():
            outcomes = await self._store.redrive(queue, [ref for ref, _, _ in of_queue])
            # A deleted dead letter produces no outcome.
            await self._record_outcomes(
                [
                    ParentOutcome(workflow.id, part, str(state.number + 1), "deleted", "", b"", str(state.attempts))
                    for (_, part, state), outcome in zip(of_queue, outcomes, strict=True)
                    if outcome == "missing"
                ]
            )
            await self._dependencies.deliver_all(queue, include="all")

    async def _expand(self, workflow: WorkflowRecord, index: int) -> int:
        """Enqueues one job for each item of a list. Returns how many, or `NO_LIST`."""
        step = workflow.steps[index]
        assert step.items is not None
        (result,) = await self.read_results(workflow.id, [str(step.items)])
        try:
            items = msgspec.json.decode(result or b"null", type=list[msgspec.Raw])
        except msgspec.DecodeError:
            return NO_LIST
        if len(items) > MAX_ITEMS:
            return NO_LIST
        await self._store.add_queue_names([step.queue])
        known_ends = workflow.item_states.get(index, {})
        wanted = {
            item: JobWithParents(
                NewJob(f"{step.id}.{item}", step.priority, step.due, step.expiry, _item_body(step.body, items[item])),
                (),
            )
            for item in range(len(items))
            if not known_ends.get(item, NOT_ENDED).has_ended
        }
        for part in slices(list(wanted), lambda item: preparation_weight(wanted[item].job, 0)):
            await self._enqueue_items(workflow, index, {item: wanted[item] for item in part})
        return len(items)

    async def _enqueue_items(self, workflow: WorkflowRecord, index: int, jobs: dict[int, JobWithParents]) -> None:
        """Enqueues jobs for items of a list, by their numbers, so that their outcomes reach the workflow."""
        step = workflow.steps[index]
        for _ in range(TRIES):
            prepared, held = await self._dependencies.prepare_dependents(step.queue, jobs, kind="step")
            # Existing jobs were made by a driver that died before it saved the decision.
            known = [PreparedJob(item, f"{step.id}.{item}", "", ()) for item in held]
            await self._dependencies.register_dependents(
                [
                    workflow_edge(
                        workflow.id,
                        f"m{index}.{one.position}",
                        step.queue,
                        one.id,
                        one.run,
                        wants_result=step.is_result_taken,
                    )
                    for one in (*prepared, *known)
                ]
            )
            runs = [one.run for one in prepared]
            outcomes = await self._dependencies.publish_prepared_runs(step.queue, runs)
            # This driver was interrupted for so long that its prepared jobs were discarded, or made by another one.
            jobs = {
                one.position: jobs[one.position]
                for one, outcome in zip(prepared, outcomes, strict=True)
                if outcome != "visible"
            }
            if not jobs:
                return
        raise StoreUnavailable(f"items of workflow {workflow.id} were not enqueued in time: another driver tries again")

    async def _report_list_step(self, workflow: WorkflowRecord, index: int, outcome: str) -> bool:
        """Delivers the outcome of a list step to its dependents: it has no job of its own that would.

        Returns False, and delivers nothing, if the results of its items are too long together.
        """
        # A later decision has a higher number, in any driver.
        number = str(int(workflow.version) + 1)
        result = b""
        if outcome == "completed" and workflow.steps[index].is_result_taken:
            length = workflow.lengths[index]
            (size,) = await self.read_results(workflow.id, [f"size:{index}"])
            if int(size or 0) + length > workflow.max_payload:
                return False
            parts = await self.read_results(workflow.id, [f"{index}.{item}" for item in range(length)])
            result = b"[" + b",".join(part or b"null" for part in parts) + b"]"
        by_queue: dict[str, list[ParentOutcome]] = defaultdict(list)
        for step in workflow.steps:
            if index in step.after and step.items is None:
                name = list_parent_name(workflow.id, index)
                by_queue[step.queue].append(ParentOutcome(step.run, name, number, outcome, "", result, "1"))
        for queue, outcomes in by_queue.items():
            await self._dependencies.apply_parent_outcomes(queue, outcomes)
            await self._dependencies.deliver_all(queue, include="all")
        await self._record_outcomes([ParentOutcome(workflow.id, f"s{index}", number, outcome, "", result, "1")])
        return True

    async def _cancel(self, workflow: WorkflowRecord, indexes: Iterable[int]) -> None:
        reason = (
            f"workflow {workflow.name} ({workflow.id}) was cancelled"
            if workflow.cancel
            else f"workflow {workflow.name} ({workflow.id}): {workflow.cause}"
        )
        refs: list[JobRef] = []
        for index in indexes:
            step = workflow.steps[index]
            if step.items is None:
                refs.append(JobRef(step.queue, step.id, step.run))
            else:
                refs += [JobRef(step.queue, f"{step.id}.{item}") for item in range(workflow.lengths[index])]
        for start in range(0, len(refs), SLICE):
            await asyncio.gather(*(self._store.cancel(ref, reason=reason) for ref in refs[start : start + SLICE]))
        for queue in {ref.queue for ref in refs}:
            await self._dependencies.deliver_all(queue, include="all")

    async def _compensate(self, workflow: WorkflowRecord, wanted: Sequence[int]) -> None:
        """Enqueues one job for each compensation, after those of the steps that depended on its step."""
        order = undo_order(workflow.steps, wanted)
        made: dict[int, JobRef] = {}
        for index, before in order.items():
            step = workflow.steps[index]
            assert step.undo is not None
            undo = step.undo
            body = undo.body.encode()
            results = await self.read_results(workflow.id, [str(source) for source, _ in undo.placeholders])
            for (_, placeholder), result in zip(undo.placeholders, results, strict=True):
                body = body.replace(f'"{placeholder}"'.encode(), result or b"null")
            parents = [Parent(made[other], if_gone="satisfied") for other in before]
            job = NewJob(compensation_id(workflow.id, index), undo.priority, "", "", body)
            one = await self._dependencies.enqueue_workflow_job(undo.queue, JobWithParents(job, parents))
            made[index] = JobRef(undo.queue, one.id, one.run)
            await self._dependencies.register_dependents(
                [workflow_edge(workflow.id, f"u{index}", undo.queue, one.id, one.run)]
            )
        await self._store.add_queue_names(sorted({step.undo.queue for step in workflow.steps if step.undo is not None}))

    async def _release_jobs(self, workflow: WorkflowRecord) -> None:
        by_queue: dict[str, list[str]] = defaultdict(list)
        for index, step in enumerate(workflow.steps):
            if step.items is None:
                by_queue[step.queue] += (step.id, step.run)
            for item in workflow.item_states.get(index, {}):
                by_queue[step.queue] += (f"{step.id}.{item}", "")
            if index in workflow.undo_states and step.undo is not None:
                by_queue[step.undo.queue] += (compensation_id(workflow.id, index), "")
        for queue, words in by_queue.items():
            name = "put_ended_workflow_runs_under_retention"
            keys, done = self._store.script_keys(name, queue), 0
            while done < len(words):  # one call may do fewer, where jobs are long
                done += 2 * int(await self._redis.run(name, keys, words[done : done + 2 * SLICE]))

    async def _record_outcomes(self, outcomes: Sequence[ParentOutcome]) -> None:
        if outcomes:
            await self._dependencies.deliver_outcomes(WORKFLOWS, outcomes)


def _part_of(workflow: WorkflowRecord, ref: JobRef) -> str:
    """The step ("s3") or list item ("m3.7") that a job is; "" for anything else, compensations included."""
    found = find_part(workflow, ref.id)
    if found is None or found[2] or (found[1] is None and ref.run != workflow.steps[found[0]].run):
        return ""
    index, item, _ = found
    return f"s{index}" if item is None else f"m{index}.{item}"


def _item_body(body: str, item: msgspec.Raw) -> bytes:
    return body.encode() + b"[" + bytes(item) + b"]"
