"""Finding jobs by what they are: state, task, terms, worker, time. Runs are found in the order of their names.

That order never changes, so that pages stay right while jobs come and go. Nothing walks the keyspace: the narrowest
index brings candidates, the others sift them, and what is left is read. See docs/decisions/0018.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Collection, Sequence
from typing import Any, Final

import msgspec

from rota.core.history import OTHER_SLOT
from rota.core.job import JobRecord, JobRef, decode_run, encode_run
from rota.core.states import JobState
from rota.store.gateway import Gateway
from rota.store.keys import Keys
from rota.store.replies import read_hash
from rota.store.views import Views

#: Candidates that one search looks at before it says how far it came.
CANDIDATES: Final = 30_000
#: A state with no more runs than this is taken as a whole.
SMALL: Final = 20_000
#: Members that one command asks for: what keeps it far below 5 ms.
SLICE: Final = 500
#: Candidates that are sifted at once: few at first, then more and more.
FIRST: Final = 250
WIDEST: Final = 4_000
#: Records that one call reads: what keeps the script below 5 ms.
READ: Final = 50
#: Jobs of a queue that are looked at for words to suggest.
SAMPLE: Final = 200
#: Runs of a chunk share the first seven characters of their names.
CHUNK: Final = 1_024
PREFIX: Final = 7
COLUMNS: Final = 16
_LOW: Final = [encode_run(number)[PREFIX:] for number in range(CHUNK)]
_OFFSET: Final = {low: number for number, low in enumerate(_LOW)}


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What is looked for. Times are of the end where a finished state is asked for, else of the enqueueing."""

    state: JobState | None = None
    task: str | None = None
    terms: tuple[str, ...] = ()
    worker: str | None = None
    since: int | None = None
    until: int | None = None

    @property
    def needs_index(self) -> bool:
        """True when the state's own order does not answer it."""
        has_time = self.since is not None or self.until is not None
        is_finished = self.state is not None and self.state.is_finished
        return bool(self.task is not None or self.terms or self.worker is not None or (has_time and not is_finished))


class Group(msgspec.Struct, frozen=True):
    """Dead letters of a queue that failed in the same way. `message` has # for numbers and … for what was quoted."""

    id: str
    queue: str
    type: str
    message: str
    count: int
    #: When the first of them came, ms.
    since: int
    samples: list[JobRecord] = []


class _Described(msgspec.Struct):
    type: str = "?"
    message: str = ""
    since: int = 0


class Search:
    """Questions about one namespace."""

    def __init__(self, gateway: Gateway, keys: Keys, views: Views) -> None:
        self._gateway = gateway
        self._keys = keys
        self._views = views

    async def find(
        self, queue: str, question: Question, *, after: str, order: str
    ) -> AsyncIterator[tuple[str, JobRecord | None]]:
        """Runs of a queue after the run `after`, with their records, which are yet to be compared with the question.

        A run without a record comes last: it has looked at enough candidates, and got as far as this one.
        """
        looked = 0
        async for runs in self._candidates(queue, question, after, order):
            left = await self._sift(queue, question, runs)
            for start in range(0, len(left), READ):
                refs = [JobRef(queue, "", run) for run in left[start : start + READ]]
                for snapshot in await self._views.read(queue, refs, detail="brief"):
                    if snapshot is not None:
                        assert snapshot.record.ref.run is not None
                        yield snapshot.record.ref.run, snapshot.record
            looked += len(runs)
            if looked >= CANDIDATES:
                yield runs[-1], None
                return

    async def of_task(self, queue: str, task: str, runs: Collection[str]) -> set[str]:
        """Those of the runs that are of a task, as far as they are kept."""
        if not runs:
            return set()
        slot = await self._slot(queue, task)
        chunks = sorted({run[:PREFIX] for run in runs})
        column_of = dict(zip(chunks, await self._columns(queue, chunks), strict=True))
        slots = {run: column_of[run[:PREFIX]][(at := decode_run(run) % CHUNK) : at + 1] for run in runs}
        found = [run for run in runs if slots[run] == bytes([slot])]
        if slot != OTHER_SLOT:
            return set(found)
        refs = [JobRef(queue, "", run) for run in found]
        records = [one.record for one in await self._views.read(queue, refs, detail="brief") if one is not None]
        return {record.ref.run or "" for record in records if record.task == task}

    async def groups(self, queue: str) -> list[Group]:
        """The groups of a queue's dead letters."""
        answer = await self._gateway.command("HGETALL", self._key(queue, "groups"))
        described = {name: msgspec.json.decode(text, type=_Described) for name, text in read_hash(answer).items()}
        counts = await self._gateway.commands(
            [["ZCARD", self._key(queue, "term", f"group={name}")] for name in described]
        )
        return [
            Group(name, queue, one.type, one.message, int(count), one.since)
            for (name, one), count in zip(described.items(), counts, strict=True)
            if count
        ]

    async def with_samples(self, group: Group, samples: int) -> Group:
        """The same with the latest of it."""
        key = self._key(group.queue, "term", f"group={group.id}")
        runs = await self._gateway.command("ZRANGE", key, 0, samples - 1, "REV")
        refs = [JobRef(group.queue, "", run.decode()) for run in runs]
        found = await self._views.read(group.queue, refs, detail="brief")
        return msgspec.structs.replace(group, samples=[one.record for one in found if one is not None])

    async def words(self, queues: Sequence[str]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
        """Queue -> its tasks; and queue -> terms of some of its jobs, as often as they occur among those."""
        commands = [["HKEYS", self._key(queue, "slots")] for queue in queues]
        commands += [["HRANDFIELD", self._key(queue, "terms"), str(SAMPLE), "WITHVALUES"] for queue in queues]
        answers = await self._gateway.commands(commands) if commands else []
        tasks = {
            queue: [task.decode() for task in found if not task.startswith(b" ")]
            for queue, found in zip(queues, answers[: len(queues)], strict=True)
        }
        terms = {
            queue: [word for words in read_hash(found or []).values() for word in words.decode().split()]
            for queue, found in zip(queues, answers[len(queues) :], strict=True)
        }
        return tasks, terms

    # --- candidates --------------------------------------------------------------------------------------------

    async def _candidates(self, queue: str, question: Question, after: str, order: str) -> AsyncIterator[list[str]]:
        is_newest = order == "newest"
        low, high = await self._bounds(queue, question)
        if after:
            low, high = (low, min(high, after)) if is_newest else (max(low, after), high)
        keys = [self._key(queue, "term", term) for term in question.terms]
        if question.state is not None:
            keys.append(self._key(queue, question.state.value))
        sizes = [int(size) for size in await self._gateway.commands([["ZCARD", key] for key in keys])]
        if sizes and 0 in sizes:
            return
        is_state_small = question.state is not None and sizes[-1] <= SMALL
        if is_state_small and sizes[-1] == min(sizes):
            source = self._members(keys[-1])
        elif question.terms:
            narrowest = min(range(len(question.terms)), key=lambda place: sizes[place])
            source = self._of_term(keys[narrowest], low, high, is_newest)
        elif is_state_small:
            source = self._members(keys[-1])
        else:
            source = self._of_column(queue, question.task, low, high, is_newest)
        size = FIRST  # most pages are full after a few
        async for runs in source:
            inside = sorted((run for run in runs if low < run < high), reverse=is_newest)
            start = 0
            while start < len(inside):
                yield inside[start : start + size]
                start, size = start + size, min(2 * size, WIDEST)

    async def _members(self, key: str) -> AsyncIterator[list[str]]:
        """All, slice by slice: a scan misses none that is there all the time, wherever others come and go."""
        cursor, found = b"0", set[bytes]()
        while True:
            cursor, slice_ = await self._gateway.command("ZSCAN", key, cursor, "COUNT", SLICE)
            found.update(slice_[::2])
            if cursor == b"0":
                break
        yield [run.decode() for run in found]

    async def _of_term(self, key: str, low: str, high: str, is_newest: bool) -> AsyncIterator[list[str]]:
        while True:
            ends = (f"({high}", f"({low}", "BYLEX", "REV") if is_newest else (f"({low}", f"({high}", "BYLEX")
            found = await self._gateway.command("ZRANGE", key, *ends, "LIMIT", 0, SLICE)
            runs: list[str] = [run.decode() for run in found]
            if runs:
                yield runs
            if len(runs) < SLICE:
                return
            low, high = (low, runs[-1]) if is_newest else (runs[-1], high)

    async def _of_column(
        self, queue: str, task: str | None, low: str, high: str, is_newest: bool
    ) -> AsyncIterator[list[str]]:
        wanted = await self._pattern(queue, task)
        chunks = [chunk for chunk in await self._chunks(queue) if low[:PREFIX] <= chunk <= high[:PREFIX]]
        if is_newest:
            chunks.reverse()
        for start in range(0, len(chunks), COLUMNS):
            part = chunks[start : start + COLUMNS]
            columns = await self._columns(queue, part)
            runs = [
                chunk + _LOW[match.start()]
                for chunk, column in zip(part, columns, strict=True)
                for match in wanted.finditer(column)
            ]
            if runs:
                yield runs

    async def _pattern(self, queue: str, task: str | None) -> re.Pattern[bytes]:
        """Finds the bytes of a task in a column; those of all tasks where none is asked for."""
        if task is None:
            return re.compile(rb"[^\0]")
        return re.compile(re.escape(bytes([await self._slot(queue, task)])), re.DOTALL)

    async def _slot(self, queue: str, task: str) -> int:
        return int(await self._gateway.command("HGET", self._key(queue, "slots"), task) or OTHER_SLOT)

    async def _chunks(self, queue: str) -> list[str]:
        return sorted(chunk.decode() for chunk in await self._gateway.command("HKEYS", self._key(queue, "chunks")))

    async def _columns(self, queue: str, chunks: Sequence[str]) -> list[bytes]:
        found = await self._gateway.commands([["GET", self._key(queue, "column", chunk)] for chunk in chunks])
        return [column or b"" for column in found]

    # --- time --------------------------------------------------------------------------------------------------

    async def _bounds(self, queue: str, question: Question) -> tuple[str, str]:
        """Runs between which all lie that were enqueued in the time asked for: run by run they only get later.

        That is exact to a chunk; the records tell the rest.
        """
        low, high = "0", "~"
        is_finished = question.state is not None and question.state.is_finished
        if is_finished or (question.since is None and question.until is None):
            return low, high
        chunks = await self._chunks(queue)
        if question.since is not None:
            place = await self._bisect(queue, chunks, question.since)
            low = chunks[place - 1] if place else low
        if question.until is not None:
            place = await self._bisect(queue, chunks, question.until)
            high = chunks[place] if place < len(chunks) else high
        return low, high

    async def _bisect(self, queue: str, chunks: list[str], at: int) -> int:
        """Place of the first chunk all of which was enqueued at that time or later."""
        low, high = 0, len(chunks)
        while low < high:
            middle = (low + high) // 2
            if await self._began(queue, chunks[middle]) < at:
                low = middle + 1
            else:
                high = middle
        return low

    async def _began(self, queue: str, chunk: str) -> int:
        """When the first run of a chunk was enqueued that is still there; 0 when none is."""
        (column,) = await self._columns(queue, [chunk])
        first = re.search(rb"[^\0]", column)
        if first is None:
            return 0
        record = await self._gateway.command("HGET", self._key(queue, "jobs"), chunk + _LOW[first.start()])
        head = (record or b"").partition(b"\n")[0].rpartition(b" ")[2]
        return int(head) if head.isdigit() else 0

    # --- sifting -----------------------------------------------------------------------------------------------

    async def _sift(self, queue: str, question: Question, runs: list[str]) -> list[str]:
        """What the other indexes leave of candidates."""
        if question.state is not None:
            since, until = (question.since, question.until) if question.state.is_finished else (None, None)
            scores = await self._scores(self._key(queue, question.state.value), runs)
            runs = [run for run, score in zip(runs, scores, strict=True) if _is_within(score, since, until)]
        for term in question.terms:
            scores = await self._scores(self._key(queue, "term", term), runs)
            runs = [run for run, score in zip(runs, scores, strict=True) if score is not None]
        if question.task is not None and runs:
            wanted = await self._pattern(queue, question.task)
            chunks = sorted({run[:PREFIX] for run in runs})
            columns = dict(zip(chunks, await self._columns(queue, chunks), strict=True))
            runs = [run for run in runs if wanted.match(columns[run[:PREFIX]], _OFFSET[run[PREFIX:]])]
        if question.worker is not None and runs:
            lines = await self._ask("HMGET", self._key(queue, "runs"), runs)
            worker = question.worker.encode()
            runs = [run for run, line in zip(runs, lines, strict=True) if line and line.split(b" ", 3)[2] == worker]
        return runs

    async def _scores(self, key: str, runs: list[str]) -> list[float | None]:
        return [None if score is None else float(score) for score in await self._ask("ZMSCORE", key, runs)]

    async def _ask(self, command: str, key: str, runs: list[str]) -> list[Any]:
        """What one key says of each run, in one round trip."""
        slices = [runs[start : start + SLICE] for start in range(0, len(runs), SLICE)]
        answers = await self._gateway.commands([[command, key, *some] for some in slices])
        return [one for answer in answers for one in answer]

    def _key(self, queue: str, name: str, part: str = "") -> str:
        return self._keys.queue(queue, name, part)


def _is_within(score: float | None, since: int | None, until: int | None) -> bool:
    return score is not None and (since is None or score >= since) and (until is None or score < until)
