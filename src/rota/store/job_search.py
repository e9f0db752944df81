"""Finds jobs by state, task, search terms, worker and time, in the order of their run names.

That order never changes, so that pages stay correct while jobs come and go. No search scans the keyspace: the narrowest
index yields candidates, the other indexes filter them, and the records of the rest are read. See docs/decisions/0018.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping, Sequence
from typing import Any, Final

import msgspec

from rota.core.ids import JobRef, encode_run
from rota.core.job_index_terms import field_term
from rota.core.job_record import JobRecord
from rota.core.metric_series import OTHER_TASK_NUMBER
from rota.core.state_transitions import JobState
from rota.store.keys import Keys
from rota.store.reads import Views
from rota.store.redis.hash_and_time_replies import read_hash
from rota.store.redis.retrying_client import RedisClient

#: Candidates that one search examines before it stops and returns its position.
MAX_CANDIDATES: Final = 30_000
#: A state with at most this many runs is read as a whole.
SMALL_STATE: Final = 20_000
#: Members that one command reads: keeps it far below 5 ms.
SLICE: Final = 500
#: Candidates that are filtered at once: the first batch, doubled up to the largest.
FIRST_BATCH: Final = 250
MAX_BATCH: Final = 4_000
#: Records that one call reads: keeps the script below 5 ms.
READ_BATCH: Final = 50
#: Jobs of a queue whose terms are sampled for suggestions.
SAMPLE: Final = 200
#: The task index stores the runs of one chunk together: they share the first seven characters of their names.
CHUNK: Final = 1_024
PREFIX: Final = 7
#: Chunks of the task index that are read at once: at first, doubled up to the largest.
FIRST_CHUNKS: Final = 2
CHUNK_BATCH: Final = 16
_LOW: Final = [encode_run(number)[PREFIX:] for number in range(CHUNK)]
_OFFSET: Final = {low: number for number, low in enumerate(_LOW)}


class SearchQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The filters of a search. Times are end times for a finished state, else enqueue times."""

    state: JobState | None = None
    task: str | None = None
    terms: tuple[str, ...] = ()
    worker: str | None = None
    since: int | None = None
    until: int | None = None

    @property
    def needs_index(self) -> bool:
        """True when the index of the state alone cannot answer the query."""
        has_time = self.since is not None or self.until is not None
        is_finished = self.state is not None and self.state.is_finished
        return bool(self.task is not None or self.terms or self.worker is not None or (has_time and not is_finished))


class DeadLetterGroup(msgspec.Struct, frozen=True):
    """Dead letters of a queue with the same error. `message` has # for numbers and … for quoted text."""

    id: str
    queue: str
    type: str
    message: str
    count: int
    #: When the first of them failed, ms.
    since: int
    samples: list[JobRecord] = []


class _GroupRecord(msgspec.Struct):
    type: str = "?"
    message: str = ""
    since: int = 0


class Search:
    """Searches the jobs of one namespace."""

    def __init__(self, redis: RedisClient, keys: Keys, views: Views) -> None:
        self._redis = redis
        self._keys = keys
        self._views = views

    async def find(
        self,
        queue: str,
        query: SearchQuery,
        *,
        after: str,
        order: str,
        batch: int = READ_BATCH,
        max_arguments: int | None = None,
    ) -> AsyncGenerator[tuple[str, JobRecord | None]]:
        """Yields runs of a queue after the run `after`, with their records, which the caller still has to compare.

        Reads `batch` records at first. If the search stops after `MAX_CANDIDATES`, the last item is the run it
        reached, without a record.
        """
        examined = 0
        size = min(batch, READ_BATCH)
        async for runs in self._candidates(queue, query, after, order):
            left = await self._filter(queue, query, runs)
            while left:
                refs = [JobRef(queue, "", run) for run in left[:size]]
                found = await self._views.read_first_runs(queue, refs, detail="brief", max_arguments=max_arguments)
                left, size = left[len(found) :], min(2 * size, READ_BATCH)
                for snapshot in found:
                    if snapshot is not None:
                        assert snapshot.record.ref.run is not None
                        yield snapshot.record.ref.run, snapshot.record
            examined += len(runs)
            if examined >= MAX_CANDIDATES:
                yield runs[-1], None
                return

    async def filter_by_task(self, queue: str, task: str, runs: Collection[str]) -> set[str]:
        """The runs among `runs` that are of a task and are still stored."""
        if not runs:
            return set()
        number = await self._task_number(queue, task)
        found = await self._with_task(queue, number, runs)
        if number != OTHER_TASK_NUMBER:
            return set(found)
        refs = [JobRef(queue, "", run) for run in found]
        snapshots = await self._views.read_runs(queue, refs, detail="brief", max_arguments=0)
        records = [one.record for one in snapshots if one is not None]
        return {record.ref.run or "" for record in records if record.task == task}

    async def groups(self, queue: str) -> list[DeadLetterGroup]:
        """The groups of dead letters of a queue."""
        answer = await self._redis.command("HGETALL", self._key(queue, "error_groups"))
        records = {name: msgspec.json.decode(text, type=_GroupRecord) for name, text in read_hash(answer).items()}
        counts = await self._redis.commands([["ZCARD", self._key(queue, "term", f"group={name}")] for name in records])
        return [
            DeadLetterGroup(name, queue, one.type, one.message, int(count), one.since)
            for (name, one), count in zip(records.items(), counts, strict=True)
            if count
        ]

    async def with_samples(
        self, group: DeadLetterGroup, samples: int, *, max_arguments: int | None = None
    ) -> DeadLetterGroup:
        """The group with its latest `samples` dead letters."""
        key = self._key(group.queue, "term", f"group={group.id}")
        runs = await self._redis.command("ZRANGE", key, 0, samples - 1, "REV")
        refs = [JobRef(group.queue, "", run.decode()) for run in runs]
        found = await self._views.read_runs(group.queue, refs, detail="brief", max_arguments=max_arguments)
        return msgspec.structs.replace(group, samples=[one.record for one in found if one is not None])

    async def suggestions(self, queues: Sequence[str]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
        """Queue -> its tasks; and queue -> the terms of a sample of its jobs, repeated as often as they occur there."""
        commands = [["HKEYS", self._key(queue, "task_numbers")] for queue in queues]
        commands += [["HRANDFIELD", self._key(queue, "terms"), str(SAMPLE), "WITHVALUES"] for queue in queues]
        answers = await self._redis.commands(commands) if commands else []
        tasks = {
            queue: [task.decode() for task in found if not task.startswith(b" ")]
            for queue, found in zip(queues, answers[: len(queues)], strict=True)
        }
        terms = {
            queue: [word for words in read_hash(found or []).values() for word in words.decode().split()]
            for queue, found in zip(queues, answers[len(queues) :], strict=True)
        }
        return tasks, terms

    async def count_field_values(self, queues: Mapping[str, Sequence[str]], value: str) -> dict[tuple[str, str], int]:
        """(queue, field) -> number of jobs whose field has this value, for the given fields of each queue."""
        places = [(queue, field) for queue, fields in queues.items() for field in fields]
        commands = [["ZCARD", self._key(queue, "term", field_term(field, value))] for queue, field in places]
        counts = await self._redis.commands(commands) if commands else []
        return {place: int(count) for place, count in zip(places, counts, strict=True) if count}

    async def times_of_group(self, queue: str, group: str, limit: int) -> list[int]:
        """When the latest dead letters of a group failed, ms, oldest first."""
        runs = await self._redis.command("ZRANGE", self._key(queue, "term", f"group={group}"), 0, limit - 1, "REV")
        if not runs:
            return []
        scores = await self._redis.command("ZMSCORE", self._key(queue, "failed"), *runs)
        return sorted(int(float(score)) for score in scores if score is not None)

    # --- candidates --------------------------------------------------------------------------------------------

    async def _candidates(self, queue: str, query: SearchQuery, after: str, order: str) -> AsyncIterator[list[str]]:
        is_newest = order == "newest"
        low, high = await self._bounds(queue, query)
        if after:
            low, high = (low, min(high, after)) if is_newest else (max(low, after), high)
        size = FIRST_BATCH  # most pages are full after a few
        async for runs in self._narrowest_index(queue, query, low, high, is_newest):
            inside = sorted((run for run in runs if low < run < high), reverse=is_newest)
            start = 0
            while start < len(inside):
                yield inside[start : start + size]
                start, size = start + size, min(2 * size, MAX_BATCH)

    async def _narrowest_index(
        self, queue: str, query: SearchQuery, low: str, high: str, is_newest: bool
    ) -> AsyncIterator[list[str]]:
        """Runs from the smallest index: the state if it is small, else a term, else the task index."""
        terms = [self._key(queue, "term", term) for term in query.terms]
        state = None if query.state is None else self._key(queue, query.state.value)
        keys = terms if state is None else [*terms, state]
        counts = await self._redis.commands([["ZCARD", key] for key in keys])
        sizes = {key: int(count) for key, count in zip(keys, counts, strict=True)}
        if 0 in sizes.values():
            return
        if state is not None and sizes[state] <= min([SMALL_STATE, *(sizes[term] for term in terms)]):
            source = self._members(state)
        elif terms:
            source = self._of_term(min(terms, key=lambda term: sizes[term]), low, high, is_newest)
        else:
            source = self._of_task_index(queue, query.task, low, high, is_newest)
        async for runs in source:
            yield runs

    async def _members(self, key: str) -> AsyncIterator[list[str]]:
        """All members, read in slices: ZSCAN returns every member that is present throughout."""
        cursor, found = b"0", set[bytes]()
        while True:
            cursor, part = await self._redis.command("ZSCAN", key, cursor, "COUNT", SLICE)
            found.update(part[::2])
            if cursor == b"0":
                break
        yield [run.decode() for run in found]

    async def _of_term(self, key: str, low: str, high: str, is_newest: bool) -> AsyncIterator[list[str]]:
        while True:
            ends = (f"({high}", f"({low}", "BYLEX", "REV") if is_newest else (f"({low}", f"({high}", "BYLEX")
            found = await self._redis.command("ZRANGE", key, *ends, "LIMIT", 0, SLICE)
            runs: list[str] = [run.decode() for run in found]
            if runs:
                yield runs
            if len(runs) < SLICE:
                return
            low, high = (low, runs[-1]) if is_newest else (runs[-1], high)

    async def _of_task_index(
        self, queue: str, task: str | None, low: str, high: str, is_newest: bool
    ) -> AsyncIterator[list[str]]:
        pattern = _task_pattern(None if task is None else await self._task_number(queue, task))
        chunks = [chunk for chunk in await self._chunks(queue) if low[:PREFIX] <= chunk <= high[:PREFIX]]
        if is_newest:
            chunks.reverse()
        size = FIRST_CHUNKS
        while chunks:
            part, chunks, size = chunks[:size], chunks[size:], min(2 * size, CHUNK_BATCH)
            columns = await self._columns(queue, part)
            runs = [
                chunk + _LOW[match.start()]
                for chunk, column in zip(part, columns, strict=True)
                for match in pattern.finditer(column)
            ]
            if runs:
                yield runs

    async def _task_number(self, queue: str, task: str) -> int:
        return int(await self._redis.command("HGET", self._key(queue, "task_numbers"), task) or OTHER_TASK_NUMBER)

    async def _chunks(self, queue: str) -> list[str]:
        return sorted(
            chunk.decode() for chunk in await self._redis.command("HKEYS", self._key(queue, "task_index_sizes"))
        )

    async def _columns(self, queue: str, chunks: Sequence[str]) -> list[bytes]:
        found = await self._redis.commands([["GET", self._key(queue, "task_index", chunk)] for chunk in chunks])
        return [column or b"" for column in found]

    # --- time --------------------------------------------------------------------------------------------------

    async def _bounds(self, queue: str, query: SearchQuery) -> tuple[str, str]:
        """Exclusive bounds of the runs enqueued in the time of the query: names grow with time.

        Exact to a chunk; the caller compares the times of the records.
        """
        low, high = "0", "~"
        is_finished = query.state is not None and query.state.is_finished
        if is_finished or (query.since is None and query.until is None):
            return low, high
        chunks = await self._chunks(queue)
        if query.since is not None:
            index = await self._bisect(queue, chunks, query.since)
            low = chunks[index - 1] if index else low
        if query.until is not None:
            index = await self._bisect(queue, chunks, query.until)
            high = chunks[index] if index < len(chunks) else high
        return low, high

    async def _bisect(self, queue: str, chunks: list[str], at: int) -> int:
        """Index of the first chunk whose runs were all enqueued at that time or later."""
        low, high = 0, len(chunks)
        while low < high:
            middle = (low + high) // 2
            if await self._first_enqueued_at(queue, chunks[middle]) < at:
                low = middle + 1
            else:
                high = middle
        return low

    async def _first_enqueued_at(self, queue: str, chunk: str) -> int:
        """When the earliest stored run of a chunk was enqueued, ms; 0 if none is stored."""
        (column,) = await self._columns(queue, [chunk])
        first = re.search(rb"[^\0]", column)
        if first is None:
            return 0
        record = await self._redis.command("HGET", self._key(queue, "jobs"), chunk + _LOW[first.start()])
        head = (record or b"").partition(b"\n")[0].rpartition(b" ")[2]
        return int(head) if head.isdigit() else 0

    # --- filtering ---------------------------------------------------------------------------------------------

    async def _filter(self, queue: str, query: SearchQuery, runs: list[str]) -> list[str]:
        """The candidates that all other indexes contain as well."""
        if query.state is not None:
            since, until = (query.since, query.until) if query.state.is_finished else (None, None)
            runs = await self._with_score(self._key(queue, query.state.value), runs, since, until)
        for term in query.terms:
            runs = await self._with_score(self._key(queue, "term", term), runs)
        if query.task is not None and runs:
            runs = await self._with_task(queue, await self._task_number(queue, query.task), runs)
        if query.worker is not None and runs:
            runs = await self._with_worker(queue, query.worker, runs)
        return runs

    async def _with_score(
        self, key: str, runs: list[str], since: int | None = None, until: int | None = None
    ) -> list[str]:
        """The runs that a sorted set holds with a score from `since` to before `until`."""
        scores = await self._read_each("ZMSCORE", key, runs)
        return [run for run, score in zip(runs, scores, strict=True) if _is_within(score, since, until)]

    async def _with_task(self, queue: str, number: int, runs: Collection[str]) -> list[str]:
        pattern = _task_pattern(number)
        chunks = sorted({run[:PREFIX] for run in runs})
        columns = dict(zip(chunks, await self._columns(queue, chunks), strict=True))
        return [run for run in runs if pattern.match(columns[run[:PREFIX]], _OFFSET[run[PREFIX:]])]

    async def _with_worker(self, queue: str, worker: str, runs: list[str]) -> list[str]:
        wanted = worker.encode()
        records = await self._read_each("HMGET", self._key(queue, "runs"), runs)
        return [run for run, record in zip(runs, records, strict=True) if record and record.split(b" ", 3)[2] == wanted]

    async def _read_each(self, command: str, key: str, runs: list[str]) -> list[Any]:
        """One reply for each run, in one round trip."""
        slices = [runs[start : start + SLICE] for start in range(0, len(runs), SLICE)]
        answers = await self._redis.commands([[command, key, *some] for some in slices])
        return [one for answer in answers for one in answer]

    def _key(self, queue: str, name: str, part: str = "") -> str:
        return self._keys.queue(queue, name, part)


def _task_pattern(number: int | None) -> re.Pattern[bytes]:
    """Matches the bytes of a task in a chunk of the task index; without a number, those of all tasks."""
    return re.compile(rb"[^\0]" if number is None else re.escape(bytes([number])), re.DOTALL)


def _is_within(score: bytes | None, since: int | None, until: int | None) -> bool:
    if score is None:
        return False
    return (since is None or float(score) >= since) and (until is None or float(score) < until)
