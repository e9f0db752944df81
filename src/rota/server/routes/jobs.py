"""Jobs: seed 2's six endpoints, seed 0's door, and what one can do to a job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, Final, Literal

import msgspec
from fastapi import APIRouter, Body, Depends, Path, Query, Request, Response
from starlette.exceptions import HTTPException
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from rota.core.job import JobRecord, JobRef
from rota.core.shapes import moment
from rota.core.states import JobState
from rota.errors import InvalidOption, JobCancelled, JobFailed, ResultTimeout, WrongState
from rota.jobs import full_history
from rota.relatives import Relatives
from rota.server import enqueueing, filters, shapes
from rota.server.answers import KeyedRoute, keyed, token_of
from rota.server.bodies import body_of, read_body
from rota.server.schemas.base import Done, FullId, QueueName
from rota.server.schemas.jobs import (
    CancelAnswer,
    CancelJob,
    HistoryAnswer,
    JobAnswer,
    JobChange,
    JobsAnswer,
    LogAnswer,
    NamedJob,
    NewJob,
    NewJobAnswer,
    RedriveJob,
    RelatedJobsAnswer,
    ResultAnswer,
    StatsAnswer,
)
from rota.server.tokens import Role
from rota.server.visits import Operator, Viewer, Visit, asks_for, operator, reply
from rota.store.views import LockInfo

router = APIRouter(route_class=KeyedRoute, tags=["jobs"])

JobId = Annotated[FullId, Path(description="queue:id, queue:id@run, or a bare id of queue “default”")]
Cursor = Annotated[str | None, Query(max_length=1000)]
Limit = Annotated[int, Query(ge=1, le=1000)]
#: Longest wait for a result that one request may ask for, s.
MAX_WAIT_S: Final = 60.0


# --- seed 2, and seed 0 ------------------------------------------------------------------------------------------


@router.post("/api/jobs", status_code=201, response_model=NewJobAnswer, openapi_extra=body_of(NewJob))
@asks_for(Role.OPERATOR)
async def enqueue_job(request: Request) -> Response:
    """Enqueue a job. 201 means that it is stored."""
    visit = await operator(request)
    return await _enqueue(visit, await read_body(request, NewJob), 201)


class QuickRoute(Route):
    """A plain route of Starlette's, known to whoever asks which one it was."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        scope["route"] = self
        await super().handle(scope, receive, send)


#: Where programs spend their time. Starlette comes here at once; FastAPI, whose document has the route above, would
#: take as long to put the call together as the rest takes to carry it out.
QUICK: Final = QuickRoute("/api/jobs", keyed(enqueue_job), methods=["POST"])


@router.post("/", response_model=NewJobAnswer)
async def enqueue_named_job(visit: Operator, body: NamedJob) -> Response:
    """Enqueue a job as seed 0 did, by the name of its task."""
    fields = body.model_dump(exclude_unset=True)
    fields["type"] = fields.pop("name")
    if isinstance(body.id, int):
        fields["id"] = str(body.id)
    return await _enqueue(visit, NewJob.model_validate(fields), 200)


async def _enqueue(visit: Visit, body: NewJob, status: int) -> Response:
    job, shape = await enqueueing.enqueue(visit, body, token_of(visit.request))
    answer = {
        "success": True, "message": "Job enqueued" if job.is_new else "The job was there already", "jobId": job.id,
        "is_new": job.is_new, "job": shape,
    }  # fmt: skip
    return reply(answer, status)


@router.get("/api/jobs/stats", response_model=StatsAnswer)
async def job_stats(visit: Viewer, queue: QueueName | None = None) -> Response:
    """How many jobs are in each state, in all queues or in one."""
    views = await visit.rota.checked_views()
    names = [await visit.known_queue(queue)] if queue is not None else visit.visible(await views.queues())
    total = dict.fromkeys(JobState, 0)
    for info in await views.queue_infos(names):
        for state in JobState:
            total[state] += info.counts[state.value]
    return reply({"success": True, "stats": {state.value.upper(): count for state, count in total.items()}})


@router.get("/api/jobs", response_model=JobsAnswer)
async def list_jobs(
    visit: Viewer,
    found: Annotated[filters.Found, Depends(filters.found)],
    cursor: Annotated[str | None, Query(max_length=1000)] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
    order: Annotated[Literal["oldest", "newest"] | None, Query()] = None,
) -> Response:
    """A page of jobs. Those of one waiting state come as they will start, finished ones latest first, all newest first.

    A page that looks for a text examines a bounded number of records, says how many, and may be short and still have a
    next one.
    """
    filters.check_scope(visit, found)
    page = await visit.rota.jobs(**found, cursor=cursor, limit=limit, order=order)
    jobs = msgspec.Raw(msgspec.json.encode([visit.server.shapes.job(record) for record in page.jobs]))
    return reply({"success": True, "job": jobs, "jobs": jobs, "cursor": page.cursor, "examined": page.examined})


@router.get("/api/jobs/{job_id}", response_model=JobAnswer)
async def show_job(visit: Viewer, job_id: JobId) -> Response:
    """A job with all that is known of it, and why it is where it is."""
    return reply({"success": True, "job": await _detail(visit, _ref(visit, job_id))})


@router.post("/api/jobs/{job_id}/cancel", response_model=CancelAnswer)
async def cancel_job(visit: Operator, job_id: JobId, body: Annotated[CancelJob | None, Body()] = None) -> Response:
    """Cancel a job: it never runs, or its handler is told to stop."""
    asked = body or CancelJob()
    ref = _ref(visit, job_id)
    before = (await visit.server.reads.get(ref)).record
    was = await visit.rota.job(str(before.ref)).cancel(asked.reason, only_waiting=asked.only_waiting)
    if was is JobState.PROCESSING and asked.only_waiting:
        said = "Job is being processed, and was left alone"
        return reply({"success": True, "message": said, "status": "PROCESSING"})
    await visit.audit(
        "cancel", f"job {before.ref}", before=_state(before.state), after={"state": "CANCELLED", "reason": asked.reason}
    )
    return reply({"success": True, "message": "Job Cancelled", "status": "CANCELLED"})


@router.delete("/api/jobs/{job_id}", response_model=Done)
async def delete_job(visit: Operator, job_id: JobId) -> Response:
    """Remove a job and every trace of it; a handler at work is told to stop."""
    ref = _ref(visit, job_id)
    before = (await visit.server.reads.get(ref)).record
    await visit.rota.job(str(before.ref)).delete()
    await visit.audit("delete", f"job {before.ref}", before={**_state(before.state), "type": before.task})
    return reply({"success": True, "message": "Job deleted successfully"})


# --- the rest ----------------------------------------------------------------------------------------------------


@router.patch("/api/jobs/{job_id}", response_model=JobAnswer)
async def update_job(visit: Operator, job_id: JobId, body: JobChange) -> Response:
    """Change the data, the priority or the time of a job that waits; of a dead letter, the data.

    A masked value in the data stands for the one that is stored.
    """
    given = body.model_fields_set - {name for name in body.model_fields_set if getattr(body, name) is None}
    if not given:
        raise InvalidOption("body", "names nothing to change: give data, priority, delay or run_at")
    ref = _ref(visit, job_id)
    before = (await visit.server.reads.get(ref)).record
    args, kwargs = (None, None) if body.data is None else await _arguments(visit, before, body.data)
    after = await visit.rota.job(str(before.ref)).update(
        args=args, kwargs=kwargs, priority=body.priority, delay=body.delay,
        run_at=enqueueing.read_time(body.run_at) if body.run_at is not None else None,
    )  # fmt: skip
    await visit.audit("update", f"job {before.ref}", before=_changeable(visit, before), after=_changeable(visit, after))
    return reply({"success": True, "job": await _detail(visit, after.ref)})


@router.get(
    "/api/jobs/{job_id}/result",
    response_model=ResultAnswer,
    responses={202: {"model": ResultAnswer, "description": "It has not ended yet."}},
)
async def job_result(
    visit: Viewer,
    job_id: JobId,
    wait: Annotated[float, Query(ge=0, le=MAX_WAIT_S, description="Seconds to wait for its end.")] = 0,
) -> Response:
    """How a job ended: 200 with its result, its error or its reason; 202 while it has not."""
    ref = _ref(visit, job_id)
    record = (await visit.server.reads.get(ref)).record
    if not record.state.is_finished and wait:
        with suppress(JobFailed, JobCancelled, ResultTimeout):  # the record says it
            await visit.rota.job(str(record.ref)).result(wait)
        record = (await visit.server.reads.get(record.ref)).record
    text = visit.server.shapes.result_text(record)
    answer = {
        "success": True,
        "jobId": record.ref.full_id,
        "status": record.state.value.upper(),
        "result": msgspec.Raw((text or "null").encode()),
        "error": visit.server.shapes.error(record.error) if record.state is JobState.FAILED else None,
        "reason": record.reason or None,
    }
    return reply(answer, 200 if record.state.is_finished else 202)


@router.get("/api/jobs/{job_id}/logs", response_model=LogAnswer)
async def job_logs(visit: Viewer, job_id: JobId, start: Annotated[int, Query(ge=0, le=1_000_000)] = 0) -> Response:
    """What the job's handler logged, from line `start` on."""
    ref = _ref(visit, job_id)
    lines = await visit.rota.job(str(ref)).logs(start=start)
    answer = {"jobId": ref.full_id, "start": start, "lines": [shapes.log_line(line) for line in lines]}
    return reply({"success": True, **answer})


@router.get("/api/jobs/{job_id}/history", response_model=HistoryAnswer)
async def job_history(visit: Viewer, job_id: JobId) -> Response:
    """Every change of the job's state, oldest first."""
    ref = _ref(visit, job_id)
    history = full_history(await visit.server.reads.get(ref))
    answer = {"jobId": ref.full_id, "history": [shapes.history_entry(entry) for entry in history]}
    return reply({"success": True, **answer})


@router.get("/api/jobs/{job_id}/dependencies", response_model=RelatedJobsAnswer)
async def job_dependencies(visit: Viewer, job_id: JobId, cursor: Cursor = None, limit: Limit = 50) -> Response:
    """The jobs that this one comes after, and how each stands."""
    found = await visit.rota.job(str(_ref(visit, job_id))).dependencies(cursor=cursor, limit=limit)
    return _related(visit, found)


@router.get("/api/jobs/{job_id}/dependents", response_model=RelatedJobsAnswer)
async def job_dependents(visit: Viewer, job_id: JobId, cursor: Cursor = None, limit: Limit = 50) -> Response:
    """The jobs that wait for this one, about `limit` at a time. Once it has completed, nobody does."""
    found = await visit.rota.job(str(_ref(visit, job_id))).dependents(cursor=cursor, limit=limit)
    return _related(visit, found)


def _related(visit: Visit, found: Relatives) -> Response:
    jobs = [shapes.relative(one) for one in found.jobs if visit.identity.may_see(one.ref.queue)]
    return reply({"success": True, "jobs": jobs, "cursor": found.cursor})


@router.post("/api/jobs/{job_id}/redrive", response_model=Done)
async def redrive_job(visit: Operator, job_id: JobId, body: Annotated[RedriveJob | None, Body()] = None) -> Response:
    """Give a dead letter another life, with its counts reset; and, where data is given, with other arguments.

    A masked value in the data stands for the one that is stored.
    """
    ref = _ref(visit, job_id)
    record = (await visit.server.reads.get(ref)).record
    job = visit.rota.job(str(record.ref))
    before, after = _state(record.state), {"state": "PENDING"}
    if body is not None and body.data is not None:
        if record.state is not JobState.FAILED:
            raise WrongState(job.id, record.state.value, "redrive", "only a dead letter can be redriven")
        args, kwargs = await _arguments(visit, record, body.data)
        edited = await job.update(args=args, kwargs=kwargs)
        before, after = before | _data(visit, record), after | _data(visit, edited)
    await job.redrive()
    await visit.audit("redrive", f"job {record.ref}", before=before, after=after)
    return reply({"success": True, "message": "Job redriven"})


def _ref(visit: Visit, job_id: str) -> JobRef:
    """The job that an address names, if the caller may see its queue."""
    if job_id == "stats":  # that address is taken; a job called so is default:stats
        raise HTTPException(405)
    ref = JobRef.parse(job_id)
    visit.check_queue(ref.queue)
    return ref


async def _arguments(visit: Visit, record: JobRecord, given: Any) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """New arguments for a job, as its task takes them; masks in them stand for what is stored."""
    data = visit.server.mask.unmask(given, _decoded(record.arguments))
    (await visit.server.catalog.find(record.task)).check(data)
    return enqueueing.split_data(data)


async def _detail(visit: Visit, ref: JobRef) -> dict[str, Any]:
    snapshot = await visit.server.reads.get(ref)
    record = snapshot.record
    explanation = await visit.rota.job(str(record.ref)).explain()
    lock: LockInfo | None = None
    if record.options.lock and not record.state.is_finished:
        views = await visit.rota.checked_views()
        page = await views.locks([record.ref.queue], lock=record.options.lock, cursor=None, limit=1)
        lock = page.locks[0] if page.locks else None
    workflow = record.options.workflow
    flow = await (await visit.rota.checked_flows()).read(workflow) if workflow else None
    return visit.server.shapes.detail(snapshot, explanation, lock, flow)


def _data(visit: Visit, record: JobRecord) -> dict[str, str]:
    return {"data": visit.server.shapes.data(record)}


def _changeable(visit: Visit, record: JobRecord) -> dict[str, Any]:
    return {
        **_data(visit, record),
        "priority": record.options.priority,
        "due_at": moment(record.due_at),
    }


def _state(state: JobState) -> dict[str, str]:
    return {"state": state.value.upper()}


def _decoded(arguments: bytes) -> Any:
    try:
        return msgspec.json.decode(arguments)
    except ValueError:
        return None
