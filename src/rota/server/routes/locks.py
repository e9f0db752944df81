"""Lock endpoints."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from rota.server import serializers
from rota.server.request_context_and_permissions import Viewer, json_response
from rota.server.schemas.common import QueueName
from rota.server.schemas.locks import LocksResponse
from rota.store.reads import LockInfo

router = APIRouter(tags=["locks"])


@router.get("/api/locks", response_model=LocksResponse)
async def list_locks(
    context: Viewer,
    queue: QueueName | None = None,
    lock: Annotated[str | None, Query(min_length=1, max_length=128, description="Only the lock of this name.")] = None,
    cursor: Annotated[str | None, Query(max_length=200)] = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="Approximate page size.")] = 100,
) -> Response:
    """Lists locks with their holders and waiting jobs."""
    if queue is not None:
        await context.known_queue(queue)
    page = await context.rota.locks(queue=queue, lock=lock or "", cursor=cursor, limit=limit)
    locks: list[LockInfo] = [one for one in page.locks if context.identity.may_see(one.queue)]
    return json_response({"locks": [serializers.lock_json(one) for one in locks], "cursor": page.cursor})
