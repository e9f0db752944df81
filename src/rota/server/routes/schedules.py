"""Schedule endpoints: list, show, put, change, preview, forecast, pause, resume, run, remove."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo
from itertools import islice
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response

from rota.client.schedules import MAX_FORECAST_HOURS, ScheduledRun, ScheduleInfo
from rota.client.session import checked_session
from rota.core.format_iso_time import iso_time, iso_time_or_none
from rota.core.metric_series import HOUR_MS
from rota.core.schedule import (
    Cron,
    Every,
    ScheduleRule,
    checked_schedule_name,
    checked_zone,
    describe_rule,
    ticks,
    zone_of,
)
from rota.errors import InvalidOption, ScheduleNotFound
from rota.server.enqueue_requests import make_call, read_time, split_data
from rota.server.http.idempotency_key import IdempotentRoute
from rota.server.http.problem_responses import fields_within
from rota.server.request_context_and_permissions import Admin, Operator, RequestContext, Viewer, json_response
from rota.server.schemas.common import MessageResponse, QueueName
from rota.server.schemas.schedules import (
    CronRule,
    EveryRule,
    ForecastResponse,
    NewSchedule,
    PreviewSchedule,
    RunScheduleResponse,
    ScheduleChange,
    SchedulePreviewResponse,
    ScheduleResponse,
    ScheduleRunsResponse,
    SchedulesResponse,
)
from rota.server.serializers import PREVIEW_BYTES
from rota.store.compute_in_thread import compute

router = APIRouter(route_class=IdempotentRoute, tags=["schedules"])

Zone = Annotated[
    str | None, Query(max_length=100, description="A time zone such as Europe/Oslo; by default that of the rule.")
]
ScheduleId = Annotated[str, Path(max_length=300, description="queue:name, or the name alone if it is unique")]


@router.get("/api/schedules", response_model=SchedulesResponse)
async def list_schedules(context: Viewer, queue: QueueName | None = None, tz: Zone = None) -> Response:
    """Lists all schedules, or those of one queue."""
    zone = checked_zone(tz) if tz is not None else None
    if queue is not None:
        context.check_queue(queue)
    await context.server.catalog.load()
    infos = [info for info in await context.rota.schedules.list(queue=queue) if context.identity.may_see(info.queue)]
    serialize = context.server.serializer.schedule
    found = await compute(len(infos), lambda: [serialize(info, zone, PREVIEW_BYTES) for info in infos])
    return json_response({"schedules": found})


@router.post("/api/schedules/preview", response_model=SchedulePreviewResponse)
async def preview_schedule(context: Viewer, body: PreviewSchedule) -> Response:
    """Returns a rule in plain words, with its next times. Nothing is stored."""
    rule = _rule(body.rule)
    zone = checked_zone(body.tz) if body.tz is not None else zone_of(rule)
    now = await (await checked_session(context.rota)).views.now()
    coming = [datetime.fromtimestamp(tick / 1000, zone).isoformat() for tick in islice(ticks(rule, now), body.count)]
    return json_response({"words": describe_rule(rule), "next_runs": coming})


@router.get("/api/schedules/forecast", response_model=ForecastResponse)
async def show_forecast(
    context: Viewer,
    queue: QueueName | None = None,
    hours: Annotated[int, Query(ge=1, le=MAX_FORECAST_HOURS)] = MAX_FORECAST_HOURS,
) -> Response:
    """Forecast of the coming hours, one week at most: runs of schedules, and scheduled jobs. Cached for a second."""
    if queue is not None:
        context.check_queue(queue)
    forecast = await context.server.forecast.get()
    sums = [
        [sum(hour) for hour in zip([0] * forecast.hours, *_chosen(context, by_queue, queue), strict=True)]
        for by_queue in (forecast.runs, forecast.due)
    ]
    found = [
        {"at": iso_time(forecast.since + index * HOUR_MS), "runs": runs, "due": due}
        for index, (runs, due) in enumerate(islice(zip(*sums, strict=True), hours))
    ]
    return json_response({"at": iso_time(forecast.at), "hours": found, "uncounted": forecast.uncounted})


@router.get("/api/schedules/{schedule_id}", response_model=ScheduleResponse)
async def show_schedule(context: Viewer, schedule_id: ScheduleId, tz: Zone = None) -> Response:
    """Returns one schedule."""
    return _schedule_response(context, await _find(context, schedule_id), checked_zone(tz) if tz is not None else None)


@router.put("/api/schedules/{schedule_id}", response_model=ScheduleResponse)
async def put_schedule(context: Operator, schedule_id: ScheduleId, body: NewSchedule) -> Response:
    """Creates or replaces a schedule. Its next run only changes if its rule changes."""
    queue, colon, name = schedule_id.rpartition(":")
    if colon and body.queue not in (None, queue):
        raise InvalidOption("queue", f"{body.queue!r} is not the queue of schedule {schedule_id}: omit it")
    known = await context.runnable_task(body.type, queue or body.queue)
    call = make_call(known, body.data, body, **({"queue": queue} if colon else {}))
    context.check_queue(call.queue)
    before = await _known(context, f"{call.queue}:{checked_schedule_name(name)}")
    info = await context.rota.schedules.put(
        name, _rule(body.rule), call, misfire=body.misfire, overlap=body.overlap, version=body.version
    )
    return await _audit_put(context, "put", before, info)


@router.patch("/api/schedules/{schedule_id}", response_model=ScheduleResponse)
async def change_schedule(context: Operator, schedule_id: ScheduleId, body: ScheduleChange) -> Response:
    """Changes the rule, data or policies of a schedule. A masked value in the data keeps the stored value.

    A schedule declared in code gets a higher version, so that the declaration does not revert the change.
    """
    before = await _find(context, schedule_id)
    known = await context.runnable_task(before.task, before.queue)
    args: Any = None
    kwargs: Any = None
    if body.data is not None:
        data = context.server.mask.unmask(body.data, before.kwargs or list(before.args))
        known.check(data)
        args, kwargs = split_data(data)
    info = await context.rota.schedules.change(
        before.id,
        rule=_rule(body.rule) if body.rule is not None else None,
        args=args,
        kwargs=kwargs,
        misfire=body.misfire,
        overlap=body.overlap,
    )
    return await _audit_put(context, "change", before, info)


@router.get("/api/schedules/{schedule_id}/runs", response_model=ScheduleRunsResponse)
async def schedule_runs(
    context: Viewer, schedule_id: ScheduleId, limit: Annotated[int, Query(ge=1, le=100)] = 10, tz: Zone = None
) -> Response:
    """Lists the latest ticks of the current rule, with the state of each job."""
    info = await _find(context, schedule_id)
    zone = checked_zone(tz) if tz is not None else zone_of(info.rule)
    runs = await context.rota.schedules.runs(info.id, limit=limit)
    return json_response({"runs": [_run_json(run, zone) for run in runs]})


@router.post("/api/schedules/{schedule_id}/pause", response_model=ScheduleResponse)
async def pause_schedule(context: Operator, schedule_id: ScheduleId) -> Response:
    """Pauses a schedule. Ticks during the pause are not made up for."""
    before = await _find_to_change(context, schedule_id)
    await context.rota.schedules.pause(before.id)
    return await _audit_pause(context, "pause", before)


@router.post("/api/schedules/{schedule_id}/resume", response_model=ScheduleResponse)
async def resume_schedule(context: Operator, schedule_id: ScheduleId) -> Response:
    """Resumes a schedule from now on."""
    before = await _find_to_change(context, schedule_id)
    await context.rota.schedules.resume(before.id)
    return await _audit_pause(context, "resume", before)


@router.post("/api/schedules/{schedule_id}/run", response_model=RunScheduleResponse)
async def run_schedule(context: Operator, schedule_id: ScheduleId) -> Response:
    """Enqueues one of its jobs now. Its ticks do not change."""
    info = await _find(context, schedule_id)
    await context.runnable_task(info.task, info.queue)
    context.count_enqueues(1)
    job = await context.rota.schedules.run_now(info.id)
    await context.audit("run", f"schedule {info.id}", after={"job": job.id})
    return json_response({"message": "Job enqueued", "jobId": job.id})


@router.delete("/api/schedules/{schedule_id}", response_model=MessageResponse)
async def remove_schedule(context: Admin, schedule_id: ScheduleId) -> Response:
    """Removes a schedule but not its jobs. A schedule declared in code is created again by the next worker."""
    info = await _find(context, schedule_id)
    await context.rota.schedules.remove(info.id)
    await context.audit("remove", f"schedule {info.id}", before={"words": info.words, "type": info.task})
    message = "Schedule removed" + ("; a worker that declares it creates it again" if info.is_declared else "")
    return json_response({"message": message})


async def _find_to_change(context: RequestContext, schedule_id: str) -> ScheduleInfo:
    info = await _find(context, schedule_id)
    await context.runnable_task(info.task, info.queue)
    return info


async def _find(context: RequestContext, schedule_id: str) -> ScheduleInfo:
    queue, colon, name = schedule_id.rpartition(":")
    await context.server.catalog.load()
    if colon:
        context.check_queue(queue)
    elif context.identity.queues:
        # Looked up among the caller's own: whether other queues have a schedule of this name is not disclosed.
        infos = [one for one in await context.rota.schedules.list() if context.identity.may_see(one.queue)]
        schedule_id = next((one.id for one in infos if one.name == name), "")
        if not schedule_id:
            raise ScheduleNotFound(name)
    return await context.rota.schedules.get(schedule_id)


async def _known(context: RequestContext, schedule_id: str) -> ScheduleInfo | None:
    await context.server.catalog.load()
    try:
        return await context.rota.schedules.get(schedule_id)
    except ScheduleNotFound:
        return None


def _chosen(context: RequestContext, by_queue: Mapping[str, Sequence[int]], queue: str | None) -> list[Sequence[int]]:
    """Returns the values of one queue, or of all that the caller may see."""
    return [by_queue[name] for name in context.visible(by_queue) if queue in (None, name)]


def _rule(given: CronRule | EveryRule) -> ScheduleRule:
    with fields_within("rule"):
        if isinstance(given, CronRule):
            return Cron(given.cron, given.tz)
        return Every(given.every, read_time(given.anchor, "anchor") if given.anchor is not None else None)


def _run_json(run: ScheduledRun, zone: tzinfo) -> dict[str, Any]:
    record = run.record
    return {
        "at": run.at.astimezone(zone).isoformat(),
        "jobId": run.job,
        "status": record.state.value.upper() if record is not None else None,
        "started_at": iso_time_or_none(record.claimed_at) if record is not None else None,
        "ended_at": iso_time_or_none(record.ended_at) if record is not None else None,
    }


def _schedule_response(context: RequestContext, info: ScheduleInfo, zone: tzinfo | None = None) -> Response:
    return json_response({"schedule": context.server.serializer.schedule(info, zone)})


async def _audit_put(context: RequestContext, action: str, before: ScheduleInfo | None, info: ScheduleInfo) -> Response:
    await context.audit(
        action,
        f"schedule {info.id}",
        before=_settings_json(context, before) if before else None,
        after=_settings_json(context, info),
    )
    return _schedule_response(context, info)


def _settings_json(context: RequestContext, info: ScheduleInfo) -> dict[str, Any]:
    schedule = context.server.serializer.schedule(info)
    return {name: schedule[name] for name in ("words", "type", "data", "misfire", "overlap", "version")}


async def _audit_pause(context: RequestContext, action: str, before: ScheduleInfo) -> Response:
    after = await context.rota.schedules.get(before.id)
    await context.audit(
        action, f"schedule {before.id}", before={"is_paused": before.is_paused}, after={"is_paused": after.is_paused}
    )
    return _schedule_response(context, after)
