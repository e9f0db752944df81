"""Words to complete a filter with: queues, tasks, tags, classes of errors, workers. From samples, never from a walk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from rota.core.job import base_of
from rota.core.terms import read_term
from rota.link import Link


class Suggestions(msgspec.Struct, frozen=True):
    """Words that occur, the most frequent first; by queue where they belong to one."""

    queues: list[str]
    #: Queue -> tasks, tags, declared fields, classes of errors.
    tasks: dict[str, list[str]]
    tags: dict[str, list[str]]
    fields: dict[str, list[str]]
    errors: dict[str, list[str]]
    workers: list[str]
    #: Names of the latest workflows.
    workflows: list[str]


async def read_suggestions(link: Link) -> Suggestions:
    """See `Rota.suggestions`."""
    names = await link.views.queues()
    tasks, found = await link.search.words(names)
    workers = [worker.id for worker in await link.views.workers()]
    flows, _ = await link.flows.page(100, after=None)
    return Suggestions(
        queues=sorted({base_of(name) for name in names}),
        tasks=_by_queue(tasks),
        tags=_by_queue({name: _of_kind(words, "tag") for name, words in found.items()}),
        fields=_by_queue({name: _of_kind(words, "field") for name, words in found.items()}),
        errors=_by_queue({name: _of_kind(words, "error") for name, words in found.items()}),
        workers=workers,
        workflows=sorted({flow.name for flow in flows}),
    )


def _of_kind(words: Iterable[str], kind: str) -> list[str]:
    said = (read_term(word) for word in words)
    return [text for one, text in said if one == kind]


def _by_queue(words: dict[str, list[str]]) -> dict[str, list[str]]:
    """Those of shards together; the most frequent first."""
    counted: dict[str, Counter[str]] = {}
    for name, some in words.items():
        counted.setdefault(base_of(name), Counter()).update(some)
    return {name: [word for word, _ in counter.most_common()] for name, counter in counted.items() if counter}
