"""The filters of job lists and bulk operations: from the request to the arguments of `Rota.jobs`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from rota.client.bulk_operations import MASKED
from rota.client.job_listing import Filters, MaskedText, stored_text
from rota.errors import InvalidOption
from rota.server.enqueue_requests import read_time
from rota.server.request_context_and_permissions import RequestContext
from rota.server.schemas.jobs import JobFilter


async def filter_options(
    context: RequestContext, chosen: JobFilter, fields: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Returns the filters as a bulk operation takes them. `fields` are values of indexed parameters.

    A search must not find what its caller may not read: values of masked fields are neither searched nor compared.
    """
    mask = context.server.mask
    for name in filter(mask.hides, fields or ()):
        raise InvalidOption("fields", f"the values of {name} are masked: jobs cannot be selected by them")
    options: dict[str, Any] = {
        "state": chosen.state.lower() if chosen.state else None,
        "queue": chosen.queue,
        "task": chosen.type,
        "tag": chosen.tag,
        "fields": dict(fields or {}),
        "worker": chosen.worker,
        "error": chosen.error,
        "group": chosen.group,
        "since": read_time(chosen.since, "since") if chosen.since is not None else None,
        "until": read_time(chosen.until, "until") if chosen.until is not None else None,
        "text": chosen.text,
    }
    if chosen.text is not None:
        positional = {known.task.name: known.positional for known in await context.server.catalog.all()}
        options[MASKED] = MaskedText(mask.names, positional).to_json()
    return options


async def job_filters(context: RequestContext, chosen: JobFilter, fields: Mapping[str, Any] | None = None) -> Filters:
    """Returns the filters of a listing, besides its state and queue."""
    options = await filter_options(context, chosen, fields)
    del options["state"], options["queue"]
    masked = options.pop(MASKED, None)
    return Filters.of(**options, text_of=MaskedText(**masked) if masked is not None else stored_text)


def parse_fields(texts: Sequence[str]) -> dict[str, Any]:
    """Parses `name=value` texts. A value that is not JSON is a string. Raises InvalidOption."""
    return dict(map(_parse_field, texts))


def check_scope(context: RequestContext, queue: str | None) -> None:
    """Refuses a queue outside the token's scope. A token limited to some queues has to name one of them."""
    if queue is not None:
        context.check_queue(queue)
    elif context.identity.queues:
        allowed = ", ".join(context.identity.queues)
        raise InvalidOption("queue", f"this token is limited to {allowed}: name one of these queues")


def _parse_field(text: str) -> tuple[str, Any]:
    name, sign, value = text.partition("=")
    if not sign or not name or len(text) > 500:
        raise InvalidOption("field", f"{text[:100]!r} is not name=value")
    try:
        return name, msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return name, value
