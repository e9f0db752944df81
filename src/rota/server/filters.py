"""Which jobs are meant: the filters that a list, and whatever is done to all that match, have in common."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, TypedDict

import msgspec
from fastapi import Query

from rota.errors import InvalidOption
from rota.server.enqueueing import read_time
from rota.server.schemas.base import QueueName, State
from rota.server.visits import Visit


class Found(TypedDict, total=False):
    """As `Rota.jobs` takes them."""

    state: str | None
    queue: str | None
    task: str | None
    tag: str | None
    fields: dict[str, Any]
    worker: str | None
    error: str | None
    group: str | None
    since: datetime | None
    until: datetime | None
    text: str | None


async def found(
    state: Annotated[State | None, Query(description="Only jobs in this state.")] = None,
    queue: QueueName | None = None,
    type: Annotated[str | None, Query(max_length=200, description="Only jobs of this task.")] = None,
    tag: Annotated[str | None, Query(max_length=64)] = None,
    field: Annotated[
        list[str] | None,
        Query(max_length=10, description="name=value, of a parameter that the task declared as an index."),
    ] = None,
    worker: Annotated[str | None, Query(max_length=200, description="Only jobs that this worker has or had.")] = None,
    error: Annotated[str | None, Query(max_length=200, description="Only jobs with an error of this class.")] = None,
    group: Annotated[str | None, Query(max_length=200, description="Only dead letters of this group.")] = None,
    since: Annotated[str | None, Query(max_length=64, description="Enqueued, or ended, at this time or later.")] = None,
    until: Annotated[str | None, Query(max_length=64, description="Enqueued, or ended, before this time.")] = None,
    text: Annotated[str | None, Query(max_length=200, description="Only jobs that mention it.")] = None,
) -> Found:
    """The filters of a query."""
    return Found(
        state=state.lower() if state else None,
        queue=queue,
        task=type,
        tag=tag,
        fields=dict(map(_field, field or ())),
        worker=worker,
        error=error,
        group=group,
        since=read_time(since, "since") if since is not None else None,
        until=read_time(until, "until") if until is not None else None,
        text=text,
    )


def check_scope(visit: Visit, wanted: Found) -> None:
    """Refuses a queue that the caller may not see. One that is limited to some queues has to name one."""
    queue = wanted.get("queue")
    if queue is not None:
        visit.check_queue(queue)
    elif visit.identity.queues:
        raise InvalidOption("queue", f"this token is limited to {', '.join(visit.identity.queues)}: say which")


def _field(text: str) -> tuple[str, Any]:
    name, sign, value = text.partition("=")
    if not sign or not name or len(text) > 500:
        raise InvalidOption("field", f"{text[:100]!r} is not name=value")
    try:
        return name, msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return name, value  # a text that looks like no other value
