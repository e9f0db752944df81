"""How everything stands, at one glance: the load of each queue, the workers, the workflows that wait for a human.

Made to be asked for every second: it reads counts and heads of indexes, whatever the number of jobs.
"""

from __future__ import annotations

import msgspec

from rota.history import Load, read_loads
from rota.link import Link
from rota.store.views import WorkerInfo


class Overview(msgspec.Struct, frozen=True):
    """How everything stands at one moment of the server's clock."""

    at: int
    loads: list[Load]
    workers: list[WorkerInfo]
    #: Workflows that wait for a human: held after a failure, and with a compensation that failed for good.
    held: list[str]
    parked: list[str]


async def read_overview(link: Link) -> Overview:
    """See `Rota.overview`."""
    workers = await link.views.workers()
    loads = await read_loads(link, None, workers)
    held, parked = await link.flows.stuck()
    at = loads[0].at if loads else await link.views.now()
    return Overview(at, loads, workers, held, parked)
