"""Annotation endpoints: marks on the charts, such as deploys."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response

from rota.core.format_iso_time import iso_time
from rota.server.auth.authentication import caller_of
from rota.server.enqueue_requests import read_time
from rota.server.http.idempotency_key import IdempotentRoute
from rota.server.http.problem_responses import Problem
from rota.server.request_context_and_permissions import Operator, Viewer, json_response
from rota.server.schemas.annotations import AnnotationResponse, AnnotationsResponse, NewAnnotation
from rota.server.schemas.common import MessageResponse, QueueName
from rota.store.annotations import Annotation

router = APIRouter(route_class=IdempotentRoute, tags=["metrics"])

Time = Annotated[str | None, Query(max_length=64)]


@router.get("/api/annotations", response_model=AnnotationsResponse)
async def list_annotations(
    context: Viewer,
    since: Time = None,
    until: Time = None,
    queue: QueueName | None = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
) -> Response:
    """Lists the latest marks of a time range, oldest first: those of a queue, and those of all queues."""
    if queue is not None:
        context.check_queue(queue)
    found = await context.rota.annotations.list(
        since=read_time(since, "since") if since is not None else None,
        until=read_time(until, "until") if until is not None else None,
        limit=limit,
    )
    visible = [
        one for one in found if not one.queue or (queue in (None, one.queue) and context.identity.may_see(one.queue))
    ]
    return json_response({"annotations": [_annotation_json(one) for one in visible]})


@router.post("/api/annotations", status_code=201, response_model=AnnotationResponse)
async def annotate(context: Operator, body: NewAnnotation) -> Response:
    """Marks a moment on the charts: a deploy or a note."""
    if body.queue is not None:
        context.check_queue(body.queue)
    else:
        context.check_unlimited("a mark on the charts of all queues")
    made = await context.rota.annotations.add(
        body.text,
        kind=body.kind,
        at=read_time(body.at, "at") if body.at is not None else None,
        version=body.version,
        queue=body.queue or "",
        by=caller_of(context.identity, context.request).name,
    )
    await context.audit("annotate", f"annotation {made.id}", after={"text": made.text, "version": made.version})
    return json_response({"annotation": _annotation_json(made)}, 201)


@router.delete("/api/annotations/{annotation_id}", response_model=MessageResponse)
async def remove_annotation(
    context: Operator, annotation_id: Annotated[str, Path(max_length=64, description="The id in the list.")]
) -> Response:
    """Deletes a mark."""
    context.check_unlimited("deleting marks")
    if not await context.rota.annotations.remove(annotation_id):
        raise Problem(404, "annotation_not_found", "there is no such mark: GET /api/annotations lists them")
    await context.audit("delete", f"annotation {annotation_id}")
    return json_response({"message": "the mark was deleted"})


def _annotation_json(one: Annotation) -> dict[str, Any]:
    return {
        "id": one.id,
        "at": iso_time(one.at),
        "kind": one.kind,
        "text": one.text,
        "version": one.version or None,
        "queue": one.queue or None,
        "by": one.by or None,
    }
