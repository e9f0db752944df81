"""Starts operations on many jobs, and sees to it that somebody carries them out."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from rota.core.job import JobRef
from rota.core.shapes import exact_moment, moment
from rota.errors import StoreError
from rota.operations import Verb
from rota.server.filters import Found, check_scope
from rota.server.visits import Server, Visit
from rota.store.operations import NAMED, OperationInfo

logger = logging.getLogger("rota.server")


async def start(
    visit: Visit,
    action: Verb,
    where: Found | None,
    jobs: Sequence[str] | None = None,
    *,
    dry_run: bool,
    **more: Any,
) -> OperationInfo:
    """Writes an operation down, and begins with it. `more` is what else `Operations.start` takes."""
    if where is not None:
        check_scope(visit, where)
    for queue in {JobRef.parse(job).queue for job in jobs or ()}:
        visit.check_queue(queue)
    info = await visit.rota.operations.start(action, where=where, jobs=jobs, dry_run=dry_run, **more)
    if not dry_run:
        about = {"where": info.where} if jobs is None else {"jobs": jobs[:NAMED]}
        asked = {**about, **{name: value for name, value in more.items() if value}}
        await visit.audit(action, f"operation {info.id}", before=asked, after={"expected": info.expected})
    _carry_out(visit.server, info.id)
    return info


def shape(info: OperationInfo) -> dict[str, Any]:
    """An operation as the API shows it."""
    return {
        "id": info.id,
        "action": info.verb,
        "where": info.where,
        "chosen": info.chosen,
        "state": info.state.upper(),
        "is_dry_run": info.is_dry_run,
        "per_second": info.per_second,
        "expected": info.expected,
        "matched": info.matched,
        "done": info.done,
        "failed": info.failed,
        "failures": [{"jobId": failure.job, "message": failure.why} for failure in info.failures],
        "created_at": exact_moment(info.created_at),
        "ended_at": moment(info.ended_at),
    }


def _carry_out(server: Server, operation_id: str) -> None:
    """Begins at once. If this server ends before it does, a worker or another server goes on with it."""

    async def run() -> None:
        try:
            await server.rota.operations.run(operation_id)
        except StoreError as error:
            logger.warning("operation %s is left to others: %s", operation_id, error)

    task = asyncio.create_task(run(), name="rota-operation")
    server.background.add(task)
    task.add_done_callback(server.background.discard)
