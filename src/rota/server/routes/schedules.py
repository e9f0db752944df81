"""Schedules: when their jobs come, and what an operator does about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo
from itertools import islice
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response

from rota.core.history import HOUR_MS
from rota.core.schedule import (
    Cron,
    Every,
    ScheduleRule,
    checked_schedule_name,
    checked_zone,
    in_words,
    ticks,
    zone_of,
)
from rota.core.shapes import exact_moment, moment
from rota.errors import InvalidOption, ScheduleNotFound
from rota.schedules import MOST_AHEAD, ScheduledRun, ScheduleInfo
from rota.server.answers import KeyedRoute
from rota.server.enqueueing import make_call, read_time, split_data
from rota.server.schemas.base import Done, QueueName
from rota.server.schemas.schedules import (
    AheadAnswer,
    CronRule,
    EveryRule,
    NewSchedule,
    PreviewSchedule,
    RunScheduleAnswer,
    ScheduleAnswer,
    ScheduleChange,
    SchedulePreviewAnswer,
    ScheduleRunsAnswer,
    SchedulesAnswer,
)
from rota.server.visits import Admin, Operator, Viewer, Visit, reply

router = APIRouter(route_class=KeyedRoute, tags=["schedules"])

Zone = Annotated[str | None, Query(max_length=100, description="As Europe/Oslo; else that of its rule.")]
ScheduleId = Annotated[
    str, Path(max_length=300, description="queue:name, or the name alone where only one queue has it")
]


@router.get("/api/schedules", response_model=SchedulesAnswer)
async def list_schedules(visit: Viewer, queue: QueueName | None = None, tz: Zone = None) -> Response:
    """All schedules, or those of one queue; with times in a zone of your choice."""
    zone = checked_zone(tz) if tz is not None else None
    if queue is not None:
        visit.check_queue(queue)
    infos = [info for info in await visit.rota.schedules.list(queue=queue) if visit.identity.may_see(info.queue)]
    return reply({"success": True, "schedules": [visit.server.shapes.schedule(info, zone) for info in infos]})


@router.post("/api/schedules/preview", response_model=SchedulePreviewAnswer)
async def preview_schedule(visit: Viewer, body: PreviewSchedule) -> Response:
    """What a rule means, in words and in its next times. Nothing is stored."""
    rule = _rule(body.rule)
    zone = checked_zone(body.tz) if body.tz is not None else zone_of(rule)
    now = await (await visit.rota.checked_views()).now()
    coming = [datetime.fromtimestamp(tick / 1000, zone).isoformat() for tick in islice(ticks(rule, now), body.count)]
    return reply({"success": True, "words": in_words(rule), "next_runs": coming})


@router.get("/api/schedules/ahead", response_model=AheadAnswer)
async def show_ahead(
    visit: Viewer,
    queue: QueueName | None = None,
    hours: Annotated[int, Query(ge=1, le=MOST_AHEAD)] = MOST_AHEAD,
) -> Response:
    """What the next hours bring, a week at most: runs of schedules, and scheduled jobs. It may be a second old."""
    if queue is not None:
        visit.check_queue(queue)
    ahead = await visit.server.ahead.get()
    sums = [
        [sum(hour) for hour in zip([0] * ahead.hours, *_chosen(visit, by_queue, queue), strict=True)]
        for by_queue in (ahead.runs, ahead.due)
    ]
    found = [
        {"at": exact_moment(ahead.since + place * HOUR_MS), "runs": runs, "due": due}
        for place, (runs, due) in enumerate(islice(zip(*sums, strict=True), hours))
    ]
    return reply({"success": True, "at": exact_moment(ahead.at), "hours": found, "uncounted": ahead.uncounted})


@router.get("/api/schedules/{schedule_id}", response_model=ScheduleAnswer)
async def show_schedule(visit: Viewer, schedule_id: ScheduleId, tz: Zone = None) -> Response:
    """One schedule, with times in a zone of your choice."""
    return _answer(visit, await _find(visit, schedule_id), checked_zone(tz) if tz is not None else None)


@router.put("/api/schedules/{schedule_id}", response_model=ScheduleAnswer)
async def put_schedule(visit: Operator, schedule_id: ScheduleId, body: NewSchedule) -> Response:
    """Make a schedule, or replace the one of that name. While its rule stays the same, so does its next run."""
    queue, colon, name = schedule_id.rpartition(":")
    if colon and body.queue not in (None, queue):
        raise InvalidOption("queue", f"{body.queue!r} is not the queue of schedule {schedule_id}")
    known = await visit.server.catalog.find(body.type)
    call = make_call(known, body.data, body, **({"queue": queue} if colon else {}))
    visit.check_queue(call.queue)
    before = await _known(visit, f"{call.queue}:{checked_schedule_name(name)}")
    info = await visit.rota.schedules.put(
        name, _rule(body.rule), call, misfire=body.misfire, overlap=body.overlap, version=body.version
    )
    return await _put(visit, "put", before, info)


@router.patch("/api/schedules/{schedule_id}", response_model=ScheduleAnswer)
async def change_schedule(visit: Operator, schedule_id: ScheduleId, body: ScheduleChange) -> Response:
    """Change a schedule's rule, data or policies. A masked value in the data stands for the one that is stored.

    One that is declared in code gets a higher version, so that the code does not take the change back.
    """
    before = await _find(visit, schedule_id)
    args: Any = None
    kwargs: Any = None
    if body.data is not None:
        data = visit.server.mask.unmask(body.data, before.kwargs or list(before.args))
        (await visit.server.catalog.find(before.task)).check(data)
        args, kwargs = split_data(data)
    info = await visit.rota.schedules.change(
        before.id, rule=_rule(body.rule) if body.rule is not None else None, args=args, kwargs=kwargs,
        misfire=body.misfire, overlap=body.overlap,
    )  # fmt: skip
    return await _put(visit, "change", before, info)


@router.get("/api/schedules/{schedule_id}/runs", response_model=ScheduleRunsAnswer)
async def schedule_runs(
    visit: Viewer, schedule_id: ScheduleId, limit: Annotated[int, Query(ge=1, le=100)] = 10, tz: Zone = None
) -> Response:
    """Its latest ticks by its rule as it is now, and what became of the job of each."""
    info = await _find(visit, schedule_id)
    zone = checked_zone(tz) if tz is not None else zone_of(info.rule)
    runs = await visit.rota.schedules.runs(info.id, limit=limit)
    return reply({"success": True, "runs": [_run(run, zone) for run in runs]})


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


async def _known(visit: Visit, schedule_id: str) -> ScheduleInfo | None:
    try:
        return await visit.rota.schedules.get(schedule_id)
    except ScheduleNotFound:
        return None


def _chosen(visit: Visit, by_queue: Mapping[str, Sequence[int]], queue: str | None) -> list[Sequence[int]]:
    """What is said of one queue, or of all that the caller may see."""
    return [by_queue[name] for name in visit.visible(by_queue) if queue in (None, name)]


def _rule(asked: CronRule | EveryRule) -> ScheduleRule:
    if isinstance(asked, CronRule):
        return Cron(asked.cron, asked.tz)
    return Every(asked.every, read_time(asked.anchor, "anchor") if asked.anchor is not None else None)


def _run(run: ScheduledRun, zone: tzinfo) -> dict[str, Any]:
    record = run.record
    return {
        "at": run.at.astimezone(zone).isoformat(),
        "jobId": run.job,
        "status": record.state.value.upper() if record is not None else None,
        "started_at": moment(record.claimed_at) if record is not None else None,
        "ended_at": moment(record.ended_at) if record is not None else None,
    }


def _answer(visit: Visit, info: ScheduleInfo, zone: tzinfo | None = None) -> Response:
    return reply({"success": True, "schedule": visit.server.shapes.schedule(info, zone)})


async def _put(visit: Visit, action: str, before: ScheduleInfo | None, info: ScheduleInfo) -> Response:
    await visit.audit(
        action, f"schedule {info.id}", before=_settings(visit, before) if before else None,
        after=_settings(visit, info),
    )  # fmt: skip
    return _answer(visit, info)


def _settings(visit: Visit, info: ScheduleInfo) -> dict[str, Any]:
    shape = visit.server.shapes.schedule(info)
    return {name: shape[name] for name in ("words", "type", "data", "misfire", "overlap", "version")}


async def _changed(visit: Visit, action: str, before: ScheduleInfo) -> Response:
    after = await visit.rota.schedules.get(before.id)
    await visit.audit(
        action, f"schedule {before.id}", before={"is_paused": before.is_paused}, after={"is_paused": after.is_paused}
    )
    return _answer(visit, after)
