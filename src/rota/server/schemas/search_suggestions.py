"""Search suggestions."""

from __future__ import annotations

from rota.server.schemas.common import ResponseBody


class SuggestionsResponse(ResponseBody):
    """Suggestions for filters, most frequent first. Tags and errors are taken from a sample of the jobs."""

    queues: list[str]
    tasks: list[str]
    tags: list[str]
    #: Indexed parameters, for `field=name=value`.
    fields: list[str]
    errors: list[str]
    workers: list[str]
    #: Names of workflows; empty for a token limited to some queues.
    workflows: list[str]
