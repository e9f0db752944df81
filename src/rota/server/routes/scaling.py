"""Autoscaler endpoints: state, settings and decisions, and the load of one queue for other autoscalers."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Response

from rota.client.queue_metrics import QueueLoad
from rota.client.scaling import ScalingStatus
from rota.client.session import checked_session
from rota.core.autoscaling.decide_launches_and_drains import desired
from rota.core.autoscaling.observation import Observation, ObservedWorker, QueueDemand, WorkerState
from rota.core.autoscaling.policy_settings import DrainTime
from rota.core.autoscaling.pool_history_chart import PoolStep
from rota.core.format_iso_time import iso_time
from rota.server.auth.api_tokens import Role
from rota.server.http.idempotency_key import IdempotentRoute
from rota.server.request_context_and_permissions import Operator, RequestContext, Viewer, json_response
from rota.server.schemas.common import QueueName
from rota.server.schemas.scaling import (
    ChangeScaling,
    DryRunScaling,
    PoolHistoryResponse,
    QueueScalingResponse,
    ScalingDryRunResponse,
    ScalingResponse,
)
from rota.store.autoscaler_lease_decisions_and_demand import ScalingDecision

router = APIRouter(route_class=IdempotentRoute, tags=["scaling"])

#: Values that are summed over queues.
_SUMS: Final = (
    "backlog",
    "processing",
    "arrivals_per_second",
    "services_per_second",
    "due_in_1m",
    "due_in_5m",
    "due_in_15m",
)
_SETTINGS: Final = ("policy", "min_workers", "max_workers", "target_wait_ms", "is_dry_run", "is_paused")


@router.get("/api/scaling", response_model=ScalingResponse)
async def scaling(
    context: Viewer,
    cursor: Annotated[str | None, Query(max_length=64, description="The `cursor` of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="Decisions per page.")] = 50,
) -> Response:
    """Returns the autoscaler's state, settings and decisions, and the load: backlog, waits, rates and capacity."""
    return json_response(await _scaling_json(context, cursor, limit))


@router.patch("/api/scaling", response_model=ScalingResponse)
async def change_scaling(context: Operator, body: ChangeScaling) -> Response:
    """Changes settings of the autoscaler at run time: pause, bounds, dry run, policy. It applies them at once."""
    context.check_unlimited("the autoscaler")
    before = (await context.rota.scaling.status()).settings
    changes = {name: getattr(body, name) for name in body.model_fields_set}
    after = await context.rota.scaling.change(**changes)
    await context.audit("change", "autoscaler", before=_audited(before), after=_audited(after))
    return json_response(await _scaling_json(context, None, 50))


@router.post("/api/scaling/dry-run", response_model=ScalingDryRunResponse)
async def dry_run_scaling(context: Operator, body: DryRunScaling) -> Response:
    """Returns what the autoscaler would decide now, without doing it. 409 if no autoscaler runs, or none answers.

    With settings, what it would decide with them in place of those in force.
    """
    context.check_unlimited("the autoscaler")
    found = await context.rota.scaling.dry_run(**{name: getattr(body, name) for name in body.model_fields_set})
    return json_response(
        {
            **{name: getattr(found, name) for name in ("planner", "policy", "min_workers", "max_workers")},
            "target_wait_ms": found.target_wait_ms,
            "decision": _decision_json(found.decision),
            "launch": found.launch,
            "drain": found.decision.drain_count,
            "replace": found.replace_count,
        }
    )


@router.get("/api/metrics/scaling", response_model=PoolHistoryResponse)
async def scaling_history(
    context: Viewer,
    since: Annotated[
        float, Query(ge=60, le=30 * 86400, description="Length of the time span in seconds, ending now.")
    ] = 3600,
    step: Annotated[int, Query(ge=60, le=30 * 86400, description="Step in seconds.")] = 60,
) -> Response:
    """Returns the pool over time: workers wanted, running, booting and draining, backlog and wait, per step."""
    context.check_unlimited("the history of the autoscaler")
    history = await context.rota.scaling.history(since=since, step=step)
    return json_response(
        {
            "step_ms": history.step_ms,
            "since": iso_time(history.since),
            "until": iso_time(history.until),
            "points": [
                _step_json(history.since + number * history.step_ms, step) for number, step in enumerate(history.steps)
            ],
        }
    )


@router.get("/api/scaling/{queue}", response_model=QueueScalingResponse)
async def queue_scaling(
    context: Viewer,
    queue: Annotated[QueueName, Path(description="The queue's name.")],
    target_wait: Annotated[float, Query(gt=0, le=86_400, description="Jobs should start within so many seconds.")] = 60,
    slots: Annotated[int, Query(ge=1, le=10_000, description="Slots of a worker, where none runs.")] = 10,
    max: Annotated[int, Query(ge=1, le=10_000, description="Greatest number of workers.")] = 10_000,
) -> Response:
    """Returns the load of one queue and the number of workers that it needs, as `desired`, for KEDA.

    404 for a queue that was never used, 503 if the store does not respond: missing data is an error, never 0.
    """
    (load,) = await context.rota.loads([await context.known_queue(queue)])
    policy = DrainTime(
        target_wait_ms=round(target_wait * 1000), worker_slots=slots, max_workers=max, down_cooldown_ms=0
    )
    return json_response({**load_json(load), "desired": _desired(load, policy)})


async def _scaling_json(context: RequestContext, cursor: str | None, limit: int) -> dict[str, Any]:
    views = (await checked_session(context.rota)).views
    names = context.visible(await views.queues())
    loads = await context.rota.loads(names) if names else []
    alive = [w for w in await views.workers() if w.status == "ALIVE" and context.concerns(w)]
    queues = [load_json(load) for load in loads]
    waits = [load.oldest_wait_ms for load in loads if load.oldest_wait_ms is not None]
    total = {
        **{name: sum(one[name] for one in queues) for name in _SUMS},
        "oldest_wait_ms": max(waits, default=None),
        # Not summed over queues: a worker that serves several queues is one worker.
        "workers": len(alive),
        "slots": sum(w.info.get("slots", 0) for w in alive),
        "busy": sum(w.info.get("busy", 0) for w in alive),
        "idle_workers": sum(not w.info.get("busy") for w in alive),
        "busy_workers": sum(bool(w.info.get("busy")) for w in alive),
    }
    body: dict[str, Any] = {"total": total, "queues": queues, **_NOT_VISIBLE}
    if not context.identity.queues:
        # A token that is limited to some queues does not see the pool, whose size shows the load of all queues.
        status = await context.rota.scaling.status()
        page = await context.rota.scaling.decisions(cursor=cursor, limit=limit)
        may_change = context.identity.role.covers(Role.OPERATOR)
        body |= {
            **_status_json(status),
            "decisions": [_decision_json(one) for one in page.decisions],
            "cursor": page.cursor,
            "actions": ["change", "dry_run"] if may_change else [],
        }
    return body


_NO_SETTINGS: Final[dict[str, Any]] = {
    **dict.fromkeys(("policy", "min_workers", "max_workers", "target_wait_ms", "interval_ms")),
    "is_dry_run": False,
    "is_paused": False,
    "changed": [],
}
_NOT_VISIBLE: Final[dict[str, Any]] = {
    "planner": None,
    "standby": [],
    "settings": _NO_SETTINGS,
    "latest": None,
    "decisions": [],
    "cursor": None,
    "actions": [],
}


def _status_json(status: ScalingStatus) -> dict[str, Any]:
    info, changed = status.info, status.settings
    settings = dict(_NO_SETTINGS)
    if info is not None:
        settings |= {name: getattr(info, name) for name in (*_SETTINGS, "interval_ms")}
    # The planner reports them as soon as it has applied them.
    given = {name: value for name in _SETTINGS if (value := getattr(changed, name)) is not None}
    planner = None
    if info is not None and status.planner is not None:
        planner = {
            "id": status.planner,
            "host": info.host,
            "pid": info.pid,
            "version": info.version,
            "provider": info.provider,
            "queues": info.queues,
        }
    # Only a setting pauses an autoscaler: a pause is over before the planner reports that.
    settings |= {**given, "is_paused": bool(changed.is_paused), "changed": list(given)}
    return {
        "planner": planner,
        "standby": status.standby,
        "settings": settings,
        "latest": _decision_json(status.latest) if status.latest is not None else None,
    }


def _decision_json(decision: ScalingDecision) -> dict[str, Any]:
    return {
        "id": decision.id,
        "at": iso_time(decision.at),
        "wanted": decision.wanted,
        "needed": decision.needed,
        "running": decision.running,
        "booting": decision.booting,
        "draining": decision.draining,
        "backlog": decision.high + decision.normal,
        "high": decision.high,
        "oldest_wait_ms": decision.oldest_wait_ms,
        "reasons": decision.reasons,
        "launched": decision.launched,
        "drained": decision.drained,
        "terminated": decision.terminated,
        "is_hold": decision.is_hold,
        "is_dry_run": decision.is_dry_run,
        "is_paused": decision.is_paused,
    }


_STEP: Final = ("wanted", "running", "booting", "draining", "backlog", "oldest_wait_ms")


def _step_json(at: int, step: PoolStep | None) -> dict[str, Any]:
    values = {name: getattr(step, name, None) for name in _STEP}
    return {
        "at": iso_time(at),
        **values,
        "launched": step.launched if step is not None else 0,
        "drained": step.drained if step is not None else 0,
    }


def _audited(settings: Any) -> dict[str, Any]:
    return {name: value for name in _SETTINGS if (value := getattr(settings, name)) is not None}


def _desired(load: QueueLoad, policy: DrainTime) -> int:
    """The workers that the policy `drain-time` wants, given the load alone and workers of equal size."""
    workers = [
        ObservedWorker(
            id=str(number), state=WorkerState.RUNNING, slots=round(load.slots / load.workers), heartbeat_ms=load.at
        )
        for number in range(load.workers)
    ]
    demand = QueueDemand(
        queue=load.queue,
        normal=load.counts["pending"],
        oldest_wait_ms=load.oldest_wait_ms,
        due=load.due[60],
        arrivals_per_second=load.arrivals_per_second,
        arrivals_per_second_5m=load.arrivals_per_second,
        mean_run_ms=load.mean_run_ms,
        processing=load.counts["processing"],
        is_paused=load.is_paused,
    )
    return desired(Observation(at_ms=load.at, queues=[demand], workers=workers), policy, load.at).needed


def load_json(load: QueueLoad) -> dict[str, Any]:
    """Returns the load of a queue."""
    return {
        "queue": load.queue,
        "is_paused": load.is_paused,
        "backlog": load.counts["pending"],
        "processing": load.counts["processing"],
        "oldest_wait_ms": load.oldest_wait_ms,
        "arrivals_per_second": load.arrivals_per_second,
        "services_per_second": load.services_per_second,
        "mean_run_ms": load.mean_run_ms,
        "due_in_1m": load.due[60],
        "due_in_5m": load.due[300],
        "due_in_15m": load.due[900],
        "workers": load.workers,
        "slots": load.slots,
        "busy": load.busy,
    }
