"""Workflow endpoints: list, create, show, cancel and resume."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any, Final

from fastapi import APIRouter, Body, Path, Query, Response

from rota.client.session import checked_session
from rota.client.tasks import Call
from rota.client.workflow_builder import Step, WorkflowBuilder
from rota.core.ids import JobRef, checked_id
from rota.core.json_schema_validator import is_array, is_object
from rota.core.workflow_record_and_decisions import WorkflowRecord
from rota.errors import InvalidJob, InvalidOption, JobNotFound, WorkflowNotFound
from rota.server import enqueue_requests, serializers
from rota.server.http.idempotency_key import IdempotentRoute, idempotency_token
from rota.server.http.problem_responses import fields_within
from rota.server.request_context_and_permissions import Operator, RequestContext, Viewer, json_response
from rota.server.schemas.common import ID, WorkflowStateName
from rota.server.schemas.jobs import JobOptions
from rota.server.schemas.workflows import CancelWorkflow, NewStep, NewWorkflow, WorkflowResponse, WorkflowsResponse
from rota.store.compute_in_thread import compute

router = APIRouter(route_class=IdempotentRoute, tags=["workflows"])

WorkflowId = Annotated[str, Path(max_length=300, json_schema_extra={"pattern": ID})]
#: Key of an object that is replaced by the result of another step.
RESULT: Final = "$result"
#: Steps that are checked before other requests have their turn.
STEPS_PER_TURN: Final = 50


@router.get("/api/workflows", response_model=WorkflowsResponse)
async def list_workflows(
    context: Viewer,
    state: Annotated[
        list[WorkflowStateName] | None, Query(description="Only workflows in one of these states.")
    ] = None,
    name: Annotated[str | None, Query(max_length=200, description="Only workflows of this name.")] = None,
    cursor: Annotated[str | None, Query(max_length=300)] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Response:
    """Lists workflows, newest first: all that have not ended, and those of the last 24 hours."""
    context.check_unlimited("a list of workflows")
    states = [one.lower() for one in state or ()]
    page = await context.rota.workflows.page(states=states, name=name or "", cursor=cursor, limit=limit)
    workflows = [serializers.workflow_info_json(info) for info in page.workflows]
    return json_response({"workflows": workflows, "cursor": page.cursor})


@router.post("/api/workflows", status_code=201, response_model=WorkflowResponse)
async def create_workflow(context: Operator, body: NewWorkflow) -> Response:
    """Creates a workflow. It is stored atomically: all of it or nothing."""
    token = idempotency_token(context.request)
    if body.id is not None and context.identity.queues:
        # Ids are shared by all queues: a refusal would disclose that there is such a workflow.
        raise InvalidOption(
            "id", "this token is limited to some queues: leave out the id, and send an Idempotency-Key instead"
        )
    workflow_id = token if body.id is None else checked_id(body.id)
    if token is not None and workflow_id == token:
        # The id follows from the idempotency key: an existing workflow was created by the first request.
        known = await (await checked_session(context.rota)).workflows.read(token)
        if known is not None:
            return json_response({"workflow": await _workflow_json(context, known)}, 201)
    builder = context.rota.workflow(
        body.name, id=workflow_id, on_failure=body.on_failure, resume=body.resume, limit=body.limit
    )
    context.count_enqueues(len(body.steps))
    steps: dict[str, Step[Any]] = {}
    for index, step in enumerate(body.steps):
        if index % STEPS_PER_TURN == 0:
            await asyncio.sleep(0)  # other requests go on
        with fields_within(f"steps.{index}"):
            await _add_step(context, builder, steps, step, step.name or f"{step.type}-{index}")
    try:
        await builder.commit()
    except JobNotFound as error:
        raise enqueue_requests.unknown_dependency(error) from error
    return json_response({"workflow": await _workflow_json(context, await builder.refresh())}, 201)


@router.get("/api/workflows/{workflow_id}", response_model=WorkflowResponse)
async def show_workflow(context: Viewer, workflow_id: WorkflowId) -> Response:
    """Returns a workflow with the state of each step and compensation."""
    return json_response({"workflow": await _workflow_json(context, await _read(context, workflow_id))})


@router.post("/api/workflows/{workflow_id}/cancel", response_model=WorkflowResponse)
async def cancel_workflow(
    context: Operator, workflow_id: WorkflowId, body: Annotated[CancelWorkflow | None, Body()] = None
) -> Response:
    """Cancels a workflow: stops running steps and, by default, compensates completed ones."""
    options = body or CancelWorkflow()
    before = await _read_to_change(context, workflow_id)
    await context.rota.workflows.get(workflow_id).cancel(undo=options.undo)
    return await _audit_change(context, "cancel", before)


@router.post("/api/workflows/{workflow_id}/resume", response_model=WorkflowResponse)
async def resume_workflow(context: Operator, workflow_id: WorkflowId) -> Response:
    """Resumes a workflow at its failed steps, or at its failed compensation."""
    before = await _read_to_change(context, workflow_id)
    await context.rota.workflows.get(workflow_id).resume()
    return await _audit_change(context, "resume", before)


async def _add_step(
    context: RequestContext, builder: WorkflowBuilder, steps: dict[str, Step[Any]], new: NewStep, name: str
) -> None:
    if name in steps:
        raise InvalidOption("name", f"two steps are named {name!r}: give each step a unique name")
    call = await _call(context, new.type, new.data, new, steps)
    parents = [_named(steps, other, "after") for other in new.after]
    step = steps[name] = builder.step(call, after=parents, name=name)
    if new.undo is not None:
        with fields_within("undo"):
            undo = await _call(context, new.undo.type, new.undo.data, new.undo, steps)
        step.undo(undo, even_if_unsure=new.undo.even_if_unsure)


async def _call(
    context: RequestContext, task: str, data: Any, options: JobOptions, steps: dict[str, Step[Any]]
) -> Call[Any]:
    known = await context.runnable_task(task, options.queue)  # before the arguments: their errors describe the task
    filled, has_results = _fill(data, steps)
    if not has_results:  # else the worker checks it once the results are known
        enqueue_requests.check_data(known, data)
    call = enqueue_requests.make_unchecked_call(known, filled, options).attributed(context.identity.name)
    for parent in call.parents:
        context.check_queue(parent.ref.queue)
    return call


def _fill(value: Any, steps: dict[str, Step[Any]]) -> tuple[Any, bool]:
    """Returns the data with result placeholders filled in, and whether it has any."""
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
        raise InvalidJob(f"{where}: there is no earlier step {name!r}; earlier steps: {', '.join(steps) or 'none'}")
    return step


async def _read(context: RequestContext, workflow_id: str) -> WorkflowRecord:
    workflow = await context.rota.workflows.get(workflow_id).refresh()
    queues = {step.queue for step in workflow.steps} | {step.undo.queue for step in workflow.steps if step.undo}
    if not all(map(context.identity.may_see, queues)):
        raise WorkflowNotFound(workflow_id)  # as if it did not exist
    return workflow


async def _read_to_change(context: RequestContext, workflow_id: str) -> WorkflowRecord:
    """A workflow whose steps and compensations the caller may all run: a change can start any of them."""
    workflow = await _read(context, workflow_id)
    if context.identity.is_limited:
        for step in workflow.steps:
            await context.runnable_task(step.task, step.queue)
            if step.undo is not None:
                await context.runnable_task(step.undo.task, step.undo.queue)
    return workflow


async def _workflow_json(context: RequestContext, workflow: WorkflowRecord) -> dict[str, Any]:
    refs: Sequence[JobRef] = [JobRef.parse(step) for step in serializers.job_ids(workflow)]
    found = await context.server.job_reader.many(refs)
    jobs = {one.record.ref.full_id: one for one in found if one is not None}
    return await compute(len(refs), serializers.workflow_json, workflow, jobs)


async def _audit_change(context: RequestContext, action: str, before: WorkflowRecord) -> Response:
    after = await context.rota.workflows.get(before.id).refresh()
    await context.audit(
        action, f"workflow {before.id}", before={"state": before.state.upper()}, after={"state": after.state.upper()}
    )
    return json_response({"workflow": await _workflow_json(context, after)})
