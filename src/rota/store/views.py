"""The read side, for clients, CLI, dashboard and autoscaler. Changes nothing, and never walks the keyspace."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from rota.core.codec import UndecodableRecord, decode_body, decode_history, decode_progress, decode_record
from rota.core.job import HistoryEntry, JobRecord, JobRef, Progress, base_of, is_run
from rota.core.states import JobState
from rota.errors import InvalidOption
from rota.store.gateway import Argument, Call, Gateway
from rota.store.keys import Keys
from rota.store.replies import read_hash
from rota.store.scripts import script

#: A worker that has been silent for longer is shown as DEAD (S2-23).
ALIVE_MS: Final = 10_000
PAGE: Final = 200
#: Of a page, so many are read by one call: what keeps the script far below 5 ms.
AT_ONCE: Final = 100
#: Runs at work that one look finds at most; and of those, so many are read by one call.
LEASES: Final = 2_000
LEASES_AT_ONCE: Final = 200
#: What is counted of a queue from its first job on. Its tally says more, by task.
TOTALS: Final = ("run", "completed", "failed", "cancelled", "redriven", "deleted")
#: Of those who wait for one lock, so many are named.
WAITERS_SHOWN: Final = 10


class Position(msgspec.Struct, frozen=True, array_like=True):
    """A place in a listing: what an opaque cursor holds."""

    listing: str  # state and order
    queue: str
    score: float | None = None  # None: before the first entry
    run: str = ""

    def cursor(self) -> str:
        """As text that is safe in a URL."""
        return base64.urlsafe_b64encode(msgspec.json.encode(self)).decode().rstrip("=")

    @classmethod
    def of(cls, cursor: str) -> Position:
        """What `cursor` wrote."""
        try:
            position = msgspec.json.decode(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)), type=cls)
        except (TypeError, ValueError, binascii.Error, msgspec.DecodeError) as error:
            raise InvalidOption("cursor", f"{cursor!r} was not made by a listing") from error
        if position.score is None or not is_run(position.run):
            raise InvalidOption("cursor", f"{cursor!r} was not made by a listing")
        return position


class Page(msgspec.Struct, frozen=True):
    """Some jobs, how to go on, and how many records were looked at to find them."""

    jobs: list[JobRecord]
    cursor: str | None
    examined: int


class Snapshot(msgspec.Struct, frozen=True):
    """One run at one moment of the server's clock."""

    record: JobRecord
    history: list[HistoryEntry]
    at: int
    #: Of the record as it is stored: says whether it has changed since.
    digest: str = ""


class LogLine(msgspec.Struct, frozen=True):
    """One line that a handler logged."""

    at: int
    level: str
    text: str


class QueueInfo(msgspec.Struct, frozen=True):
    """How a queue stands."""

    name: str
    is_paused: bool
    counts: dict[str, int]
    totals: dict[str, int]
    oldest_pending_ms: int | None


class LockInfo(msgspec.Struct, frozen=True):
    """A lock of a queue: whose it is, and who waits for it."""

    queue: str
    name: str
    #: `queue:id@run`. It is being processed since `since`, ms; or it is about to be, and has no such time.
    holder: str
    since: int | None
    waiting: int
    #: The first of those who wait.
    waiters: tuple[str, ...]


class Lease(msgspec.Struct, frozen=True):
    """A run that is being processed: by whom, since when, and how far it is."""

    queue: str
    run: str
    worker: str
    claimed_at: int
    attempt: int
    progress: Progress | None


class LockPage(msgspec.Struct, frozen=True):
    """Some locks, and how to go on; None at the end."""

    locks: list[LockInfo]
    cursor: str | None


def merge_shards(infos: Sequence[QueueInfo]) -> list[QueueInfo]:
    """Shards put together: paused if all of them are."""
    by_base: dict[str, list[QueueInfo]] = {}
    for info in infos:
        by_base.setdefault(base_of(info.name), []).append(info)
    return [parts[0] if parts[0].name == base else _merge(base, parts) for base, parts in sorted(by_base.items())]


def _merge(base: str, parts: Sequence[QueueInfo]) -> QueueInfo:
    ages = [part.oldest_pending_ms for part in parts if part.oldest_pending_ms is not None]
    return QueueInfo(
        name=base,
        is_paused=all(part.is_paused for part in parts),
        counts={state: sum(part.counts[state] for part in parts) for state in parts[0].counts},
        totals={name: sum(part.totals[name] for part in parts) for name in parts[0].totals},
        oldest_pending_ms=max(ages, default=None),
    )


class WorkerInfo(msgspec.Struct, frozen=True):
    """What a worker said of itself, and whether it is still heard of."""

    id: str
    status: str  # ALIVE | DEAD
    last_seen: int
    silent_ms: int
    info: dict[str, Any]

    @property
    def name(self) -> str:
        """What it was called; else its host. Behind that stand its process and a random word."""
        return self.id.rsplit("-", 2)[0]

    def serves(self, queue: str) -> bool:
        """True while it lives and takes jobs of that queue, be it as the failures of another."""
        served = self.info.get("queues", ())
        return self.status == "ALIVE" and (queue in served or queue.removesuffix("-fail") in served)


class Views:
    """Questions about one namespace."""

    def __init__(self, gateway: Gateway, keys: Keys) -> None:
        self._gateway = gateway
        self._keys = keys

    async def now(self) -> int:
        """The server's time, ms: what every other time in the store is to be compared with."""
        seconds, micros = await self._gateway.command("TIME")
        return int(seconds) * 1000 + int(micros) // 1000

    async def read(self, queue: str, refs: Sequence[JobRef], *, detail: str = "full") -> list[Snapshot | None]:
        """Jobs of one queue as one snapshot; None for each that does not exist."""
        words: list[str] = [detail]
        for ref in refs:
            words += (ref.id, ref.run or "")
        answer = await self._gateway.run("read", self._queue_keys("read", queue), words)
        at = int(answer[0])
        return [
            Snapshot(
                decode_record(queue, fields),
                decode_history(fields[8]),
                at,
                hashlib.sha1(fields[1], usedforsecurity=False).hexdigest(),
            )
            if fields
            else None
            for fields in answer[1:]
        ]

    async def page(
        self,
        state: JobState,
        *,
        queues: Sequence[str],
        cursor: str | None,
        limit: int,
        order: str,
        span: tuple[int | None, int | None] = (None, None),
    ) -> tuple[list[tuple[JobRecord, Position]], Position | None]:
        """Up to `limit` jobs in a state, queue by queue, each with its place; and where they ended, None at the end.

        `span` is the first score wanted and the first that no longer is.
        """
        listing = f"{state.value} {order}"
        position = Position.of(cursor) if cursor is not None else Position(listing, queues[0] if queues else "")
        if cursor is not None and (position.queue not in queues or position.listing != listing):
            raise InvalidOption("cursor", f"{cursor!r} belongs to another listing")
        found: list[tuple[JobRecord, Position]] = []
        for place in range(queues.index(position.queue) if queues else 0, len(queues)):
            queue = queues[place]
            if queue != position.queue:
                position = Position(listing, queue)
            is_more = True
            while is_more:
                wanted = min(limit - len(found), AT_ONCE)
                score = "" if position.score is None else f"{position.score:.17g}"
                first, last = ("" if at is None else str(at) for at in span)
                words = [state.value, order, score, position.run, wanted, first, last]
                answer = await self._gateway.run("page", self._queue_keys("page", queue), words)
                for at in range(0, len(answer), 3):
                    position = Position(listing, queue, float(answer[at + 1]), answer[at].decode())
                    if answer[at + 2]:
                        found.append((decode_record(queue, answer[at + 2]), position))
                is_more = len(answer) // 3 == wanted
                if is_more and len(found) == limit:
                    return found, position
        return found, None

    async def queues(self) -> list[str]:
        """Names of the queues ever used, in order."""
        return sorted(name.decode() for name in await self._gateway.command("SMEMBERS", self._keys.shared("queues")))

    async def shards_of(self, queue: str) -> int:
        """How many shards a queue has; 0 for none."""
        count = await self._gateway.command("HGET", self._keys.shared("shards"), queue.removesuffix("-fail"))
        return int(count or 0)

    async def queue_infos(self, queues: Sequence[str]) -> list[QueueInfo]:
        """How queues stand, in one round trip."""
        commands: list[list[str]] = [["TIME"]]
        for queue in queues:
            commands += (["ZCARD", self._keys.queue(queue, state.value)] for state in JobState)
            commands.append(["HGETALL", self._keys.queue(queue, "meta")])
            commands.append(["ZRANGE", self._keys.queue(queue, "pending"), "0", "0", "WITHSCORES"])
        answers = await self._gateway.commands(commands)
        now = int(answers[0][0]) * 1000 + int(answers[0][1]) // 1000
        width = len(JobState) + 2
        infos: list[QueueInfo] = []
        for place, queue in enumerate(queues):
            part = answers[1 + place * width : 1 + (place + 1) * width]
            meta = _texts(part[-2])
            head = part[-1]
            infos.append(
                QueueInfo(
                    name=queue,
                    is_paused="is_paused" in meta,
                    counts={state.value: int(count) for state, count in zip(JobState, part, strict=False)},
                    totals={name: int(meta.get(name, 0)) for name in TOTALS},
                    oldest_pending_ms=max(0, now - _score(head) % 2**42) if head else None,
                )
            )
        return infos

    async def due_within(self, queues: Sequence[str], now: int, seconds: Sequence[int]) -> dict[str, dict[int, int]]:
        """Queue -> seconds ahead -> scheduled jobs that fall due until then."""
        commands = [
            ["ZCOUNT", self._keys.queue(queue, "scheduled"), "-inf", str((now + ahead * 1000) * 256 + 255)]
            for queue in queues
            for ahead in seconds
        ]
        answers = iter(await self._gateway.commands(commands))
        return {queue: {ahead: int(next(answers)) for ahead in seconds} for queue in queues}

    async def workers(self) -> list[WorkerInfo]:
        """Workers heard of in the last day, the latest first."""
        seen, infos, drains, time = await self._gateway.commands(
            [
                ["ZRANGE", self._keys.shared("seen"), "0", "999", "REV", "WITHSCORES"],
                ["HGETALL", self._keys.shared("workers")],
                ["SMEMBERS", self._keys.shared("drains")],
                ["TIME"],
            ]
        )
        asked_to_leave = {name.decode() for name in drains}
        now = int(time[0]) * 1000 + int(time[1]) // 1000
        said = _texts(infos)
        workers: list[WorkerInfo] = []
        for name, score in read_hash(seen).items():
            last_seen = int(float(score))
            silent = max(0, now - last_seen)
            info: dict[str, Any] = msgspec.json.decode(said.get(name, "{}"))
            is_alive = silent < ALIVE_MS and info.get("state") != "stopped"
            if is_alive and name in asked_to_leave:
                info["state"] = "draining"  # it will say so itself in a moment
            workers.append(WorkerInfo(name, "ALIVE" if is_alive else "DEAD", last_seen, silent, info))
        return workers

    async def leases(self, queues: Sequence[str]) -> tuple[list[Lease], bool]:
        """Who runs what now; and whether that is all, or the first of many."""
        indexes = [self._keys.queue(queue, "processing") for queue in queues]
        sizes = [int(size) for size in await self._gateway.commands([["ZCARD", index] for index in indexes])]
        room = LEASES
        looks: dict[str, list[Argument]] = {}
        for queue, index, size in zip(queues, indexes, sizes, strict=True):
            share = min(size, room)
            room -= share
            if share:
                looks[queue] = ["ZRANGE", index, 0, share - 1]
        answers = await self._gateway.commands(list(looks.values()))
        parts = [
            (queue, runs[start : start + LEASES_AT_ONCE])
            for queue, runs in zip(looks, answers, strict=True)
            for start in range(0, len(runs), LEASES_AT_ONCE)
        ]
        details: list[list[Argument]] = []
        for queue, runs in parts:
            details.append(["HMGET", self._keys.queue(queue, "runs"), *runs])
            details.append(["HMGET", self._keys.queue(queue, "progress"), *runs])
        happened = await self._gateway.commands(details)
        found = [
            _lease(queue, run, line or b"", progress or b"")
            for place, (queue, runs) in enumerate(parts)
            for run, line, progress in zip(runs, happened[2 * place], happened[2 * place + 1], strict=True)
        ]
        return [lease for lease in found if lease is not None], sum(sizes) <= LEASES

    async def names(self, runs: Mapping[str, Sequence[str]]) -> dict[tuple[str, str], tuple[str, str]]:
        """Of some runs, by queue: (queue, run) -> its id and its task. Neither ever changes."""
        parts = [
            (queue, of_queue[start : start + LEASES_AT_ONCE])
            for queue, of_queue in runs.items()
            for start in range(0, len(of_queue), LEASES_AT_ONCE)
        ]
        calls = [Call("read_names", self._queue_keys("read_names", queue), names) for queue, names in parts]
        found: dict[tuple[str, str], tuple[str, str]] = {}
        for (queue, names), records in zip(parts, await self._gateway.run_many(calls) if calls else [], strict=True):
            for run, record in zip(names, records, strict=True):
                if record:
                    found[queue, run] = _name(run, record)
        return found

    async def locks(self, queues: Sequence[str], *, lock: str = "", cursor: str | None, limit: int) -> LockPage:
        """Locks that are held or wanted, queue by queue, about `limit` at a time; or one of that name in each queue.

        While locks come and go, one that stays is seen once at least.
        """
        queue, place = _lock_place(cursor, queues)
        found: list[LockInfo] = []
        for name in queues[queues.index(queue) if queue else 0 :]:
            while True:
                words: list[Argument] = [place, limit, WAITERS_SHOWN, lock]
                answer = await self._gateway.run("read_locks", self._queue_keys("read_locks", name), words)
                place = answer[0].decode()
                found += (_lock_info(name, answer[at : at + 5]) for at in range(1, len(answer), 5))
                if place != "0" and len(found) >= limit:
                    return LockPage(found, f"{name}:{place}")
                if place == "0":
                    break
        return LockPage(found, None)

    async def heirs(self, ref: JobRef, place: int, limit: int) -> tuple[int, list[str]]:
        """Some of the runs that wait for a run, as "queue run name", from a place on; and where they go on, or 0."""
        assert ref.run is not None, "one waits for a run"
        key = self._keys.queue(ref.queue, "heirs", ref.run)
        following, found = await self._gateway.command("ZSCAN", key, place, "COUNT", limit)
        return int(following), [member.decode() for member in found[::2]]

    async def tasks(self) -> dict[str, dict[str, Any]]:
        """What workers announced of their tasks: schema, queue, defaults."""
        answer = _texts(await self._gateway.command("HGETALL", self._keys.shared("tasks")))
        return {name: msgspec.json.decode(text) for name, text in sorted(answer.items())}

    async def server_info(self) -> dict[str, Any]:
        """What the server says of itself: memory, CPU, persistence, replication."""
        return dict(await self._gateway.command("INFO"))

    async def log(self, ref: JobRef, *, start: int = 0) -> list[LogLine]:
        """Lines of a run's log from number `start` on."""
        assert ref.run is not None, "a log belongs to one run"
        lines = await self._gateway.command("LRANGE", self._keys.queue(ref.queue, "log", ref.run), start, -1)
        return [_log_line(line.decode()) for line in lines]

    async def raw(self, ref: JobRef) -> dict[str, Any]:
        """A run as the store holds it, key by key: the operator's view."""
        assert ref.run is not None, "a record belongs to one run"
        hashes = ("jobs", "runs", "named", "results", "errors", "history", "progress", "logs", "waiters")
        indexes = (*(state.value for state in JobState), "stopping", "expiring")
        commands = [["HGET", self._keys.queue(ref.queue, name), ref.run] for name in hashes]
        commands += [["ZSCORE", self._keys.queue(ref.queue, name), ref.run] for name in indexes]
        answers = await self._gateway.commands(commands)
        return {
            self._keys.queue(ref.queue, name): answer.decode(errors="replace") if isinstance(answer, bytes) else answer
            for name, answer in zip((*hashes, *indexes), answers, strict=True)
            if answer is not None
        }

    def _queue_keys(self, name: str, queue: str) -> list[str]:
        return [self._keys.queue(queue, key) for key in script(name).keys]


def _texts(answer: Sequence[bytes]) -> dict[str, str]:
    return {field: value.decode() for field, value in read_hash(answer).items()}


def _lock_info(queue: str, fields: Sequence[bytes]) -> LockInfo:
    name, holder, since, waiting, waiters = (field.decode() for field in fields)
    return LockInfo(
        queue, name, f"{queue}:{holder}", int(since) if since else None, int(waiting),
        tuple(f"{queue}:{waiter}" for waiter in waiters.split()),
    )  # fmt: skip


def _lease(queue: str, run: bytes, line: bytes, progress: bytes) -> Lease | None:
    """A run as its line says, see `include/record.lua`; None where it is not being processed any more."""
    happened = line.decode().split(" ", 6)
    if len(happened) < 7 or happened[0] != JobState.PROCESSING.value:
        return None
    _, _, worker, claimed_at, _, attempt, _ = happened
    return Lease(queue, run.decode(), worker, int(claimed_at), int(attempt), decode_progress(progress))


def _name(run: str, record: bytes) -> tuple[str, str]:
    try:
        body = decode_body(run, record)
    except UndecodableRecord:
        return run, "?"
    return body.id, body.task


def _lock_place(cursor: str | None, queues: Sequence[str]) -> tuple[str, str]:
    """Queue and place within it where a listing of locks goes on."""
    if cursor is None:
        return "", "0"
    queue, _, place = cursor.rpartition(":")
    if queue not in queues or not place.isdecimal() or not place.isascii() or int(place) >= 2**64:
        raise InvalidOption("cursor", f"{cursor!r} was not made by this listing")
    return queue, place


def _score(head: Sequence[bytes]) -> int:
    """Of the first of a sorted set, which comes with it."""
    return int(float(head[1]))


def _log_line(line: str) -> LogLine:
    at, level, text = line.split(" ", 2)
    return LogLine(int(at), level, text)
