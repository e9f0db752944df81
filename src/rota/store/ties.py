"""Jobs that come after others, wherever those live: how they are made, and how news of an end reaches them.

One mechanism for all that crosses a slot. A dependent is first written invisibly, then registered with each parent's
slot, then made visible. A parent that ends leaves its news in an outbox, in the script that ends it; whoever comes
first takes it from there, delivers it, and says so. Every step may be repeated, by anybody: whoever dies in between
leaves nothing behind but work for the next.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Final, NamedTuple, TypeVar

from rota.core.after import Parent
from rota.core.job import encode_run, make_suffix
from rota.errors import JobNotFound, StoreUnavailable
from rota.store.gateway import Argument
from rota.store.store import Made, NewJob, Store

T = TypeVar("T")
#: Dependents, or edges, that one call may touch: what keeps a script below 5 ms.
SLICE: Final = 200
#: Dependents that one call may release, cancel or bring back, each of which is a good dozen commands.
MOVED: Final = 50
#: Nobody else delivers for this long what somebody has taken out of an outbox.
HOLD_MS: Final = 2_000
#: How often a dependent is made anew whose id was taken, or which was swept, while it was being tied.
TRIES: Final = 5


class Tied(NamedTuple):
    """A job to be made, and what it comes after."""

    job: NewJob
    parents: Sequence[Parent]


class _Prepared(NamedTuple):
    """A dependent that is written and not yet visible."""

    place: int
    id: str
    run: str
    parents: Sequence[Parent]


class Ties:
    """What can be done about dependents. Shares the store's participant, whose calls it numbers."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._gateway = store.gateway
        self._calls: dict[str, int] = {}
        self._doors: dict[str, asyncio.Lock] = {}

    async def enqueue(self, queue: str, wanted: Sequence[Tied]) -> list[Made]:
        """Makes jobs that come after others. Raises JobNotFound, and leaves nothing, where one of those is unknown."""
        made: dict[int, Made] = {}
        for _ in range(TRIES):
            left = [place for place in range(len(wanted)) if place not in made]
            if not left:
                break
            for part in _slices(left, lambda place: 1 + min(SLICE, len(wanted[place].parents))):
                made |= await self._attempt(queue, {place: wanted[place] for place in part})
        if len(made) < len(wanted):
            raise StoreUnavailable(
                f"dependents could not be tied to their parents in queue {queue}: too slow, try again"
            )
        return [made[place] for place in range(len(wanted))]

    async def post(self, queue: str) -> set[str]:
        """Delivers all news of a queue's runs that nobody else is delivering; the queues of those who were told."""
        told: set[str] = set()
        while taken := await self._take(queue):
            messages: dict[str, list[tuple[Argument, ...]]] = defaultdict(list)
            for news in taken:
                for heir in news.heirs:
                    heir_queue, run, name = heir.split(" ", 2)
                    messages[heir_queue].append((run, name, news.number, news.outcome, news.rule))
            await asyncio.gather(*(self._deliver(heir_queue, of) for heir_queue, of in messages.items()))
            for news in taken:
                await self._gateway.run(
                    "settle", self._store.script_keys("settle", queue), [news.run, news.number, *news.heirs]
                )
            told.update(messages)
        return told

    async def post_all(self, queue: str, *, on_told: Callable[[str], None] | None = None) -> None:
        """The same, and on from queue to queue: whoever is cancelled by the news has dependents too."""
        queues = {queue}
        while queues:
            told: set[str] = set()
            for known in sorted(queues):
                told |= await self.post(known)
            for heirs in told:
                if on_told is not None:
                    on_told(heirs)
            queues = told

    # --- making ------------------------------------------------------------------------------------------------

    async def _attempt(self, queue: str, wanted: dict[int, Tied]) -> dict[int, Made]:
        prepared, held = await self._prepare(queue, wanted)
        try:
            await self._register(queue, prepared)
            # Only now: a refusal leaves everything as it was.
            made = await self._in_place_of(queue, {place: wanted[place] for place in held})
        except BaseException:
            await asyncio.shield(self._abandon(queue, prepared))
            raise
        runs = [one.run for one in prepared]
        outcomes: list[str] = []
        for start in range(0, len(runs), MOVED):
            outcomes += await self._store.commit(queue, runs[start : start + MOVED])
        for one, outcome in zip(prepared, outcomes, strict=True):
            if outcome == "visible":
                made[one.place] = Made(one.id, one.run)
        return made

    async def _prepare(self, queue: str, wanted: dict[int, Tied]) -> tuple[list[_Prepared], list[int]]:
        """Writes them invisibly; and the places of those whose id has an unfinished run."""
        suffixes = [make_suffix(secrets.randbits(40)) for _ in wanted]
        words: list[Argument] = []
        for (job, parents), suffix in zip(wanted.values(), suffixes, strict=True):
            names = " ".join(map(str, parents[:SLICE]))
            words += (job.id, suffix, job.priority, job.due, job.expiry, job.body, names)
        async with self._numbered(queue) as number:
            answer = await self._gateway.run("prepare", self._store.script_keys("prepare", queue), [number, *words])
        first = int(answer[0])
        held = {int(place) for place in answer[1:]}
        prepared: list[_Prepared] = []
        for at, (place, (job, parents)) in enumerate(wanted.items()):
            if at not in held:
                run = encode_run(first + len(prepared) + 1)
                prepared.append(_Prepared(place, job.id or f"{run}-{suffixes[at]}", run, parents))
        for one in prepared:
            for start in range(SLICE, len(one.parents), SLICE):
                names = " ".join(map(str, one.parents[start : start + SLICE]))
                await self._gateway.run("tie_more", self._store.script_keys("tie_more", queue), [one.run, names])
        return prepared, [place for at, place in enumerate(wanted) if at in held]

    async def _in_place_of(self, queue: str, held: dict[int, Tied]) -> dict[int, Made]:
        """Their ids have unfinished runs, and what becomes of those is for `enqueue` to say."""
        found = await self._store.enqueue(queue, [tied.job for tied in held.values()])
        return {place: made for place, made in zip(held, found, strict=True) if made.outcome != "untied"}

    async def _register(self, queue: str, prepared: Sequence[_Prepared]) -> None:
        edges = [(one, parent) for one in prepared for parent in one.parents]
        by_queue: dict[str, list[tuple[_Prepared, Parent]]] = defaultdict(list)
        for one, parent in edges:
            by_queue[parent.ref.queue].append((one, parent))
        news: list[tuple[Argument, ...]] = []
        for parent_queue, of_queue in by_queue.items():
            keys = self._store.script_keys("register", parent_queue)
            for start in range(0, len(of_queue), SLICE):
                part = of_queue[start : start + SLICE]
                answer = await self._gateway.run("register", keys, _edge_words(queue, part))
                for (one, parent), stands in zip(part, answer, strict=True):
                    if stands == b"missing" and parent.if_gone == "refused":
                        raise JobNotFound(parent.name)
                    state, number, rule = ("completed 0 " if stands == b"missing" else stands.decode()).split(" ")
                    if state != "waiting":
                        news.append((one.run, parent.name, number, state, rule))
        await self._deliver(queue, news)

    async def _abandon(self, queue: str, prepared: Sequence[_Prepared]) -> None:
        edges = [(one, parent) for one in prepared for parent in one.parents]
        for start in range(0, len(edges), SLICE):
            by_queue: dict[str, list[tuple[_Prepared, Parent]]] = defaultdict(list)
            for edge in edges[start : start + SLICE]:
                by_queue[edge[1].ref.queue].append(edge)
            for parent_queue, part in by_queue.items():
                keys = self._store.script_keys("unregister", parent_queue)
                await self._gateway.run("unregister", keys, _edge_words(queue, part))
        runs = [one.run for one in prepared]
        for start in range(0, len(runs), SLICE):
            await self._gateway.run("abort", self._store.script_keys("abort", queue), runs[start : start + SLICE])

    @asynccontextmanager
    async def _numbered(self, queue: str) -> AsyncGenerator[int]:
        """One call of a kind is under way at a time: that is what lets the server recognise one that is sent again."""
        async with self._doors.setdefault(queue, asyncio.Lock()):
            self._calls[queue] = self._calls.get(queue, 0) + 1
            yield self._calls[queue]

    # --- news --------------------------------------------------------------------------------------------------

    async def _take(self, queue: str) -> list[_News]:
        keys = self._store.script_keys("take", queue)
        answer: list[bytes] = await self._gateway.run("take", keys, [SLICE, HOLD_MS])
        texts = [word.decode() for word in answer]
        return [
            _News(*texts[at : at + 4], texts[at + 4].split("\n"))  # type: ignore[arg-type]  # four texts and a list
            for at in range(0, len(texts), 5)
        ]

    async def _deliver(self, queue: str, messages: Sequence[tuple[Argument, ...]]) -> None:
        keys = self._store.script_keys("deliver", queue)
        for start in range(0, len(messages), MOVED):
            words = [word for message in messages[start : start + MOVED] for word in message]
            await self._gateway.run("deliver", keys, [queue, self._store.keys.inbox_prefix, *words])


class _News(NamedTuple):
    """What has become of a parent, for some of its dependents."""

    run: str
    number: str
    outcome: str
    rule: str
    heirs: list[str]


def _edge_words(queue: str, edges: Sequence[tuple[_Prepared, Parent]]) -> list[Argument]:
    words: list[Argument] = []
    for one, parent in edges:
        words += (parent.ref.id, parent.ref.run or "", f"{queue} {one.run} {parent.name}")
    return words


def _slices(items: Sequence[T], weight_of: Callable[[T], int]) -> Iterator[list[T]]:
    part: list[T] = []
    weight = 0
    for item in items:
        if part and weight + weight_of(item) > SLICE:
            yield part
            part, weight = [], 0
        part.append(item)
        weight += weight_of(item)
    if part:
        yield part
