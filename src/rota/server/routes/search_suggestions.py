"""Search suggestion endpoint: values for the filters of a job search. Cached for all callers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from fastapi import APIRouter, Response

from rota.server.request_context_and_permissions import Viewer, json_response
from rota.server.schemas.common import QueueName
from rota.server.schemas.search_suggestions import SuggestionsResponse

router = APIRouter(tags=["overview"])


#: Maximum number of suggestions of one kind.
MAX_SUGGESTIONS: Final = 200


@router.get("/api/suggestions", response_model=SuggestionsResponse)
async def suggest(context: Viewer, queue: QueueName | None = None) -> Response:
    """Returns suggestions for filters, of one queue or of all. Cached for 5 seconds."""
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
        "workflows": [] if context.identity.queues else found.workflows,
    }
    return json_response(body)
