"""Workers: who is there, what each is doing, and how one is asked to leave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Path, Response

from rota.errors import WorkerNotFound
from rota.server import shapes
from rota.server.answers import KeyedRoute
from rota.server.problems import Problem
from rota.server.schemas.queues import WorkerAnswer, WorkersAnswer
from rota.server.visits import Operator, Viewer, Visit, reply
from rota.store.views import WorkerInfo

router = APIRouter(route_class=KeyedRoute, tags=["workers"])

WorkerId = Annotated[str, Path(max_length=300, description="As the list of workers has it.")]


@router.get("/api/workers", response_model=WorkersAnswer)
async def list_workers(visit: Viewer) -> Response:
    """The workers heard of in the last day, and what each is running."""
    found = [worker for worker in await visit.rota.workers() if visit.concerns(worker)]
    return reply({"success": True, "workers": await _shapes(visit, found)})


@router.get("/api/workers/{worker_id}", response_model=WorkerAnswer)
async def show_worker(visit: Viewer, worker_id: WorkerId) -> Response:
    """One worker, and what it is running."""
    return await _answer(visit, worker_id)


@router.post("/api/workers/{worker_id}/drain", response_model=WorkerAnswer)
async def drain_worker(visit: Operator, worker_id: WorkerId) -> Response:
    """Let a worker finish what it runs, take nothing more, and leave. It is told at once; repeat it freely."""
    before = await _find(visit, worker_id)
    if not all(visit.identity.may_see(queue) for queue in before.info.get("queues", [])):
        raise Problem(403, "forbidden", "this worker serves queues that this token is not for")
    await visit.rota.drain(worker_id)
    await visit.audit(
        "drain", f"worker {worker_id}", before={"state": before.info.get("state", "")}, after={"state": "draining"}
    )
    return await _answer(visit, worker_id)


async def _find(visit: Visit, worker_id: str) -> WorkerInfo:
    found = (worker for worker in await visit.rota.workers() if worker.id == worker_id and visit.concerns(worker))
    worker = next(found, None)
    if worker is None:
        raise WorkerNotFound(worker_id)
    return worker


async def _answer(visit: Visit, worker_id: str) -> Response:
    (shape,) = await _shapes(visit, [await _find(visit, worker_id)])
    return reply({"success": True, "worker": shape})


async def _shapes(visit: Visit, workers: Sequence[WorkerInfo]) -> list[dict[str, Any]]:
    held, are_all = await visit.server.leases.by_worker()
    return [shapes.worker(one, visit.identity, held.get(one.id, []), are_all=are_all) for one in workers]
