"""Compatibility endpoints for clients of earlier job servers, under `/legacy`; see decision 22."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Annotated, Any, Final

import msgspec
from fastapi import APIRouter, Body, Query, Request, Response

from rota.client.session import checked_session
from rota.core.format_iso_time import iso_time
from rota.core.ids import DEFAULT_QUEUE, checked_task_name
from rota.core.job_record import JobRecord
from rota.core.state_transitions import JobState
from rota.errors import InvalidOption
from rota.server import enqueue_requests
from rota.server.http.idempotency_key import IdempotentRoute, idempotency_token
from rota.server.request_context_and_permissions import Operator, RequestContext, Viewer, json_response, serialize
from rota.server.routes import jobs
from rota.server.routes.jobs import JobId
from rota.server.schemas.common import QueueName
from rota.server.schemas.jobs import Dependency, JobFilter, NewJob
from rota.server.schemas.legacy_compatibility import (
    LegacyJobResponse,
    LegacyJobsResponse,
    LegacyMessageResponse,
    LegacyNewJobResponse,
    LegacyResultResponse,
    LegacyStatsResponse,
    LegacyWorkersResponse,
)
from rota.server.serializers import PREVIEW_BYTES


class LegacyRoute(IdempotentRoute):
    """A route whose errors also have `success` and `message`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Returns a handler that marks its requests; see `problems.is_legacy`."""
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            request.state.is_legacy = True
            return await handler(request)

        return handle


#: Prefix of the earlier server's job ids.
LEGACY_QUEUE: Final = "job"

router = APIRouter(route_class=LegacyRoute, tags=["compatibility"])


@router.post("/", response_model=LegacyNewJobResponse)
async def enqueue_whole_body(context: Operator, body: Annotated[dict[str, Any], Body()]) -> Response:
    """Enqueues a job with the fields of the body as named arguments, `name` and `id` included.

    The task is the one that `name` names, or `--default-task` of `rota server`. Every request creates a job; a repeated
    one with the same Idempotency-Key does not.
    """
    return await _enqueue(context, NewJob(type=await _named_task(context, body.get("name")), data=body), 200)


@router.post("/legacy/api/jobs", status_code=201, response_model=LegacyNewJobResponse)
async def enqueue_job(context: Operator, body: NewJob) -> Response:
    """Enqueues a job. 201 means that it is stored."""
    if body.dependencies:
        parents = [await _resolved_parent(context, one) for one in body.dependencies]
        body = body.model_copy(update={"dependencies": parents})
    return await _enqueue(context, body, 201)


@router.get("/legacy/api/jobs/stats", response_model=LegacyStatsResponse)
async def job_stats(context: Viewer, queue: QueueName | None = None) -> Response:
    """Counts the jobs per state."""
    return _success({"stats": await jobs.count_jobs(context, queue)})


@router.get("/legacy/api/jobs", response_model=LegacyJobsResponse)
async def list_jobs(
    context: Viewer,
    queue: QueueName | None = None,
    cursor: Annotated[str | None, Query(max_length=8000)] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 1000,
) -> Response:
    """Lists all jobs, newest first. A page has at most `limit` jobs and 4 MB; its `cursor` continues the list."""
    page = await jobs.jobs_page(context, JobFilter(queue=queue), cursor=cursor, limit=limit)
    found = msgspec.Raw(msgspec.json.encode([_job_json(context, record, PREVIEW_BYTES) for record in page.jobs]))
    return _success({"job": found, "jobs": found, "cursor": page.cursor})


@router.get("/legacy/api/jobs/{job_id}", response_model=LegacyJobResponse)
async def show_job(context: Viewer, job_id: JobId) -> Response:
    """Returns a job."""
    record = await _read(context, job_id)
    return _success({"job": await serialize(record, _job_json, context, record)})


@router.get("/legacy/api/jobs/{job_id}/result", response_model=LegacyResultResponse)
async def job_result(context: Viewer, job_id: JobId) -> Response:
    """Returns the result of a job: 200 if it has ended, else 202."""
    record = await _read(context, job_id)
    text = await serialize(record, context.server.serializer.result_text, record)
    result = msgspec.Raw((text or "null").encode())
    body = {"jobId": record.ref.full_id, "status": record.state.value.upper(), "result": result}
    return _success(body, 200 if record.state.is_finished else 202)


@router.post("/legacy/api/jobs/{job_id}/cancel", response_model=LegacyMessageResponse)
async def cancel_job(context: Operator, job_id: JobId) -> Response:
    """Cancels a job."""
    await jobs.cancel_job(context, await _resolved(context, job_id))
    return _success({"message": "Job Cancelled"})


@router.delete("/legacy/api/jobs/{job_id}", response_model=LegacyMessageResponse)
async def delete_job(context: Operator, job_id: JobId) -> Response:
    """Deletes a job and everything stored with it."""
    await jobs.delete_job(context, await _resolved(context, job_id))
    return _success({"message": "Job deleted successfully"})


@router.get("/legacy/api/workers", response_model=LegacyWorkersResponse)
async def list_workers(context: Viewer) -> Response:
    """Lists the workers seen in the last 24 hours."""
    found = [worker for worker in await context.rota.workers() if context.concerns(worker)]
    workers = [
        {
            "id": worker.id,
            "queue": ",".join(context.visible(worker.info.get("queues", []))),
            "status": worker.status,
            "last_seen": iso_time(worker.last_seen),
        }
        for worker in found
    ]
    return _success({"workers": workers})


async def _enqueue(context: RequestContext, body: NewJob, status: int) -> Response:
    job, record = await enqueue_requests.enqueue(context, body, idempotency_token(context.request))
    message = "Job enqueued" if job.is_new else "Job exists already"
    return _success({"message": message, "jobId": job.id, "job": _job_json(context, record, PREVIEW_BYTES)}, status)


async def _read(context: RequestContext, job_id: str) -> JobRecord:
    await context.server.catalog.load()
    return (await context.server.job_reader.get(jobs.job_ref(context, await _resolved(context, job_id)))).record


async def _resolved(context: RequestContext, job_id: str) -> str:
    """Returns the full id of `job:1234`, the earlier server's form: a job of the default queue.

    If there is a queue `job` that the caller may see, the id is that of its job.
    """
    queue, colon, local_id = job_id.partition(":")
    if not colon or queue != LEGACY_QUEUE:
        return job_id
    queues = await (await checked_session(context.rota)).views.queues()
    return job_id if queue in context.visible(queues) else f"{DEFAULT_QUEUE}:{local_id}"


async def _resolved_parent(context: RequestContext, given: str | Dependency) -> str | Dependency:
    if isinstance(given, str):
        return await _resolved(context, given)
    return given.model_copy(update={"job": await _resolved(context, given.job)})


async def _named_task(context: RequestContext, name: Any) -> str:
    """Returns the task that `name` names, or the default task for any other name.

    A task that the caller may not run counts as unknown, so that the response does not disclose which names exist.
    """
    default = context.server.settings.default_task
    if default is not None and not (isinstance(name, str) and await context.may_run(name)):
        return default
    try:
        return checked_task_name(name)
    except InvalidOption as error:
        hint = "`rota server --default-task` sets the task of all other names"
        raise InvalidOption("name", f"{error.reason}; {hint}") from error


def _job_json(context: RequestContext, record: JobRecord, limit: int | None = None) -> dict[str, Any]:
    return {
        "jobId": record.ref.full_id,
        "status": record.state.value.upper(),
        "type": record.task,
        "data": context.server.serializer.data(record, limit),
        "retries": str(record.counts.failures),
        "progress": str(_percent(record)),
        "created_at": str(record.enqueued_at),
        "result": context.server.serializer.result_text(record),
    }


def _percent(record: JobRecord) -> int:
    if record.state is JobState.COMPLETED:
        return 100
    return record.progress.percent if record.progress else 0


def _success(body: dict[str, Any], status: int = 200) -> Response:
    return json_response({"success": True, **body}, status)
