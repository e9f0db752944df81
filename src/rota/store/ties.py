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
from rota.store.door import Made, NewJob
from rota.store.gateway import Argument, Call
from rota.store.scripts import script
from rota.store.store import Store

T = TypeVar("T")
#: Dependents, or edges, that one call may touch: what keeps a script below 5 ms.
SLICE: Final = 200
#: The same for dependents that are made visible.
COMMITS: Final = 50
#: What news weighs, of which a call may carry a slice: cancelling a dependent costs the server as much as five edges.
FAILURE_WEIGHT: Final = 5
FLOW_WEIGHT: Final = 2
RESULT_WEIGHT_BYTES: Final = 5_000
#: Nobody else delivers for this long what somebody has taken out of an outbox.
HOLD_MS: Final = 2_000
#: Where workflows live: the slot of all keys that belong to no queue.
FLOWS: Final = "~"
#: How often a dependent is made anew whose id was taken, or which was swept, while it was being tied.
TRIES: Final = 5


class Tied(NamedTuple):
    """A job to be made, and what it comes after."""

    job: NewJob
    parents: Sequence[Parent]

    @property
    def token(self) -> str:
        """By which it is made once; "" for one that may be made again."""
        return self.job.flags.partition("!")[2]


class Edge(NamedTuple):
    """A dependent, and one that it comes after. The dependent may be a workflow: then `run` is its id."""

    queue: str
    run: str
    parent: Parent
    #: What the dependent calls the parent, if not by its id.
    alias: str = ""

    @property
    def name(self) -> str:
        """What the dependent calls the parent."""
        return self.alias or self.parent.name


class Message(NamedTuple):
    """One piece of news for one dependent."""

    run: str
    name: str
    number: str
    outcome: str
    rule: str
    result: bytes
    attempts: str


class Prepared(NamedTuple):
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
            for part in slices(left, lambda place: 1 + min(SLICE, len(wanted[place].parents))):
                made |= await self._attempt(queue, {place: wanted[place] for place in part})
        if len(made) < len(wanted):
            raise StoreUnavailable(
                f"dependents could not be tied to their parents in queue {queue}: too slow, try again"
            )
        return [made[place] for place in range(len(wanted))]

    async def enqueue_once(self, queue: str, tied: Tied) -> Made:
        """One whose id is used once, for a workflow: if it was made before it is left as it is, also when it ended."""
        for _ in range(TRIES):
            prepared, held = await self.prepare(queue, {0: tied}, kind="step")
            if not held:
                (one,) = prepared
                await self.register([Edge(queue, one.run, parent) for parent in one.parents])
                if await self.commit(queue, [one.run]) == ["visible"]:
                    return Made(one.id, one.run)
            run = await self._gateway.command("HGET", self._store.keys.queue(queue, "ids"), tied.job.id)
            if run is not None:
                return Made(tied.job.id, run.decode())
        raise StoreUnavailable(f"job {queue}:{tied.job.id} could not be tied to its parents: too slow, try again")

    async def post(self, queue: str, *, whose: str = "free") -> set[str]:
        """Delivers news of a queue's runs; the queues of those who were told.

        Only what nobody else is delivering, or "all" of it, for who must know that it has been heard.
        """
        told: set[str] = set()
        while taken := await self._take(queue, whose):
            messages: dict[str, list[Message]] = defaultdict(list)
            for news in taken:
                for heir in news.heirs:
                    heir_queue, run, name = heir.split(" ", 2)
                    result = news.result if name.endswith("=") else b""
                    messages[heir_queue].append(
                        Message(
                            run, name.removesuffix("="), news.number, news.outcome, news.rule, result, news.attempts
                        )
                    )
            await asyncio.gather(*(self.pass_on(heir_queue, of) for heir_queue, of in messages.items()))
            keys = self._store.script_keys("settle", queue)
            await self._gateway.run_many([Call("settle", keys, [news.run, news.number, *news.heirs]) for news in taken])
            told.update(messages)
        return told

    async def post_all(self, queue: str, *, whose: str = "free", on_told: Callable[[str], None] | None = None) -> None:
        """The same, and on from queue to queue: whoever is cancelled by the news has dependents too."""
        queues = {queue}
        while queues:
            told: set[str] = set()
            for known in sorted(queues):
                told |= await self.post(known, whose=whose)
            for heirs in told:
                if on_told is not None:
                    on_told(heirs)
            queues = told - {FLOWS}

    # --- making ------------------------------------------------------------------------------------------------

    async def _attempt(self, queue: str, asked: dict[int, Tied]) -> dict[int, Made]:
        before = await self._made_before(queue, asked)
        wanted = {place: tied for place, tied in asked.items() if place not in before}
        if not wanted:
            return before
        prepared, held = await self.prepare(queue, wanted)
        edges = [Edge(queue, one.run, parent) for one in prepared for parent in one.parents]
        try:
            await self.register(edges)
            # Only now: a refusal leaves everything as it was.
            made = await self._in_place_of(queue, {place: wanted[place] for place in held})
        except BaseException:
            await asyncio.shield(self.abandon(queue, [one.run for one in prepared], edges))
            raise
        tokens = [wanted[one.place].token for one in prepared]
        runs = [f"{one.run}!{token}" if token else one.run for one, token in zip(prepared, tokens, strict=True)]
        outcomes = await self.commit(queue, runs)
        for one, outcome in zip(prepared, outcomes, strict=True):
            if outcome == "visible":
                made[one.place] = Made(one.id, one.run)
        return made | before

    async def _made_before(self, queue: str, asked: dict[int, Tied]) -> dict[int, Made]:
        """Those that are to be made once, and were, whatever has become of them."""
        places = [place for place, tied in asked.items() if tied.token]
        keys = [self._store.keys.queue(queue, "firsts", asked[place].token) for place in places]
        runs = await self._gateway.commands([["GET", key] for key in keys]) if keys else []
        return {
            place: Made(asked[place].job.id, run.decode(), "again")
            for place, run in zip(places, runs, strict=True)
            if run is not None
        }

    async def prepare(
        self, queue: str, wanted: dict[int, Tied], *, kind: str = "job", patience_ms: int = 0
    ) -> tuple[list[Prepared], list[int]]:
        """Writes jobs invisibly; and the places of those whose id has an unfinished run."""
        suffixes = [make_suffix(secrets.randbits(40)) for _ in wanted]
        words: list[Argument] = []
        for (job, parents), suffix in zip(wanted.values(), suffixes, strict=True):
            names = " ".join(parent.tie for parent in parents[:SLICE])
            words += (job.id, suffix, job.priority, job.due, job.expiry, job.body, names)
        async with self._numbered(queue) as number:
            head: list[Argument] = [number, patience_ms, kind]
            answer = await self._gateway.run("prepare", self._store.script_keys("prepare", queue), [*head, *words])
        first = int(answer[0])
        held = {int(place) for place in answer[1:]}
        prepared: list[Prepared] = []
        for at, (place, (job, parents)) in enumerate(wanted.items()):
            if at not in held:
                run = encode_run(first + len(prepared) + 1)
                prepared.append(Prepared(place, job.id or f"{run}-{suffixes[at]}", run, parents))
        for one in prepared:
            for start in range(SLICE, len(one.parents), SLICE):
                names = " ".join(parent.tie for parent in one.parents[start : start + SLICE])
                await self._gateway.run("tie_more", self._store.script_keys("tie_more", queue), [one.run, names])
        return prepared, [place for at, place in enumerate(wanted) if at in held]

    async def register(self, edges: Sequence[Edge]) -> None:
        """Ties dependents to their parents; what has ended already is told to them. Raises JobNotFound."""
        by_queue: dict[str, list[Edge]] = defaultdict(list)
        for edge in edges:
            by_queue[edge.parent.ref.queue].append(edge)
        messages: dict[str, list[Message]] = defaultdict(list)
        for parent_queue, of_queue in by_queue.items():
            keys = self._store.script_keys("register", parent_queue)
            for start in range(0, len(of_queue), SLICE):
                part = of_queue[start : start + SLICE]
                answer = await self._gateway.run("register", keys, _edge_words(part))
                for edge, stands in zip(part, answer, strict=True):
                    found = stands
                    if stands == b"missing":
                        if edge.parent.if_gone == "refused" and edge.queue != FLOWS:
                            raise JobNotFound(edge.parent.name)
                        found = b"deleted 0  " if edge.queue == FLOWS else b"completed 0  "
                    state, number, rule, result = found.split(b" ", 3)
                    if state != b"waiting":
                        words = (number.decode(), state.decode(), rule.decode(), result, "1")
                        messages[edge.queue].append(Message(edge.run, edge.name, *words))
        for queue, told in messages.items():
            await self.pass_on(queue, told)

    async def commit(self, queue: str, runs: Sequence[str]) -> list[str]:
        """Makes prepared runs visible: "visible", "missing" (swept) or "in_use" (its id was taken) for each."""
        outcomes: list[str] = []
        for start in range(0, len(runs), COMMITS):
            outcomes += await self._store.commit(queue, runs[start : start + COMMITS])
        return outcomes

    async def abandon(self, queue: str, runs: Sequence[str], edges: Sequence[Edge]) -> None:
        """Takes back what was prepared and registered: nothing of it is left."""
        for start in range(0, len(edges), SLICE):
            by_queue: dict[str, list[Edge]] = defaultdict(list)
            for edge in edges[start : start + SLICE]:
                by_queue[edge.parent.ref.queue].append(edge)
            for parent_queue, part in by_queue.items():
                keys = self._store.script_keys("unregister", parent_queue)
                await self._gateway.run("unregister", keys, _edge_words(part))
        for start in range(0, len(runs), SLICE):
            await self._gateway.run("abort", self._store.script_keys("abort", queue), runs[start : start + SLICE])

    async def _in_place_of(self, queue: str, held: dict[int, Tied]) -> dict[int, Made]:
        """Their ids have unfinished runs, and what becomes of those is for `enqueue` to say."""
        found = await self._store.enqueue(queue, [tied.job for tied in held.values()])
        return {place: made for place, made in zip(held, found, strict=True) if made.outcome != "untied"}

    @asynccontextmanager
    async def _numbered(self, queue: str) -> AsyncGenerator[int]:
        """One call of a kind is under way at a time: that is what lets the server recognise one that is sent again."""
        async with self._doors.setdefault(queue, asyncio.Lock()):
            self._calls[queue] = self._calls.get(queue, 0) + 1
            yield self._calls[queue]

    # --- news --------------------------------------------------------------------------------------------------

    async def deliver(self, queue: str, messages: Sequence[Message]) -> None:
        """Tells dependents of one queue."""
        keys = self._store.script_keys("deliver", queue)
        for part in slices(messages, _weight_of_message):
            words: list[Argument] = [queue, self._store.keys.inbox_prefix]
            for message in part:
                words += message[:6]
            await self._gateway.run("deliver", keys, words)

    async def pass_on(self, queue: str, messages: Sequence[Message]) -> None:
        """Tells runs of a queue, or workflows."""
        if queue != FLOWS:
            await self.deliver(queue, messages)
            return
        keys = [self._store.keys.shared(key) for key in script("advance").keys]
        for part in slices(messages, _weight_for_flows):
            words: list[Argument] = [self._store.keys.inbox_prefix]
            for flow, name, number, outcome, _rule, result, attempts in part:
                words += (flow, name, number, outcome, attempts, result)
            await self._gateway.run("advance", keys, words)

    async def _take(self, queue: str, whose: str) -> list[_News]:
        keys = self._store.script_keys("take", queue)
        answer: list[bytes] = await self._gateway.run("take", keys, [SLICE, HOLD_MS, whose])
        taken: list[_News] = []
        for at in range(0, len(answer), 7):
            run, number, outcome, attempts, rule = (word.decode() for word in answer[at : at + 5])
            heirs = answer[at + 6].decode().split("\n")
            taken.append(_News(run, number, outcome, attempts, rule, answer[at + 5], heirs))
        return taken


class _News(NamedTuple):
    """What has become of a parent, for some of its dependents."""

    run: str
    number: str
    outcome: str
    attempts: str
    rule: str
    result: bytes
    heirs: list[str]


def _edge_words(edges: Sequence[Edge]) -> list[Argument]:
    words: list[Argument] = []
    for edge in edges:
        wants = "=" if edge.parent.token else ""
        words += (edge.parent.ref.id, edge.parent.ref.run or "", f"{edge.queue} {edge.run} {edge.name}{wants}")
    return words


def _weight_of_message(message: Message) -> int:
    """What a piece of news costs the server: a failure, or a large result, as much as many others."""
    kind = 1 if message.outcome == "completed" else FAILURE_WEIGHT
    return kind + len(message.result) // RESULT_WEIGHT_BYTES


def _weight_for_flows(message: Message) -> int:
    return FLOW_WEIGHT + len(message.result) // RESULT_WEIGHT_BYTES


def slices(items: Sequence[T], weight_of: Callable[[T], int]) -> Iterator[list[T]]:
    """Parts that one call may carry, by what each item weighs."""
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
