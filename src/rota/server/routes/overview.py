"""The overview: one call for a page that is always open. All who look share one look at the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from fastapi import APIRouter, Response

from rota.attention import Surroundings, alarms, has_vanished
from rota.core.history import Counted, add
from rota.core.shapes import exact_moment
from rota.core.states import JobState
from rota.history import Load
from rota.overview import Overview
from rota.server import shapes
from rota.server.schemas.base import QueueName
from rota.server.schemas.overview import OverviewAnswer, SuggestionsAnswer
from rota.server.visits import Viewer, Visit, reply

router = APIRouter(tags=["overview"])

#: Words of one kind.
SUGGESTED: Final = 200


@router.get("/api/overview", response_model=OverviewAnswer)
async def show_overview(visit: Viewer) -> Response:
    """How everything stands at one glance, and what needs attention. Looked up once a second for all who ask."""
    server = visit.server
    overview = _visible(visit, await server.overview.get())
    around = None if visit.identity.queues else await server.surroundings.get()
    minutes = await server.minutes.get()
    loads = overview.loads
    alive = [worker for worker in overview.workers if worker.status == "ALIVE"]
    answer: dict[str, Any] = {
        "success": True,
        "at": exact_moment(overview.at),
        "stats": shapes.stats({state: sum(load.counts[state] for load in loads) for state in JobState}),
        "lately": shapes.counted(add(load.lately for load in loads)),
        "arrivals_per_second": sum(load.arrivals_per_second for load in loads),
        "services_per_second": sum(load.services_per_second for load in loads),
        "oldest_wait_ms": max((load.oldest_wait_ms or 0 for load in loads if load.oldest_wait_ms), default=None),
        "queues": [_queue(load, minutes.get(load.queue, [])) for load in loads],
        "workers": {
            "alive": len(alive),
            "draining": sum(worker.info.get("state") == "draining" for worker in alive),
            "dead": sum(map(has_vanished, overview.workers)),
            "slots": sum(worker.info.get("slots", 0) for worker in alive),
            "busy": sum(worker.info.get("busy", 0) for worker in alive),
        },
        "workflows": None if around is None else {"held": len(overview.held), "parked": len(overview.parked)},
        "server": None if around is None else _server(around),
        "attention": msgspec.to_builtins(alarms(overview, around)),
    }
    return reply(answer)


@router.get("/api/suggestions", response_model=SuggestionsAnswer)
async def suggest(visit: Viewer, queue: QueueName | None = None) -> Response:
    """Words to complete a filter with: of one queue, or of all. Looked up every few seconds for all who ask."""
    if queue is not None:
        visit.check_queue(queue)
    found = await visit.server.suggestions.get()
    queues = visit.visible(found.queues)
    asked = queues if queue is None else [queue]

    def words(by_queue: Mapping[str, Sequence[str]]) -> list[str]:
        return list(dict.fromkeys(word for name in asked for word in by_queue.get(name, ())))[:SUGGESTED]

    announced = [task.task.name for task in await visit.server.catalog.all() if task.task.queue in asked]
    overview = _visible(visit, await visit.server.overview.get())
    answer = {
        "success": True,
        "queues": queues,
        "tasks": list(dict.fromkeys([*words(found.tasks), *announced]))[:SUGGESTED],
        "tags": words(found.tags),
        "fields": words(found.fields),
        "errors": words(found.errors),
        "workers": [worker.id for worker in overview.workers][:SUGGESTED],
        "workflows": [] if visit.identity.queues else found.workflows,
    }
    return reply(answer)


def _visible(visit: Visit, overview: Overview) -> Overview:
    """What a caller that is limited to some queues may see of it."""
    if not visit.identity.queues:
        return overview
    return msgspec.structs.replace(
        overview,
        loads=[load for load in overview.loads if visit.identity.may_see(load.queue)],
        workers=[worker for worker in overview.workers if visit.concerns(worker)],
        held=[],
        parked=[],
    )


def _queue(load: Load, minutes: Sequence[Counted]) -> dict[str, Any]:
    return {
        "name": load.queue,
        "is_paused": load.is_paused,
        "stats": shapes.stats(load.counts),
        "oldest_wait_ms": load.oldest_wait_ms,
        "arrivals_per_second": load.arrivals_per_second,
        "services_per_second": load.services_per_second,
        "lately": shapes.counted(load.lately),
        "workers": load.workers,
        "slots": load.slots,
        "busy": load.busy,
        "completed_per_minute": [minute.completed for minute in minutes],
        "failed_per_minute": [minute.failed for minute in minutes],
    }


def _server(around: Surroundings) -> dict[str, Any]:
    return {
        "server": around.server,
        "used_memory": around.used_memory,
        "maxmemory": around.maxmemory,
        "evicted_keys": around.evicted_keys,
        "is_aof_on": around.is_aof_on,
    }
