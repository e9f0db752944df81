"""Search suggestions."""

from __future__ import annotations

from rota.server.schemas.common import ResponseBody


class FieldValue(ResponseBody):
    """Jobs of a queue whose indexed parameter has the text as its value: `field=name=value` finds them."""

    field: str
    value: str
    queue: str
    count: int


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
    #: Of the given text: the most frequent first.
    values: list[FieldValue]
