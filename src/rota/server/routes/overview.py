"""Overview endpoint: the state of the whole system in one call. Cached for all callers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from fastapi import APIRouter, Response

from rota.client.overview import Overview
from rota.client.queue_metrics import QueueLoad
from rota.core.format_iso_time import iso_time
from rota.core.health.acknowledgement import is_acknowledged
from rota.core.health.finding import MAX_NAMES, Finding
from rota.core.health.queue_rules import drain_ms
from rota.core.health.verdict import verdict
from rota.core.metric_series import Counts, add_counts
from rota.core.state_transitions import JobState
from rota.monitoring.current_alerts import ServerStatus, alerts, is_recently_dead
from rota.server import serializers
from rota.server.request_context_and_permissions import RequestContext, Viewer, json_response
from rota.server.schemas.overview import OverviewResponse

router = APIRouter(tags=["overview"])


@router.get("/api/overview", response_model=OverviewResponse)
async def show_overview(context: Viewer) -> Response:
    """Returns the state of queues, workers and the server, with alerts. Cached for half a second."""
    server = context.server
    overview = _visible(context, await server.overview.get())
    status = None if context.identity.queues else await server.server_status.get()
    minutes = await server.minutes.get()
    loads = overview.loads
    found = [visible_finding(context, one) for one in await server.health.get() if may_see_finding(context, one)]
    now, states = await server.finding_states.get()
    line = verdict(one for one in found if not is_acknowledged(one, states, now))
    alive = [worker for worker in overview.workers if worker.status == "ALIVE"]
    body: dict[str, Any] = {
        "at": iso_time(overview.at),
        "verdict": {"level": line.level, "text": line.text},
        "attention": [serializers.finding_json(one, states, now) for one in found],
        "stats": serializers.stats_json({state: sum(load.counts[state] for load in loads) for state in JobState}),
        "last_5m": serializers.counts_json(add_counts(load.last_5m for load in loads)),
        "arrivals_per_second": sum(load.arrivals_per_second for load in loads),
        "services_per_second": sum(load.services_per_second for load in loads),
        "oldest_wait_ms": max((load.oldest_wait_ms or 0 for load in loads if load.oldest_wait_ms), default=None),
        "queues": [_queue_json(load, minutes.get(load.queue, [])) for load in loads],
        "workers": {
            "alive": len(alive),
            "draining": sum(worker.info.get("state") == "draining" for worker in alive),
            "dead": sum(map(is_recently_dead, overview.workers)),
            "slots": sum(worker.info.get("slots", 0) for worker in alive),
            "busy": sum(worker.info.get("busy", 0) for worker in alive),
        },
        "workflows": None if status is None else {"held": len(overview.held), "parked": len(overview.parked)},
        "server": None if status is None else _server_json(status),
        "alerts": msgspec.to_builtins(alerts(overview, status)),
    }
    return json_response(body)


def may_see_finding(context: RequestContext, finding: Finding) -> bool:
    """Returns whether a finding is about a queue that the caller may see; for an unlimited caller always."""
    if not context.identity.queues:
        return True
    if finding.kind == "dead_worker":
        return any(map(context.identity.may_see, finding.names))
    return finding.queue is not None and context.identity.may_see(finding.queue)


def visible_finding(context: RequestContext, finding: Finding) -> Finding:
    """Returns the finding as the caller may see it: of a dead worker's queues only those in scope."""
    if finding.kind != "dead_worker":
        return finding
    return msgspec.structs.replace(finding, names=tuple(context.visible(finding.names)))


def may_acknowledge(context: RequestContext, finding: Finding) -> bool:
    """Returns whether the finding is about queues in scope only. One that lists no more queues may concern others."""
    if not may_see_finding(context, finding):
        return False
    if finding.kind != "dead_worker" or not context.identity.queues:
        return True
    return len(finding.names) < MAX_NAMES and all(map(context.identity.may_see, finding.names))


def _visible(context: RequestContext, overview: Overview) -> Overview:
    """Returns the part of the overview that the caller may see."""
    if not context.identity.queues:
        return overview
    return msgspec.structs.replace(
        overview,
        loads=[load for load in overview.loads if context.identity.may_see(load.queue)],
        workers=[worker for worker in overview.workers if context.concerns(worker)],
        held=[],
        parked=[],
    )


def _queue_json(load: QueueLoad, minutes: Sequence[Counts]) -> dict[str, Any]:
    return {
        "name": load.queue,
        "is_paused": load.is_paused,
        "paused": serializers.pause_json(load.pause),
        "stats": serializers.stats_json(load.counts),
        "oldest_wait_ms": load.oldest_wait_ms,
        "arrivals_per_second": load.arrivals_per_second,
        "services_per_second": load.services_per_second,
        "drain_ms": drain_ms(load.counts["pending"], load.arrivals_per_second, load.services_per_second),
        "last_5m": serializers.counts_json(load.last_5m),
        "workers": load.workers,
        "slots": load.slots,
        "busy": load.busy,
        "completed_per_minute": [minute.completed for minute in minutes],
        "failed_per_minute": [minute.failed for minute in minutes],
    }


def _server_json(status: ServerStatus) -> dict[str, Any]:
    return {
        "server": status.server,
        "used_memory": status.used_memory,
        "maxmemory": status.maxmemory,
        "evicted_keys": status.evicted_keys,
        "is_aof_on": status.is_aof_on,
    }
