"""Jobs: seed 2's six endpoints, seed 0's door, and what one can do to a job."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Any, Final

import msgspec
from fastapi import APIRouter, Body, Path, Query, Request, Response
from starlette.exceptions import HTTPException
from starlette.routing import Route

from rota.core.job import JobRecord, JobRef
from rota.core.states import JobState
from rota.errors import InvalidOption, JobCancelled, JobFailed, ResultTimeout
from rota.jobs import full_history
from rota.server import enqueueing, schemas, shapes
from rota.server.answers import KeyedRoute, keyed, token_of
from rota.server.bodies import body_of, read_body
from rota.server.tokens import Role
from rota.server.visits import Operator, Viewer, Visit, asks_for, operator, reply

router = APIRouter(route_class=KeyedRoute, tags=["jobs"])

JobId = Annotated[schemas.FullId, Path(description="queue:id, queue:id@run, or a bare id of queue “default”")]
#: What is under way comes first, what is over last.
STATES: Final = ("processing", "pending", "scheduled", "blocked", "failed", "completed", "cancelled")
#: Longest wait for a result that one request may ask for, s.
MAX_WAIT_S: Final = 60.0


# --- seed 2, and seed 0 ------------------------------------------------------------------------------------------


@router.post("/api/jobs", status_code=201, response_model=schemas.NewJobAnswer, openapi_extra=body_of(schemas.NewJob))
@asks_for(Role.OPERATOR)
async def enqueue_job(request: Request) -> Response:
    """Enqueue a job. 201 means that it is stored."""
    visit = await operator(request)
    return await _enqueue(visit, await read_body(request, schemas.NewJob), 201)


#: Where programs spend their time. Starlette comes here at once; FastAPI, whose document has the route above, would
#: take as long to put the call together as the rest takes to carry it out.
QUICK: Final = Route("/api/jobs", keyed(enqueue_job), methods=["POST"])


@router.post("/", response_model=schemas.NewJobAnswer)
async def enqueue_named_job(visit: Operator, body: schemas.NamedJob) -> Response:
    """Enqueue a job as seed 0 did, by the name of its task."""
    fields = body.model_dump(exclude_unset=True)
    fields["type"] = fields.pop("name")
    if isinstance(body.id, int):
        fields["id"] = str(body.id)
    return await _enqueue(visit, schemas.NewJob.model_validate(fields), 200)


async def _enqueue(visit: Visit, body: schemas.NewJob, status: int) -> Response:
    job, shape = await enqueueing.enqueue(visit, body, token_of(visit.request))
    answer = {
        "success": True, "message": "Job enqueued" if job.is_new else "The job was there already", "jobId": job.id,
        "is_new": job.is_new, "job": shape,
    }  # fmt: skip
    return reply(answer, status)


@router.get("/api/jobs/stats", response_model=schemas.StatsAnswer)
async def job_stats(visit: Viewer, queue: schemas.QueueName | None = None) -> Response:
    """How many jobs are in each state, in all queues or in one."""
    views = await visit.rota.checked_views()
    names = [await visit.known_queue(queue)] if queue is not None else visit.visible(await views.queues())
    total = dict.fromkeys(JobState, 0)
    for info in await views.queue_infos(names):
        for state in JobState:
            total[state] += info.counts[state.value]
    return reply({"success": True, "stats": {state.value.upper(): count for state, count in total.items()}})


@router.get("/api/jobs", response_model=schemas.JobsAnswer)
async def list_jobs(
    visit: Viewer,
    state: Annotated[schemas.State | None, Query(description="Only jobs in this state.")] = None,
    queue: schemas.QueueName | None = None,
    type: Annotated[str | None, Query(max_length=200, description="Only jobs of this task.")] = None,
    tag: Annotated[str | None, Query(max_length=64)] = None,
    error: Annotated[str | None, Query(max_length=200, description="Only jobs with an error of this class.")] = None,
    text: Annotated[str | None, Query(max_length=200, description="Only jobs that mention it.")] = None,
    cursor: Annotated[str | None, Query(max_length=1000)] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
) -> Response:
    """A page of jobs, what is under way first. A page with filters may be short and still have a next one."""
    states = (state.lower(),) if state else STATES
    if queue is not None:
        visit.check_queue(queue)
    elif visit.identity.queues:
        raise InvalidOption("queue", f"this token is limited to {', '.join(visit.identity.queues)}: say which")
    first, tilde, inner = (cursor or f"{states[0]}~").partition("~")
    if first not in states or not tilde:
        raise InvalidOption("cursor", f"{cursor!r} was not made by this listing")
    found: list[Any] = []
    examined = 0
    following: str | None = None
    left = states[states.index(first) :]
    for place, name in enumerate(left):
        page = await visit.rota.jobs(
            name, queue=queue, task=type, tag=tag, error=error, text=text, cursor=inner or None,
            limit=limit - len(found),
        )  # fmt: skip
        found += page.jobs
        examined += page.examined
        inner = ""
        if page.cursor is not None:
            following = f"{name}~{page.cursor}"
            break
        if place + 1 < len(left) and (len(found) >= limit or examined >= 1000):
            following = f"{left[place + 1]}~"
            break
    jobs = msgspec.Raw(msgspec.json.encode([visit.server.shapes.job(record) for record in found]))
    return reply({"success": True, "job": jobs, "jobs": jobs, "cursor": following, "examined": examined})


@router.get("/api/jobs/{job_id}", response_model=schemas.JobAnswer)
async def show_job(visit: Viewer, job_id: JobId) -> Response:
    """A job with all that is known of it, and why it is where it is."""
    return reply({"success": True, "job": await _detail(visit, _ref(visit, job_id))})


@router.post("/api/jobs/{job_id}/cancel", response_model=schemas.CancelAnswer)
async def cancel_job(
    visit: Operator, job_id: JobId, body: Annotated[schemas.CancelJob | None, Body()] = None
) -> Response:
    """Cancel a job: it never runs, or its handler is told to stop."""
    asked = body or schemas.CancelJob()
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


@router.delete("/api/jobs/{job_id}", response_model=schemas.Done)
async def delete_job(visit: Operator, job_id: JobId) -> Response:
    """Remove a job and every trace of it; a handler at work is told to stop."""
    ref = _ref(visit, job_id)
    before = (await visit.server.reads.get(ref)).record
    await visit.rota.job(str(before.ref)).delete()
    await visit.audit("delete", f"job {before.ref}", before={**_state(before.state), "type": before.task})
    return reply({"success": True, "message": "Job deleted successfully"})


# --- the rest ----------------------------------------------------------------------------------------------------


@router.patch("/api/jobs/{job_id}", response_model=schemas.JobAnswer)
async def update_job(visit: Operator, job_id: JobId, body: schemas.JobChange) -> Response:
    """Change the data, the priority or the time of a job that waits; of a dead letter, the data.

    A masked value in the data stands for the one that is stored.
    """
    given = body.model_fields_set - {name for name in body.model_fields_set if getattr(body, name) is None}
    if not given:
        raise InvalidOption("body", "names nothing to change: give data, priority, delay or run_at")
    ref = _ref(visit, job_id)
    before = (await visit.server.reads.get(ref)).record
    args: Any = None
    kwargs: Any = None
    if body.data is not None:
        data = visit.server.mask.unmask(body.data, _decoded(before.arguments))
        (await visit.server.catalog.find(before.task)).check(data)
        args, kwargs = enqueueing.split_data(data)
    after = await visit.rota.job(str(before.ref)).update(
        args=args, kwargs=kwargs, priority=body.priority, delay=body.delay,
        run_at=enqueueing.read_time(body.run_at) if body.run_at is not None else None,
    )  # fmt: skip
    await visit.audit("update", f"job {before.ref}", before=_changeable(visit, before), after=_changeable(visit, after))
    return reply({"success": True, "job": await _detail(visit, after.ref)})


@router.get(
    "/api/jobs/{job_id}/result",
    response_model=schemas.ResultAnswer,
    responses={202: {"model": schemas.ResultAnswer, "description": "It has not ended yet."}},
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


@router.get("/api/jobs/{job_id}/logs", response_model=schemas.LogAnswer)
async def job_logs(visit: Viewer, job_id: JobId, start: Annotated[int, Query(ge=0, le=1_000_000)] = 0) -> Response:
    """What the job's handler logged, from line `start` on."""
    ref = _ref(visit, job_id)
    lines = await visit.rota.job(str(ref)).logs(start=start)
    answer = {"jobId": ref.full_id, "start": start, "lines": [shapes.log_line(line) for line in lines]}
    return reply({"success": True, **answer})


@router.get("/api/jobs/{job_id}/history", response_model=schemas.HistoryAnswer)
async def job_history(visit: Viewer, job_id: JobId) -> Response:
    """Every change of the job's state, oldest first."""
    ref = _ref(visit, job_id)
    history = full_history(await visit.server.reads.get(ref))
    answer = {"jobId": ref.full_id, "history": [shapes.history_entry(entry) for entry in history]}
    return reply({"success": True, **answer})


@router.post("/api/jobs/{job_id}/redrive", response_model=schemas.Done)
async def redrive_job(visit: Operator, job_id: JobId) -> Response:
    """Give a dead letter another life, with its counts reset."""
    ref = _ref(visit, job_id)
    record = (await visit.server.reads.get(ref)).record
    await visit.rota.job(str(record.ref)).redrive()
    await visit.audit("redrive", f"job {record.ref}", before=_state(record.state), after={"state": "PENDING"})
    return reply({"success": True, "message": "Job redriven"})


def _ref(visit: Visit, job_id: str) -> JobRef:
    """The job that an address names, if the caller may see its queue."""
    if job_id == "stats":  # that address is taken; a job called so is default:stats
        raise HTTPException(405)
    ref = JobRef.parse(job_id)
    visit.check_queue(ref.queue)
    return ref


async def _detail(visit: Visit, ref: JobRef) -> dict[str, Any]:
    snapshot = await visit.server.reads.get(ref)
    explanation = await visit.rota.job(str(snapshot.record.ref)).explain()
    return visit.server.shapes.detail(snapshot, explanation)


def _changeable(visit: Visit, record: JobRecord) -> dict[str, Any]:
    return {
        "data": visit.server.shapes.data(record),
        "priority": record.options.priority,
        "due_at": shapes.moment(record.due_at),
    }


def _state(state: JobState) -> dict[str, str]:
    return {"state": state.value.upper()}


def _decoded(arguments: bytes) -> Any:
    try:
        return msgspec.json.decode(arguments)
    except ValueError:
        return None
