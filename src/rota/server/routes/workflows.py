"""Workflows: built and committed as a whole, looked at with their graph, cancelled, resumed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final

from fastapi import APIRouter, Body, Path, Query, Response

from rota.core.job import JobRef, checked_id
from rota.core.values import is_array, is_object
from rota.core.workflow import Flow
from rota.drafts import Draft, Step
from rota.errors import InvalidJob, InvalidOption, JobNotFound
from rota.server import enqueueing, shapes
from rota.server.answers import KeyedRoute, token_of
from rota.server.problems import Problem
from rota.server.schemas.base import ID, WorkflowStateName
from rota.server.schemas.jobs import JobOptions
from rota.server.schemas.workflows import CancelWorkflow, NewStep, NewWorkflow, WorkflowAnswer, WorkflowsAnswer
from rota.server.visits import Operator, Viewer, Visit, reply
from rota.tasks import Call

router = APIRouter(route_class=KeyedRoute, tags=["workflows"])

WorkflowId = Annotated[str, Path(max_length=300, json_schema_extra={"pattern": ID})]
#: Stands for the result of another step, where it is all that an object holds.
RESULT: Final = "$result"


@router.get("/api/workflows", response_model=WorkflowsAnswer)
async def list_workflows(
    visit: Viewer,
    state: Annotated[list[WorkflowStateName] | None, Query(description="Only those in one of these.")] = None,
    name: Annotated[str | None, Query(max_length=200, description="Only those of this name.")] = None,
    cursor: Annotated[str | None, Query(max_length=300)] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Response:
    """The latest workflows, the newest first: all that have not ended, and those of the last day."""
    visit.check_unlimited("a list of workflows")
    states = [one.lower() for one in state or ()]
    page = await visit.rota.workflows.page(states=states, name=name or "", cursor=cursor, limit=limit)
    workflows = [shapes.workflow_info(info) for info in page.workflows]
    return reply({"success": True, "workflows": workflows, "cursor": page.cursor})


@router.post("/api/workflows", status_code=201, response_model=WorkflowAnswer)
async def create_workflow(visit: Operator, body: NewWorkflow) -> Response:
    """Build a workflow and commit it as a whole: all of it is stored, or nothing."""
    token = token_of(visit.request)
    workflow_id = token if body.id is None else checked_id(body.id)
    if token is not None and workflow_id == token:
        # Called after the key, a workflow that is there was made by the first request.
        known = await (await visit.rota.checked_flows()).read(token)
        if known is not None:
            return reply({"success": True, "workflow": await _shape(visit, known)}, 201)
    draft = visit.rota.workflow(
        body.name, id=workflow_id, on_failure=body.on_failure, resume=body.resume, limit=body.limit
    )
    steps: dict[str, Step[Any]] = {}
    for place, asked in enumerate(body.steps):
        await _add_step(visit, draft, steps, asked, asked.name or f"{asked.type}-{place}")
    try:
        await draft.commit()
    except JobNotFound as error:
        raise Problem(422, "unknown_dependency", f"dependencies: {error}") from error
    return reply({"success": True, "workflow": await _shape(visit, await draft.refresh())}, 201)


@router.get("/api/workflows/{workflow_id}", response_model=WorkflowAnswer)
async def show_workflow(visit: Viewer, workflow_id: WorkflowId) -> Response:
    """A workflow with its graph, and how each step and each compensation stands."""
    return reply({"success": True, "workflow": await _shape(visit, await _read(visit, workflow_id))})


@router.post("/api/workflows/{workflow_id}/cancel", response_model=WorkflowAnswer)
async def cancel_workflow(
    visit: Operator, workflow_id: WorkflowId, body: Annotated[CancelWorkflow | None, Body()] = None
) -> Response:
    """Stop what runs, and undo what was done unless told otherwise."""
    asked = body or CancelWorkflow()
    before = await _read(visit, workflow_id)
    await visit.rota.workflows.get(workflow_id).cancel(undo=asked.undo)
    return await _changed(visit, "cancel", before)


@router.post("/api/workflows/{workflow_id}/resume", response_model=WorkflowAnswer)
async def resume_workflow(visit: Operator, workflow_id: WorkflowId) -> Response:
    """Go on at the failed steps; a parked compensation is tried again."""
    before = await _read(visit, workflow_id)
    await visit.rota.workflows.get(workflow_id).resume()
    return await _changed(visit, "resume", before)


# --- building ----------------------------------------------------------------------------------------------------


async def _add_step(visit: Visit, draft: Draft, steps: dict[str, Step[Any]], asked: NewStep, name: str) -> None:
    if name in steps:
        raise InvalidOption("steps", f"two steps are called {name!r}: give each a name of its own")
    call = await _call(visit, asked.type, asked.data, asked, steps)
    before = [_named(steps, other, "after") for other in asked.after]
    step = steps[name] = draft.step(call, after=before, name=name)
    if asked.undo is not None:
        undo = await _call(visit, asked.undo.type, asked.undo.data, asked.undo, steps)
        step.undo(undo, even_if_unsure=asked.undo.even_if_unsure)


async def _call(visit: Visit, task: str, data: Any, options: JobOptions, steps: dict[str, Step[Any]]) -> Call[Any]:
    known = await visit.server.catalog.find(task)
    visit.check_queue(options.queue or known.task.queue)  # first: what tasks of other queues take is nobody's business
    filled, has_results = _fill(data, steps)
    if not has_results:  # else it is checked once they are there, by the worker
        enqueueing.check_data(known, data)
    call = enqueueing.make_unchecked_call(known, filled, options)
    for parent in call.parents:
        visit.check_queue(parent.ref.queue)
    return call


def _fill(value: Any, steps: dict[str, Step[Any]]) -> tuple[Any, bool]:
    """The data with handles of results where they are asked for; and whether there are any."""
    if is_object(value):
        if set(value) == {RESULT}:
            return _named(steps, value[RESULT], RESULT).result, True
        parts = {name: _fill(item, steps) for name, item in value.items()}
        return {name: part[0] for name, part in parts.items()}, any(part[1] for part in parts.values())
    if is_array(value):
        items = [_fill(item, steps) for item in value]
        return [item[0] for item in items], any(item[1] for item in items)
    return value, False


def _named(steps: dict[str, Step[Any]], name: Any, where: str) -> Step[Any]:
    step = steps.get(name) if isinstance(name, str) else None
    if step is None:
        raise InvalidJob(f"{where}: no earlier step is called {name!r}; there are: {', '.join(steps) or 'none'}")
    return step


# --- looking -----------------------------------------------------------------------------------------------------


async def _read(visit: Visit, workflow_id: str) -> Flow:
    flow = await visit.rota.workflows.get(workflow_id).refresh()
    for queue in {step.queue for step in flow.steps}:
        visit.check_queue(queue)
    return flow


async def _shape(visit: Visit, flow: Flow) -> dict[str, Any]:
    refs: Sequence[JobRef] = [JobRef.parse(step) for step in shapes.job_ids(flow)]
    found = await visit.server.reads.many(refs)
    return shapes.workflow(flow, {one.record.ref.full_id: one for one in found if one is not None})


async def _changed(visit: Visit, action: str, before: Flow) -> Response:
    after = await visit.rota.workflows.get(before.id).refresh()
    await visit.audit(
        action, f"workflow {before.id}", before={"state": before.state.upper()}, after={"state": after.state.upper()}
    )
    return reply({"success": True, "workflow": await _shape(visit, after)})
