"""Redrives dead letters, also those that are steps of workflows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rota.client.session import Session
from rota.core.ids import JobRef
from rota.core.job_record import JobRecord

#: States of a workflow in which a failed step, or compensation, may be redriven.
REDRIVABLE: Final = ("waiting", "running", "failed", "parked")


async def closed_workflows(session: Session, records: Iterable[JobRecord]) -> dict[str, str]:
    """Of the workflows that these jobs are steps of, those that cannot continue: id -> state, or "gone"."""
    ids = {record.options.workflow for record in records if record.options.workflow}
    if not ids:
        return {}
    states = await session.workflows.states(sorted(ids))
    # A workflow that is no longer kept ended long ago.
    return {workflow: state or "gone" for workflow, state in states.items() if state not in REDRIVABLE}


async def redrive(session: Session, records: Iterable[JobRecord]) -> dict[JobRef, str]:
    """Redrives dead letters. Returns an outcome for each: "redriven", or the reason why not.

    A step of a workflow whose name is limited continues once that workflow may advance.
    """
    by_workflow: dict[str, list[JobRef]] = {}
    for record in records:
        by_workflow.setdefault(record.options.workflow, []).append(record.ref)
    limited = await session.workflows.with_limit([workflow for workflow in by_workflow if workflow])
    refs = [ref for workflow, steps in by_workflow.items() if workflow not in limited for ref in steps]
    outcomes: dict[JobRef, str] = {}
    for workflow in limited:
        steps = by_workflow[workflow]
        known = await session.workflows.resume_steps(workflow, steps)
        outcomes |= dict.fromkeys(known, "redriven")
        refs += [ref for ref in steps if ref not in known]
    for queue in {ref.queue for ref in refs}:
        of_queue = [ref for ref in refs if ref.queue == queue]
        outcomes |= dict(zip(of_queue, await session.store.redrive(queue, of_queue), strict=True))
        await session.notify_dependents(queue)
    return outcomes
