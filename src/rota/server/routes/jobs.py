"""Job endpoints: enqueue, list, show, update, cancel, redrive, delete; results, logs, history and dependencies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, Final

import msgspec
from fastapi import APIRouter, Body, Path, Query, Request, Response
from starlette.exceptions import HTTPException
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from rota.client import job_listing
from rota.client.dependency_listing import DependencyPage
from rota.client.job import full_history
from rota.client.job_listing import SEARCHED_BYTES
from rota.client.session import checked_session, sessions_of
from rota.core.format_iso_time import iso_time_or_none
from rota.core.ids import JobRef
from rota.core.job_record import JobRecord
from rota.core.state_transitions import CancelOutcome, JobState
from rota.errors import InvalidOption, JobCancelled, JobFailed, ResultTimeout, Undecryptable, WrongState
from rota.server import enqueue_requests, serializers
from rota.server.auth.api_tokens import Role
from rota.server.http.fast_json_body import body_of, read_body
from rota.server.http.idempotency_key import IdempotentRoute, idempotency_token, idempotent
from rota.server.job_filters import check_scope, job_filters, parse_fields
from rota.server.request_context_and_permissions import (
    Operator,
    RequestContext,
    Viewer,
    json_response,
    marks_role,
    operator,
    serialize,
)
from rota.server.schemas.common import FullId, MessageResponse, QueueName
from rota.server.schemas.jobs import (
    CancelJob,
    CancelResponse,
    HistoryResponse,
    JobChange,
    JobFilter,
    JobQuery,
    JobResponse,
    JobsResponse,
    LogResponse,
    NewJob,
    NewJobResponse,
    RedriveJob,
    RelatedJobsResponse,
    ResultResponse,
    StatsResponse,
)
from rota.store.compute_in_thread import compute
from rota.store.reads import LockInfo, Page

router = APIRouter(route_class=IdempotentRoute, tags=["jobs"])

JobId = Annotated[FullId, Path(description="queue:id, queue:id@run, or the bare id of a job in the queue “default”")]
Cursor = Annotated[str | None, Query(max_length=1000)]
Limit = Annotated[int, Query(ge=1, le=1000)]
#: Longest time for which one request may wait for a result, s.
MAX_WAIT_S: Final = 60.0


@router.post("/api/jobs", status_code=201, response_model=NewJobResponse, openapi_extra=body_of(NewJob))
@marks_role(Role.OPERATOR)
async def enqueue_job(request: Request) -> Response:
    """Enqueues a job. 201 means that it is stored."""
    context = await operator(request)
    job, record = await enqueue_requests.enqueue(context, await read_body(request, NewJob), idempotency_token(request))
    body = {
        "message": "Job enqueued" if job.is_new else "Job exists already",
        "jobId": job.id,
        "is_new": job.is_new,
        "job": context.server.serializer.preview(record),
    }
    return json_response(body, 201)


class FastRoute(Route):
    """A plain Starlette route that sets `scope["route"]` as FastAPI's routes do."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        scope["route"] = self
        await super().handle(scope, receive, send)


#: The busiest endpoint, served by Starlette directly: FastAPI's argument handling takes as long as the rest of the
#: call. The route above is only in the OpenAPI document.
FAST_ENQUEUE: Final = FastRoute("/api/jobs", idempotent(enqueue_job), methods=["POST"])


@router.get("/api/jobs/stats", response_model=StatsResponse)
async def job_stats(context: Viewer, queue: QueueName | None = None) -> Response:
    """Counts the jobs per state, over all queues or in one."""
    return json_response({"stats": await count_jobs(context, queue)})


@router.get("/api/jobs", response_model=JobsResponse)
async def list_jobs(context: Viewer, query: Annotated[JobQuery, Query()]) -> Response:
    """Lists jobs. Waiting jobs of one state are in start order, finished jobs latest first, all others newest first.

    With `text`, a page reads a bounded number of records (`examined`); it may be short and still have a next page.
    """
    page = await jobs_page(
        context,
        query,
        fields=parse_fields(query.field or ()),
        cursor=query.cursor,
        limit=query.limit,
        order=query.order,
    )
    return json_response(await compute(len(page.jobs), context.server.serializer.page, page, context.identity))


@router.get("/api/jobs/{job_id}", response_model=JobResponse)
async def show_job(context: Viewer, job_id: JobId) -> Response:
    """Returns a job with its attempts and an explanation of its state."""
    return json_response({"job": await _job_detail(context, job_ref(context, job_id))})


@router.post("/api/jobs/{job_id}/cancel", response_model=CancelResponse)
async def cancel_job(context: Operator, job_id: JobId, body: Annotated[CancelJob | None, Body()] = None) -> Response:
    """Cancels a job. A waiting job never runs; a running handler is stopped."""
    options = body or CancelJob()
    before = (await context.server.job_reader.get(job_ref(context, job_id))).record
    outcome = await context.rota.job(str(before.ref)).cancel(options.reason, only_waiting=options.only_waiting)
    if outcome is CancelOutcome.LEFT_RUNNING:
        return json_response({"message": "Job is being processed and was not cancelled", "status": "PROCESSING"})
    await context.audit(
        "cancel",
        f"job {before.ref}",
        before=_state_json(before.state),
        after={"state": "CANCELLED", "reason": options.reason},
    )
    return json_response({"message": "Job cancelled", "status": "CANCELLED"})


@router.delete("/api/jobs/{job_id}", response_model=MessageResponse)
async def delete_job(context: Operator, job_id: JobId) -> Response:
    """Deletes a job and everything stored with it. A running handler is stopped."""
    before = (await context.server.job_reader.get(job_ref(context, job_id))).record
    await context.rota.job(str(before.ref)).delete()
    await context.audit("delete", f"job {before.ref}", before={**_state_json(before.state), "type": before.task})
    return json_response({"message": "Job deleted"})


@router.patch("/api/jobs/{job_id}", response_model=JobResponse)
async def update_job(context: Operator, job_id: JobId, body: JobChange) -> Response:
    """Changes the data, priority or start time of a waiting job, or the data of a dead letter.

    A masked value in the data keeps the stored value.
    """
    given = body.model_fields_set - {name for name in body.model_fields_set if getattr(body, name) is None}
    if not given:
        raise InvalidOption("body", "no changes given: send data, priority, delay or run_at")
    before = (await context.server.job_reader.get(job_ref(context, job_id))).record
    await context.server.catalog.load()  # the data is masked by the names of its parameters
    args, kwargs = (None, None) if body.data is None else await _arguments(context, before, body.data)
    after = await context.rota.job(str(before.ref)).update(
        args=args,
        kwargs=kwargs,
        priority=body.priority,
        delay=body.delay,
        run_at=enqueue_requests.read_time(body.run_at) if body.run_at is not None else None,
    )
    await context.audit(
        "update",
        f"job {before.ref}",
        before=_changeable_json(context, before),
        after=_changeable_json(context, after),
    )
    return json_response({"job": await _job_detail(context, after.ref)})


@router.get(
    "/api/jobs/{job_id}/result",
    response_model=ResultResponse,
    responses={202: {"model": ResultResponse, "description": "The job has not ended yet."}},
)
async def job_result(
    context: Viewer,
    job_id: JobId,
    wait: Annotated[float, Query(ge=0, le=MAX_WAIT_S, description="Seconds to wait for the job to end.")] = 0,
) -> Response:
    """Returns the outcome of a job: 200 with its result, error or reason; 202 if it has not ended."""
    record = (await context.server.job_reader.get(job_ref(context, job_id))).record
    if not record.state.is_finished and wait:
        with suppress(JobFailed, JobCancelled, ResultTimeout, Undecryptable):  # the outcome is read from the record
            await context.rota.job(str(record.ref)).result(wait)
        record = (await context.server.job_reader.get(record.ref)).record
    result = await serialize(record, context.server.serializer.result_text, record)
    body = {
        "jobId": record.ref.full_id,
        "status": record.state.value.upper(),
        "result": msgspec.Raw((result or "null").encode()),
        "error": context.server.serializer.error(record.error) if record.state is JobState.FAILED else None,
        "reason": record.reason or None,
    }
    return json_response(body, 200 if record.state.is_finished else 202)


@router.get("/api/jobs/{job_id}/logs", response_model=LogResponse)
async def job_logs(context: Viewer, job_id: JobId, start: Annotated[int, Query(ge=0, le=1_000_000)] = 0) -> Response:
    """Returns the lines that the job's handler logged, from line `start` on."""
    ref = job_ref(context, job_id)
    lines = await context.rota.job(str(ref)).logs(start=start)
    return json_response(
        {"jobId": ref.full_id, "start": start, "lines": [serializers.log_line_json(line) for line in lines]}
    )


@router.get("/api/jobs/{job_id}/history", response_model=HistoryResponse)
async def job_history(context: Viewer, job_id: JobId) -> Response:
    """Returns all state changes of the job, oldest first."""
    ref = job_ref(context, job_id)
    history = full_history(await context.server.job_reader.get(ref))
    return json_response(
        {"jobId": ref.full_id, "history": [serializers.history_entry_json(entry) for entry in history]}
    )


@router.get("/api/jobs/{job_id}/dependencies", response_model=RelatedJobsResponse)
async def job_dependencies(context: Viewer, job_id: JobId, cursor: Cursor = None, limit: Limit = 50) -> Response:
    """Lists the jobs that this job depends on, with their states."""
    page = await context.rota.job(str(job_ref(context, job_id))).dependencies(cursor=cursor, limit=limit)
    return _related_jobs_response(context, page)


@router.get("/api/jobs/{job_id}/dependents", response_model=RelatedJobsResponse)
async def job_dependents(context: Viewer, job_id: JobId, cursor: Cursor = None, limit: Limit = 50) -> Response:
    """Lists the jobs that wait for this job, about `limit` per page. A completed job has no dependents left."""
    page = await context.rota.job(str(job_ref(context, job_id))).dependents(cursor=cursor, limit=limit)
    return _related_jobs_response(context, page)


@router.post("/api/jobs/{job_id}/redrive", response_model=MessageResponse)
async def redrive_job(context: Operator, job_id: JobId, body: Annotated[RedriveJob | None, Body()] = None) -> Response:
    """Redrives a dead letter with its counts reset and, if `data` is given, with new arguments.

    A masked value in the data keeps the stored value.
    """
    record = (await context.server.job_reader.get(job_ref(context, job_id))).record
    await context.runnable_task(record.task, record.ref.queue)
    job = context.rota.job(str(record.ref))
    before, after = _state_json(record.state), {"state": "PENDING"}
    if body is not None and body.data is not None:
        if record.state is not JobState.FAILED:
            raise WrongState(job.id, record.state.value, "redrive", "only a dead letter can be redriven")
        args, kwargs = await _arguments(context, record, body.data)
        edited = await job.update(args=args, kwargs=kwargs)
        before, after = before | _data_json(context, record), after | _data_json(context, edited)
    await job.redrive()
    await context.audit("redrive", f"job {record.ref}", before=before, after=after)
    return json_response({"message": "Job redriven"})


async def jobs_page(
    context: RequestContext,
    chosen: JobFilter,
    *,
    fields: Mapping[str, Any] | None = None,
    cursor: str | None,
    limit: int,
    order: str | None = None,
) -> Page:
    """Returns a page of the jobs that match and that the caller may see."""
    check_scope(context, chosen.queue)
    await context.server.catalog.load()
    searched = serializers.PREVIEW_BYTES if chosen.text is None else SEARCHED_BYTES
    return await job_listing.list_jobs(
        sessions_of(context.rota),
        chosen.state,
        queue=chosen.queue,
        filters=await job_filters(context, chosen, fields),
        cursor=cursor,
        limit=limit,
        order=order,
        max_arguments=searched + 1,  # the serializer shows that they are cut
    )


async def count_jobs(context: RequestContext, queue: str | None) -> dict[str, int]:
    """Returns the number of jobs per state, in one queue or in all that the caller may see."""
    views = (await checked_session(context.rota)).views
    names = [await context.known_queue(queue)] if queue is not None else context.visible(await views.queues())
    infos = await views.queue_infos(names)
    return serializers.stats_json({state.value: sum(info.counts[state.value] for info in infos) for state in JobState})


def job_ref(context: RequestContext, job_id: str) -> JobRef:
    """Returns the job that a path names. Refuses a queue that the caller may not see."""
    if job_id == "stats":  # taken by another endpoint; a job with this id is default:stats
        raise HTTPException(405)
    ref = JobRef.parse(job_id)
    context.check_queue(ref.queue)
    return ref


def _related_jobs_response(context: RequestContext, page: DependencyPage) -> Response:
    jobs = [serializers.related_job_json(one) for one in page.jobs if context.identity.may_see(one.ref.queue)]
    return json_response({"jobs": jobs, "cursor": page.cursor})


async def _arguments(context: RequestContext, record: JobRecord, given: Any) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """Returns new arguments for a job, checked against its task. Masked values keep the stored ones."""
    known = await context.runnable_task(record.task, record.ref.queue)
    data = context.server.mask.unmask(given, _decoded(record.arguments))
    known.check(data)
    return enqueue_requests.split_data(data)


async def _job_detail(context: RequestContext, ref: JobRef) -> dict[str, Any]:
    await context.server.catalog.load()
    snapshot = await context.server.job_reader.get(ref)
    record = snapshot.record
    explanation = await context.rota.job(str(record.ref)).explain()
    lock: LockInfo | None = None
    if record.options.lock and not record.state.is_finished:
        views = (await checked_session(context.rota)).views
        page = await views.locks([record.ref.queue], lock=record.options.lock, cursor=None, limit=1)
        lock = page.locks[0] if page.locks else None
    workflow_id = record.options.workflow
    workflow = await (await checked_session(context.rota)).workflows.read(workflow_id) if workflow_id else None
    detail = await serialize(record, context.server.serializer.detail, snapshot, explanation, lock, workflow)
    return serializers.hide_other_queues(detail, context.identity)


def _data_json(context: RequestContext, record: JobRecord) -> dict[str, str]:
    return {"data": context.server.serializer.data(record)}


def _changeable_json(context: RequestContext, record: JobRecord) -> dict[str, Any]:
    return {
        **_data_json(context, record),
        "priority": record.options.priority,
        "due_at": iso_time_or_none(record.due_at),
    }


def _state_json(state: JobState) -> dict[str, str]:
    return {"state": state.value.upper()}


def _decoded(arguments: bytes) -> Any:
    try:
        return msgspec.json.decode(arguments)
    except ValueError:
        return None
