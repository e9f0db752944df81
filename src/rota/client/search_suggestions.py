"""Search suggestions: queues, tasks, tags, error classes and workers that a filter may name.

Read from samples, never from a full scan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from rota.client.session import Session
from rota.core.job_index_terms import parse_term
from rota.core.shards import base_of


class SearchSuggestions(msgspec.Struct, frozen=True):
    """Values that occur, the most frequent first; by queue where they belong to one."""

    queues: list[str]
    #: Queue -> tasks, tags, declared fields, error classes.
    tasks: dict[str, list[str]]
    tags: dict[str, list[str]]
    fields: dict[str, list[str]]
    errors: dict[str, list[str]]
    workers: list[str]
    #: Names of the latest workflows.
    workflows: list[str]


async def read_suggestions(session: Session) -> SearchSuggestions:
    """See `Rota.suggestions`."""
    names = await session.views.queues()
    tasks, found = await session.search.suggestions(names)
    workers = [worker.id for worker in await session.views.workers()]
    workflows, _ = await session.workflows.page(100, after=None)
    return SearchSuggestions(
        queues=sorted({base_of(name) for name in names}),
        tasks=_by_queue(tasks),
        tags=_by_queue({name: _of_kind(words, "tag") for name, words in found.items()}),
        fields=_by_queue({name: _of_kind(words, "field") for name, words in found.items()}),
        errors=_by_queue({name: _of_kind(words, "error") for name, words in found.items()}),
        workers=workers,
        workflows=sorted({workflow.name for workflow in workflows}),
    )


def _of_kind(words: Iterable[str], kind: str) -> list[str]:
    terms = (parse_term(word) for word in words)
    return [value for found, value in terms if found == kind]


def _by_queue(words: dict[str, list[str]]) -> dict[str, list[str]]:
    """Merges the shards of each queue; the most frequent values first."""
    counted: dict[str, Counter[str]] = {}
    for name, some in words.items():
        counted.setdefault(base_of(name), Counter()).update(some)
    return {name: [word for word, _ in counter.most_common()] for name, counter in counted.items() if counter}
