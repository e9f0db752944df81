"""Bulk operations in the background of the server: starts and runs them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from rota.client.bulk_operations import ONLY_TASKS, Verb
from rota.core.ids import JobRef
from rota.errors import StoreError
from rota.server.auth.authentication import caller_of
from rota.server.job_filters import check_scope, filter_options
from rota.server.request_context_and_permissions import RequestContext, Server
from rota.server.schemas.jobs import JobFilter
from rota.server.serializers import operation_json
from rota.store.bulk_operation_records import MAX_FAILURES_LISTED, OperationInfo

logger = logging.getLogger("rota.server")


async def start(
    context: RequestContext,
    action: Verb,
    where: JobFilter | None,
    jobs: Sequence[str] | None = None,
    *,
    fields: Mapping[str, Any] | None = None,
    dry_run: bool,
    **options: Any,
) -> OperationInfo:
    """Stores a bulk operation and starts it. `options` are further options of `Operations.start`."""
    if where is not None:
        check_scope(context, where.queue)
    for queue in {JobRef.parse(job).queue for job in jobs or ()}:
        context.check_queue(queue)
    filters = None if where is None else await filter_options(context, where, fields)
    if action == "redrive" and context.identity.is_limited:
        if where is None or where.type is not None:
            await _check_tasks(context, where, jobs or ())
        else:
            filters = {**(filters or {}), ONLY_TASKS: await context.runnable_tasks()}
    by = caller_of(context.identity, context.request).name
    info = await context.rota.operations.start(action, where=filters, jobs=jobs, dry_run=dry_run, by=by, **options)
    if not dry_run:
        target = {"where": operation_json(info)["where"]} if jobs is None else {"jobs": jobs[:MAX_FAILURES_LISTED]}
        request = {**target, **{name: value for name, value in options.items() if value}}
        # The number of matching jobs is known when the operation has ended; it is part of the operation.
        await context.audit(action, f"operation {info.id}", after=request)
    _run_in_background(context.server, info.id)
    return info


async def _check_tasks(context: RequestContext, where: JobFilter | None, jobs: Sequence[str]) -> None:
    """Refuses to redrive jobs of tasks that the caller may not run."""
    if where is None:
        refs = [JobRef.parse(job) for job in jobs]
        found = [one.record for one in await context.server.job_reader.many(refs) if one is not None]
        for task, queue in {(record.task, record.ref.queue) for record in found}:
            await context.runnable_task(task, queue)
    elif where.type is not None:
        await context.runnable_task(where.type, where.queue)


def _run_in_background(server: Server, operation_id: str) -> None:
    """Runs the operation now. If this server stops first, a worker or another server resumes it."""

    async def run() -> None:
        try:
            await server.rota.operations.run(operation_id)
        except StoreError as error:
            logger.warning("operation %s stopped here and will be resumed elsewhere: %s", operation_id, error)

    task = asyncio.create_task(run(), name="rota-operation")
    server.background.add(task)
    task.add_done_callback(server.background.discard)
