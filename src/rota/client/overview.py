"""The overview: the load of all queues, the workers, and the workflows that wait for an operator.

Cheap enough to be read every second: it reads counts and heads of indexes, independent of the number of jobs.
"""

from __future__ import annotations

import msgspec

from rota.client.queue_metrics import QueueLoad, read_loads
from rota.client.session import Session
from rota.store.reads import WorkerInfo


class Overview(msgspec.Struct, frozen=True):
    """Load, workers and stuck workflows at one moment of the server's clock."""

    at: int
    loads: list[QueueLoad]
    workers: list[WorkerInfo]
    #: Workflows that wait for an operator: held after a failure, and with a compensation that failed for good.
    held: list[str]
    parked: list[str]


async def read_overview(session: Session) -> Overview:
    """See `Rota.overview`."""
    workers = await session.views.workers()
    loads = await read_loads(session, None, workers)
    held, parked = await session.workflows.stuck()
    at = loads[0].at if loads else await session.views.now()
    return Overview(at, loads, workers, held, parked)
