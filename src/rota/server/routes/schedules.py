"""Schedules: when their jobs come, and what an operator does about it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Response

from rota.schedules import ScheduleInfo
from rota.server.answers import KeyedRoute
from rota.server.schemas.base import Done, QueueName
from rota.server.schemas.schedules import RunScheduleAnswer, ScheduleAnswer, SchedulesAnswer
from rota.server.visits import Admin, Operator, Viewer, Visit, reply

router = APIRouter(route_class=KeyedRoute, tags=["schedules"])

ScheduleId = Annotated[
    str, Path(max_length=300, description="queue:name, or the name alone where only one queue has it")
]


@router.get("/api/schedules", response_model=SchedulesAnswer)
async def list_schedules(visit: Viewer, queue: QueueName | None = None) -> Response:
    """All schedules, or those of one queue."""
    if queue is not None:
        visit.check_queue(queue)
    infos = [info for info in await visit.rota.schedules.list(queue=queue) if visit.identity.may_see(info.queue)]
    return reply({"success": True, "schedules": [visit.server.shapes.schedule(info) for info in infos]})


@router.get("/api/schedules/{schedule_id}", response_model=ScheduleAnswer)
async def show_schedule(visit: Viewer, schedule_id: ScheduleId) -> Response:
    """One schedule."""
    return _answer(visit, await _find(visit, schedule_id))


@router.post("/api/schedules/{schedule_id}/pause", response_model=ScheduleAnswer)
async def pause_schedule(visit: Operator, schedule_id: ScheduleId) -> Response:
    """Stop its ticks. What would have come meanwhile is not made up for."""
    before = await _find(visit, schedule_id)
    await visit.rota.schedules.pause(before.id)
    return await _changed(visit, "pause", before)


@router.post("/api/schedules/{schedule_id}/resume", response_model=ScheduleAnswer)
async def resume_schedule(visit: Operator, schedule_id: ScheduleId) -> Response:
    """Let it tick again, from now on."""
    before = await _find(visit, schedule_id)
    await visit.rota.schedules.resume(before.id)
    return await _changed(visit, "resume", before)


@router.post("/api/schedules/{schedule_id}/run", response_model=RunScheduleAnswer)
async def run_schedule(visit: Operator, schedule_id: ScheduleId) -> Response:
    """Make one of its jobs now; its ticks stay as they are."""
    info = await _find(visit, schedule_id)
    job = await visit.rota.schedules.run_now(info.id)
    await visit.audit("run", f"schedule {info.id}", after={"job": job.id})
    return reply({"success": True, "message": "Job enqueued", "jobId": job.id})


@router.delete("/api/schedules/{schedule_id}", response_model=Done)
async def remove_schedule(visit: Admin, schedule_id: ScheduleId) -> Response:
    """Forget it; its jobs stay. One that is declared in code comes back with the next worker."""
    info = await _find(visit, schedule_id)
    await visit.rota.schedules.remove(info.id)
    await visit.audit("remove", f"schedule {info.id}", before={"words": info.words, "type": info.task})
    said = "Schedule removed" + ("; a worker that declares it brings it back" if info.is_declared else "")
    return reply({"success": True, "message": said})


async def _find(visit: Visit, schedule_id: str) -> ScheduleInfo:
    queue, colon, _ = schedule_id.rpartition(":")
    if colon:
        visit.check_queue(queue)
    info = await visit.rota.schedules.get(schedule_id)
    visit.check_queue(info.queue)
    return info


def _answer(visit: Visit, info: ScheduleInfo) -> Response:
    return reply({"success": True, "schedule": visit.server.shapes.schedule(info)})


async def _changed(visit: Visit, action: str, before: ScheduleInfo) -> Response:
    after = await visit.rota.schedules.get(before.id)
    await visit.audit(
        action, f"schedule {before.id}", before={"is_paused": before.is_paused}, after={"is_paused": after.is_paused}
    )
    return _answer(visit, after)
