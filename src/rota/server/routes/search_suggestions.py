"""Search suggestion endpoint: values for the filters of a job search. Cached for all callers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Response

from rota.client.session import checked_session
from rota.core.shards import base_of
from rota.server.request_context_and_permissions import RequestContext, Viewer, json_response
from rota.server.schemas.common import QueueName
from rota.server.schemas.search_suggestions import SuggestionsResponse

router = APIRouter(tags=["overview"])


#: Maximum number of suggestions of one kind.
MAX_SUGGESTIONS: Final = 200
#: Queues, and indexed parameters of each, in which a value is looked up.
MAX_QUEUES: Final = 100
MAX_FIELDS: Final = 20


@router.get("/api/suggestions", response_model=SuggestionsResponse)
async def suggest(
    context: Viewer,
    queue: QueueName | None = None,
    text: Annotated[str | None, Query(min_length=1, max_length=200, description="A value to look up.")] = None,
) -> Response:
    """Returns suggestions for filters, of one queue or of all. Cached for 5 seconds.

    `text` is looked up as the value of the indexed parameters that a sample of the jobs has.
    """
    if queue is not None:
        context.check_queue(queue)
    found = await context.server.suggestions.get()
    queues = context.visible(found.queues)
    chosen = queues if queue is None else [queue]

    def words(by_queue: Mapping[str, Sequence[str]]) -> list[str]:
        return list(dict.fromkeys(word for name in chosen for word in by_queue.get(name, ())))[:MAX_SUGGESTIONS]

    announced = [task.task.name for task in await context.server.catalog.all() if task.task.queue in chosen]
    workers = [worker for worker in (await context.server.overview.get()).workers if context.concerns(worker)]
    body = {
        "queues": queues,
        "tasks": list(dict.fromkeys([*words(found.tasks), *announced]))[:MAX_SUGGESTIONS],
        "tags": words(found.tags),
        "fields": words(found.fields),
        "errors": words(found.errors),
        "workers": [worker.id for worker in workers][:MAX_SUGGESTIONS],
        "values": await _values(context, {name: found.fields.get(name, []) for name in chosen}, text),
        "workflows": [] if context.identity.queues else found.workflows,
    }
    return json_response(body)


async def _values(
    context: RequestContext, fields: Mapping[str, Sequence[str]], text: str | None
) -> list[dict[str, Any]]:
    """Returns the indexed parameters that have the text as a value, but for masked ones."""
    if text is None:
        return []
    session = await checked_session(context.rota)
    wanted = {
        name: [field for field in list(of_queue)[:MAX_FIELDS] if not context.server.mask.hides(field)]
        for queue, of_queue in list(fields.items())[:MAX_QUEUES]
        for name in await session.shards.names_of(queue)
    }
    counts: Counter[tuple[str, str]] = Counter()
    for (name, field), count in (await session.search.count_field_values(wanted, text)).items():
        counts[base_of(name), field] += count
    return [
        {"field": field, "value": text, "queue": queue, "count": count}
        for (queue, field), count in counts.most_common(MAX_SUGGESTIONS)
    ]
