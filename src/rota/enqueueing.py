"""How calls are stored as jobs: what cannot be stored refused first, then layer by layer and queue by queue."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from rota.core.after import in_layers
from rota.errors import InvalidJob
from rota.link import Durability, Link
from rota.store.door import Made
from rota.store.ties import Tied
from rota.tasks import Call


async def store_call(link: Link, call: Call[Any], default: Durability) -> tuple[str, Made]:
    """`store_calls` for one of them, without what only many need: where it was stored, and what became of it."""
    _check_is_whole(call)
    durability = call.durability or default
    if not link.is_ready_for(call.queue, durability):
        await link.make_ready([call.queue], {durability})
    queue = link.choose(call.queue, call.job.id, call.options.lock)
    made = await (_store(link, queue, [call]) if call.parents else link.store.enqueue(queue, [call.job]))
    if durability != "memory":
        await link.make_durable([queue], {durability})
    return queue, made[0]


async def store_calls(link: Link, calls: Sequence[Call[Any]], default: Durability) -> list[tuple[str, Made]]:
    """Stores calls as durably as each asks for: the queue, or shard, of each, and what became of it."""
    for call in calls:
        _check_is_whole(call)
    durability: set[Durability] = {call.durability or default for call in calls}
    await link.make_ready({call.queue: None for call in calls}, durability)
    stored: dict[int, tuple[str, Made]] = {}
    for layer in await _layers(link, calls):
        by_queue: dict[str, list[int]] = {}
        for place in layer:
            call = calls[place]
            by_queue.setdefault(link.choose(call.queue, call.job.id, call.options.lock), []).append(place)
        storing = [_store(link, queue, [calls[place] for place in places]) for queue, places in by_queue.items()]
        for (queue, places), made in zip(by_queue.items(), await asyncio.gather(*storing), strict=True):
            stored |= {place: (queue, one) for place, one in zip(places, made, strict=True)}
        await link.make_durable(by_queue, durability)
    return [stored[place] for place in range(len(calls))]


def _check_is_whole(call: Any) -> None:
    if not isinstance(call, Call):
        raise InvalidJob(f"only calls can be enqueued, as in send.call(...), not {call!r}")
    if call.results:
        raise InvalidJob(f"{call!r} takes the result of a step: it can only be a step of that workflow")


async def _layers(link: Link, calls: Sequence[Call[Any]]) -> list[Sequence[int]]:
    """The places of a batch in the order in which they are stored: all at once, unless some come after others of it."""
    if not any(call.parents for call in calls):
        return [range(len(calls))]
    names = [f"{call.queue}:{call.job.id}" if call.job.id else "" for call in calls]
    needed = [[str(parent.ref) for parent in call.parents] for call in calls]
    layers = in_layers(names, needed)
    if len(layers) > 1:
        # What is unknown is to be refused before anything of the batch is there.
        own = set(names)
        parents = [parent for call in calls for parent in call.parents if str(parent.ref) not in own]
        await link.check_parents(parents)
    return [*layers]


async def _store(link: Link, queue: str, calls: Sequence[Call[Any]]) -> list[Made]:
    """Stores the jobs of one queue: those that come after others take a longer way."""
    tied = {
        place: Tied(call.job, [await link.locate_parent(parent) for parent in call.parents])
        for place, call in enumerate(calls)
        if call.parents
    }
    if not tied:
        return await link.store.enqueue(queue, [call.job for call in calls])
    made = dict(zip(tied, await link.ties.enqueue(queue, list(tied.values())), strict=True))
    plain = [place for place in range(len(calls)) if place not in tied]
    made |= dict(zip(plain, await link.store.enqueue(queue, [calls[place].job for place in plain]), strict=True))
    return [made[place] for place in range(len(calls))]
