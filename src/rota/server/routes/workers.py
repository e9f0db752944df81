"""Worker endpoints: list, show, drain and undrain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Response

from rota.client.session import checked_session
from rota.core.ids import JobRef
from rota.core.shards import base_of
from rota.errors import WorkerNotFound
from rota.monitoring.current_alerts import is_recently_dead
from rota.server import serializers
from rota.server.http.idempotency_key import IdempotentRoute
from rota.server.http.problem_responses import Problem
from rota.server.request_context_and_permissions import Operator, RequestContext, Viewer, json_response
from rota.server.schemas.workers import WorkerResponse, WorkersResponse
from rota.store.reads import WorkerInfo

router = APIRouter(route_class=IdempotentRoute, tags=["workers"])

#: Dead workers whose jobs are looked up.
MAX_LOST_WORKERS: Final = 20
WorkerId = Annotated[str, Path(max_length=300, description="The id in the list of workers.")]


@router.get("/api/workers", response_model=WorkersResponse)
async def list_workers(context: Viewer) -> Response:
    """Lists the workers seen in the last 24 hours, with their running jobs."""
    found = [worker for worker in await context.rota.workers() if context.concerns(worker)]
    return json_response({"workers": await _workers_json(context, found)})


@router.get("/api/workers/{worker_id}", response_model=WorkerResponse)
async def show_worker(context: Viewer, worker_id: WorkerId) -> Response:
    """Returns one worker with its running jobs."""
    return await _worker_response(context, worker_id)


@router.post("/api/workers/{worker_id}/drain", response_model=WorkerResponse)
async def drain_worker(context: Operator, worker_id: WorkerId) -> Response:
    """Drains a worker: it claims no more jobs, finishes its running jobs, and stops. Idempotent."""
    before = await _find_controllable(context, worker_id)
    await context.rota.drain(worker_id)
    await context.audit(
        "drain", f"worker {worker_id}", before={"state": before.info.get("state", "")}, after={"state": "draining"}
    )
    return await _worker_response(context, worker_id)


@router.post("/api/workers/{worker_id}/undrain", response_model=WorkerResponse)
async def undrain_worker(context: Operator, worker_id: WorkerId) -> Response:
    """Withdraws a drain: the worker claims jobs again. Refused once it has drained. Idempotent."""
    before = await _find_controllable(context, worker_id)
    await context.rota.undrain(worker_id)
    await context.audit("undrain", f"worker {worker_id}", before={"state": before.info.get("state", "")})
    return await _worker_response(context, worker_id)


async def _find_controllable(context: RequestContext, worker_id: str) -> WorkerInfo:
    found = await _find(context, worker_id)
    if not all(context.identity.may_see(queue) for queue in found.info.get("queues", [])):
        raise Problem(403, "forbidden", "this worker serves queues outside the scope of this token")
    return found


async def _find(context: RequestContext, worker_id: str) -> WorkerInfo:
    found = (worker for worker in await context.rota.workers() if worker.id == worker_id and context.concerns(worker))
    worker = next(found, None)
    if worker is None:
        raise WorkerNotFound(worker_id)
    return worker


async def _worker_response(context: RequestContext, worker_id: str) -> Response:
    (worker,) = await _workers_json(context, [await _find(context, worker_id)])
    return json_response({"worker": worker})


async def _workers_json(context: RequestContext, workers: Sequence[WorkerInfo]) -> list[dict[str, Any]]:
    running, is_complete = await context.server.running_jobs.by_worker()
    lost = await _lost_jobs(context, [one for one in workers if is_recently_dead(one)][:MAX_LOST_WORKERS])
    return [
        {
            **serializers.worker_json(one, context.identity, running.get(one.id, []), is_complete=is_complete),
            "lost_jobs": lost.get(one.id, []),
        }
        for one in workers
    ]


async def _lost_jobs(context: RequestContext, dead: Sequence[WorkerInfo]) -> dict[str, list[dict[str, Any]]]:
    """Returns what became of the jobs that dead workers were running when they were last seen."""
    held = [(worker.id, one) for worker in dead for one in worker.info.get("running", [])]
    refs = [JobRef.parse(f"{one['job']}@{one['run']}") for _, one in held]
    records = await (await checked_session(context.rota)).read_records(refs) if refs else []
    found: dict[str, list[dict[str, Any]]] = {}
    for (worker, one), ref, record in zip(held, refs, records, strict=True):
        if context.identity.may_see(base_of(ref.queue)):
            row = {
                "jobId": ref.full_id,
                "run": ref.run,
                "type": one["task"],
                "status": record.state.value.upper() if record is not None else None,
                "attempt": record.counts.attempt if record is not None else None,
            }
            found.setdefault(worker, []).append(row)
    return found
