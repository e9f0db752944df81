"""Reads jobs, queues, workers and locks. No method scans the keyspace."""

from __future__ import annotations

import base64
import binascii
import hashlib
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from rota.core.encrypted_values import Codec
from rota.core.ids import JobRef, is_run
from rota.core.job_record import HistoryEntry, JobRecord, Progress
from rota.core.job_record_codec import UndecodableRecord, decode_body, decode_history, decode_progress, decode_record
from rota.core.lua_constants import TASK_NUMBERS
from rota.core.shards import base_of
from rota.core.state_transitions import JobState
from rota.errors import InvalidOption
from rota.store.keys import Keys
from rota.store.redis.hash_and_time_replies import read_hash, read_text_hash, read_time_ms
from rota.store.redis.retrying_client import Argument, RedisClient, ScriptCall
from rota.store.redis.script_compiler import script

#: A worker without a registration for longer is shown as DEAD.
ALIVE_MS: Final = 10_000
#: Size of decoded positions: more than any listing makes.
MAX_POSITIONS_BYTES: Final = 100_000
#: Jobs of a page that one call reads: keeps the script far below 5 ms.
PAGE_BATCH: Final = 100
#: Leases that one view returns at most, and runs that one call reads.
MAX_LEASES: Final = 2_000
LEASE_BATCH: Final = 200
#: Registrations that one call reads.
WORKER_BATCH: Final = 1_000
#: The totals of a queue since its first job. The counters have more, by task.
TOTALS: Final = ("run", "completed", "failed", "cancelled", "redriven", "deleted")
#: Runs that are listed of those that wait for one lock.
WAITERS_SHOWN: Final = 10


class Position(msgspec.Struct, frozen=True, array_like=True):
    """A position in a listing: the content of an opaque cursor."""

    listing: str  # state and order
    queue: str
    score: float | None = None  # None: before the first entry
    run: str = ""

    def to_cursor(self) -> str:
        """The position as an opaque text that is safe in a URL."""
        return base64.urlsafe_b64encode(msgspec.json.encode(self)).decode().rstrip("=")

    @classmethod
    def from_cursor(cls, cursor: str) -> Position:
        """Decodes a cursor. Raises InvalidOption."""
        try:
            position = msgspec.json.decode(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)), type=cls)
        except (TypeError, ValueError, binascii.Error, msgspec.DecodeError) as error:
            raise InvalidOption("cursor", f"{cursor!r} was not made by a listing") from error
        if position.score is None or not is_run(position.run):
            raise InvalidOption("cursor", f"{cursor!r} was not made by a listing")
        return position


class Positions(msgspec.Struct, frozen=True, array_like=True):
    """The position of a listing in each of its queues, by the run reached: the content of an opaque cursor."""

    listing: str
    runs: dict[str, str]

    def to_cursor(self) -> str:
        """The positions as an opaque text that is safe in a URL."""
        return base64.urlsafe_b64encode(zlib.compress(msgspec.json.encode(self))).decode().rstrip("=")

    @classmethod
    def from_cursor(cls, cursor: str) -> Positions:
        """Decodes a cursor. Raises InvalidOption."""
        try:
            packed = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
            positions = msgspec.json.decode(zlib.decompressobj().decompress(packed, MAX_POSITIONS_BYTES), type=cls)
        except (TypeError, ValueError, binascii.Error, zlib.error, msgspec.DecodeError) as error:
            raise InvalidOption("cursor", f"{cursor!r} was not made by a listing") from error
        if not all(is_run(run) for run in positions.runs.values()):
            raise InvalidOption("cursor", f"{cursor!r} was not made by a listing")
        return positions


class Page(msgspec.Struct, frozen=True):
    """A page of jobs, the cursor of the next page, and the number of records examined."""

    jobs: list[JobRecord]
    cursor: str | None
    examined: int


class Snapshot(msgspec.Struct, frozen=True):
    """One run at one moment of the server's clock."""

    record: JobRecord
    history: list[HistoryEntry]
    at: int
    #: Digest of the stored record: detects changes.
    digest: str = ""


class LogLine(msgspec.Struct, frozen=True):
    """One line that a handler logged."""

    at: int
    level: str
    text: str


class Pause(msgspec.Struct, frozen=True):
    """Who paused a queue or a task, when and why; "" and None where it is not known."""

    by: str = ""
    at: int | None = None
    note: str = ""


class PausedTask(msgspec.Struct, frozen=True):
    """A task whose jobs do not start in one queue."""

    task: str
    queue: str
    pause: Pause
    #: Due jobs that were set aside. Those behind other jobs are not counted yet.
    waiting: int
    #: It was resumed, and its jobs are being put back.
    is_resuming: bool = False


class QueueInfo(msgspec.Struct, frozen=True):
    """The state of a queue."""

    name: str
    is_paused: bool
    counts: dict[str, int]
    totals: dict[str, int]
    oldest_pending_ms: int | None
    #: None unless it is paused.
    pause: Pause | None = None
    has_paused_tasks: bool = False


class LockInfo(msgspec.Struct, frozen=True):
    """A lock of a queue: its holder, and the runs that wait for it."""

    queue: str
    name: str
    #: `queue:id@run`. `since` is when its processing began, ms; None while it is still pending.
    holder: str
    since: int | None
    waiting: int
    #: The first of the waiting runs.
    waiters: tuple[str, ...]


class Lease(msgspec.Struct, frozen=True):
    """A run that is being processed: its worker, start, attempt and progress."""

    queue: str
    run: str
    worker: str
    claimed_at: int
    attempt: int
    progress: Progress | None


class LockPage(msgspec.Struct, frozen=True):
    """A page of locks, and the cursor of the next page; None at the end."""

    locks: list[LockInfo]
    cursor: str | None


def merge_shards(infos: Sequence[QueueInfo]) -> list[QueueInfo]:
    """Merges the shards of each queue. A queue is paused if all its shards are."""
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
        pause=next((part.pause for part in parts if part.pause is not None), None),
        has_paused_tasks=any(part.has_paused_tasks for part in parts),
    )


class WorkerInfo(msgspec.Struct, frozen=True):
    """The registration of a worker, and whether it is alive."""

    id: str
    status: str  # ALIVE | DEAD
    last_seen: int
    silent_ms: int
    info: dict[str, Any]

    @property
    def name(self) -> str:
        """The name given to the worker, or its host: the id without process id and random suffix."""
        return self.id.rsplit("-", 2)[0]

    def serves(self, queue: str) -> bool:
        """True while the worker is alive and claims from that queue, also as the failure queue of another."""
        served = self.info.get("queues", ())
        return self.status == "ALIVE" and (queue in served or queue.removesuffix("-fail") in served)


def _worker(name: str, last_seen: int, said: str | None, draining: set[str], now: int) -> WorkerInfo:
    """One worker, from its registration and from the workers that were asked to drain."""
    silent = max(0, now - last_seen)
    info: dict[str, Any] = msgspec.json.decode(said or "{}")
    is_alive = silent < ALIVE_MS and info.get("state") != "stopped"
    if is_alive and name in draining and info.get("state") != "drained":
        info["state"] = "draining"  # its next registration will say so
    return WorkerInfo(name, "ALIVE" if is_alive else "DEAD", last_seen, silent, info)


class Views:
    """Reads the state of one namespace."""

    def __init__(self, redis: RedisClient, keys: Keys, codec: Codec | None = None) -> None:
        self._redis = redis
        self._keys = keys
        #: Decrypts arguments and results; values whose key it does not have stay encrypted.
        self._codec = codec

    async def now(self) -> int:
        """The server's time, ms. All times in the store are by this clock."""
        return read_time_ms(await self._redis.command("TIME"))

    async def read_runs(
        self, queue: str, refs: Sequence[JobRef], *, detail: str = "full", max_arguments: int | None = None
    ) -> list[Snapshot | None]:
        """Reads jobs of one queue, all at one moment unless they are long; None for each that does not exist.

        The arguments of a job are cut to `max_arguments` bytes, if given.
        """
        found: list[Snapshot | None] = []
        while True:
            found += await self.read_first_runs(queue, refs[len(found) :], detail=detail, max_arguments=max_arguments)
            if len(found) >= len(refs):
                return found

    async def read_first_runs(
        self, queue: str, refs: Sequence[JobRef], *, detail: str, max_arguments: int | None = None
    ) -> list[Snapshot | None]:
        """`read_runs` for as many of the first jobs as one call may read: all of them, unless they are long."""
        words: list[Argument] = [detail, "" if max_arguments is None else max_arguments]
        for ref in refs:
            words += (ref.id, ref.run or "")
        answer = await self._redis.run("read_runs", self._queue_keys("read_runs", queue), words)
        at = int(answer[0])
        return [
            Snapshot(
                decode_record(queue, fields, self._codec),
                decode_history(fields[8]),
                at,
                hashlib.sha1(fields[1], usedforsecurity=False).hexdigest(),
            )
            if fields
            else None
            for fields in answer[1:]
        ]

    async def list_runs(
        self,
        state: JobState,
        after: Mapping[str, tuple[float | None, str]],
        *,
        limit: int,
        order: str,
        span: tuple[int | None, int | None] = (None, None),
        max_arguments: int | None = None,
    ) -> dict[str, tuple[list[tuple[float, str, JobRecord | None]], bool]]:
        """Queue -> its next runs in a state after a score and a run, and whether more may follow, in one round trip.

        Each run has its score, name and record, which is None if it was deleted meanwhile. A score of None is the
        start of the listing. There are at most `limit` runs, fewer where they are large. `span` limits the scores: the
        first included, and the first excluded. The arguments of a job are cut to `max_arguments` bytes, if given.
        """
        first, last = ("" if at is None else str(at) for at in span)
        cut = "" if max_arguments is None else max_arguments
        calls: list[ScriptCall] = []
        for queue, (score, run) in after.items():
            place = "" if score is None else f"{score:.17g}"
            words: list[Argument] = [state.value, order, place, run, limit, first, last, cut]
            calls.append(ScriptCall("list_runs_of_state", self._queue_keys("list_runs_of_state", queue), words))
        found: dict[str, tuple[list[tuple[float, str, JobRecord | None]], bool]] = {}
        for queue, (size, *answer) in zip(after, await self._redis.run_many(calls) if calls else [], strict=True):
            rows = [
                (
                    float(answer[at + 1]),
                    answer[at].decode(),
                    decode_record(queue, answer[at + 2], self._codec) if answer[at + 2] else None,
                )
                for at in range(0, len(answer), 3)
            ]
            found[queue] = rows, size == b"cut" or len(rows) == limit
        return found

    async def queues(self) -> list[str]:
        """Names of all queues ever used, sorted."""
        return sorted(name.decode() for name in await self._redis.command("SMEMBERS", self._keys.shared("queues")))

    async def shards_of(self, queue: str) -> int:
        """The number of shards of a queue; 0 if it has none."""
        count = await self._redis.command("HGET", self._keys.shared("shards"), queue.removesuffix("-fail"))
        return int(count or 0)

    async def queue_infos(self, queues: Sequence[str]) -> list[QueueInfo]:
        """Reads the state of queues, in one round trip."""
        commands: list[list[str]] = [["TIME"]]
        for queue in queues:
            commands += (["ZCARD", self._keys.queue(queue, state.value)] for state in JobState)
            commands.append(["HGETALL", self._keys.queue(queue, "meta")])
            commands.append(["ZRANGE", self._keys.queue(queue, "pending"), "0", "0", "WITHSCORES"])
        answers = await self._redis.commands(commands)
        now = read_time_ms(answers[0])
        width = len(JobState) + 2
        infos: list[QueueInfo] = []
        for index, queue in enumerate(queues):
            part = answers[1 + index * width : 1 + (index + 1) * width]
            meta = read_text_hash(part[-2])
            head = part[-1]
            infos.append(
                QueueInfo(
                    name=queue,
                    is_paused="is_paused" in meta,
                    counts={state.value: int(count) for state, count in zip(JobState, part, strict=False)},
                    totals={name: int(meta.get(name, 0)) for name in TOTALS},
                    oldest_pending_ms=max(0, now - _score(head) % 2**42) if head else None,
                    pause=_pause_of(meta) if "is_paused" in meta else None,
                    has_paused_tasks="has_paused_tasks" in meta,
                )
            )
        return infos

    async def paused_tasks(self, queues: Sequence[str]) -> list[PausedTask]:
        """The paused tasks of queues, in the order of the queues."""
        answers = await self._redis.commands([["HGETALL", self._keys.queue(name, "paused_tasks")] for name in queues])
        found = [
            (queue, task, info)
            for queue, answer in zip(queues, answers, strict=True)
            for task, info in read_text_hash(answer).items()
        ]
        sizes = await self._redis.commands(
            [["ZCARD", self._keys.queue(queue, "paused_runs", task)] for queue, task, _ in found]
        )
        return [
            _paused_task(queue, task, info, int(size)) for (queue, task, info), size in zip(found, sizes, strict=True)
        ]

    async def queues_of_task(self, task: str, queues: Sequence[str]) -> list[str]:
        """Those of the queues that have counted jobs of the task, or too many tasks to tell."""
        keys = [self._keys.queue(queue, "task_numbers") for queue in queues]
        commands = [command for key in keys for command in (["HEXISTS", key, task], ["HLEN", key])]
        answers = iter(await self._redis.commands(commands))
        return [queue for queue in queues if next(answers) + (int(next(answers)) >= TASK_NUMBERS) > 0]

    async def due_within(self, queues: Sequence[str], now: int, seconds: Sequence[int]) -> dict[str, dict[int, int]]:
        """Queue -> seconds from now -> number of scheduled jobs that fall due until then."""
        commands = [
            ["ZCOUNT", self._keys.queue(queue, "scheduled"), "-inf", str((now + ahead * 1000) * 256 + 255)]
            for queue in queues
            for ahead in seconds
        ]
        answers = iter(await self._redis.commands(commands))
        return {queue: {ahead: int(next(answers)) for ahead in seconds} for queue in queues}

    async def workers(self) -> list[WorkerInfo]:
        """Workers that registered in the last 24 h, the latest registration first; at most 1,000."""
        seen, infos, drains, time = await self._redis.commands(
            [
                ["ZRANGE", self._keys.shared("worker_seen"), "0", "999", "REV", "WITHSCORES"],
                ["HGETALL", self._keys.shared("workers")],
                ["HKEYS", self._keys.shared("draining")],
                ["TIME"],
            ]
        )
        now = read_time_ms(time)
        draining = {name.decode() for name in drains}
        registrations = read_text_hash(infos)
        return [
            _worker(name, int(float(score)), registrations.get(name), draining, now)
            for name, score in read_hash(seen).items()
        ]

    async def all_workers(self) -> list[WorkerInfo]:
        """Every worker that registered in the last 24 h, in calls of bounded size.

        Read from the one that has been silent longest on: a worker that registers meanwhile moves to the end, where it
        is read again, and is never missed.
        """
        seen_key, workers_key = self._keys.shared("worker_seen"), self._keys.shared("workers")
        last_seen: dict[str, int] = {}
        registrations: dict[str, str] = {}
        start = "-inf"
        while True:
            page = read_hash(
                await self._redis.command(
                    "ZRANGE", seen_key, start, "+inf", "BYSCORE", "LIMIT", 0, WORKER_BATCH, "WITHSCORES"
                )
            )
            if page:
                last_seen |= {name: int(float(score)) for name, score in page.items()}
                infos = await self._redis.command("HMGET", workers_key, *page)
                registrations |= {name: info.decode() for name, info in zip(page, infos, strict=True) if info}
            if len(page) < WORKER_BATCH:
                break
            # From the last score on, itself included: others may share it. Not if it fills a page.
            last = str(max(last_seen[name] for name in page))
            start = last if last != start else f"({last}"
        drains, time = await self._redis.commands([["HKEYS", self._keys.shared("draining")], ["TIME"]])
        draining, now = {name.decode() for name in drains}, read_time_ms(time)
        return [_worker(name, at, registrations.get(name), draining, now) for name, at in last_seen.items()]

    async def leases(self, queues: Sequence[str]) -> tuple[list[Lease], bool]:
        """Runs being processed, at most `MAX_LEASES`; and whether these are all."""
        indexes = [self._keys.queue(queue, "processing") for queue in queues]
        sizes = [int(size) for size in await self._redis.commands([["ZCARD", index] for index in indexes])]
        room = MAX_LEASES
        reads: dict[str, list[Argument]] = {}
        for queue, index, size in zip(queues, indexes, sizes, strict=True):
            share = min(size, room)
            room -= share
            if share:
                reads[queue] = ["ZRANGE", index, 0, share - 1]
        answers = await self._redis.commands(list(reads.values()))
        parts = [
            (queue, runs[start : start + LEASE_BATCH])
            for queue, runs in zip(reads, answers, strict=True)
            for start in range(0, len(runs), LEASE_BATCH)
        ]
        details: list[list[Argument]] = []
        for queue, runs in parts:
            details.append(["HMGET", self._keys.queue(queue, "runs"), *runs])
            details.append(["HMGET", self._keys.queue(queue, "progress"), *runs])
        replies = await self._redis.commands(details)
        found = [
            _lease(queue, run, record or b"", progress or b"")
            for index, (queue, runs) in enumerate(parts)
            for run, record, progress in zip(runs, replies[2 * index], replies[2 * index + 1], strict=True)
        ]
        return [lease for lease in found if lease is not None], sum(sizes) <= MAX_LEASES

    async def read_run_names(self, runs: Mapping[str, Sequence[str]]) -> dict[tuple[str, str], tuple[str, str]]:
        """(queue, run) -> its id and its task. Neither ever changes."""
        name = "read_runs_without_arguments"
        left = {queue: list(of_queue) for queue, of_queue in runs.items() if of_queue}
        found: dict[tuple[str, str], tuple[str, str]] = {}
        while left:  # one call may read fewer, where jobs are long
            calls = [ScriptCall(name, self._queue_keys(name, queue), of[:LEASE_BATCH]) for queue, of in left.items()]
            for (queue, of_queue), records in zip(list(left.items()), await self._redis.run_many(calls), strict=True):
                for run, record in zip(of_queue, records, strict=False):
                    if record:
                        found[queue, run] = _name(run, record)
                left[queue] = of_queue[len(records) :]
            left = {queue: of_queue for queue, of_queue in left.items() if of_queue}
        return found

    async def locks(self, queues: Sequence[str], *, lock: str = "", cursor: str | None, limit: int) -> LockPage:
        """Locks that are held or waited for, queue by queue, about `limit` at a time; or the one called `lock` of each.

        A lock that exists throughout is returned at least once, while others come and go.
        """
        queue, position = _lock_position(cursor, queues)
        found: list[LockInfo] = []
        for name in queues[queues.index(queue) if queue else 0 :]:
            while True:
                words: list[Argument] = [position, limit, WAITERS_SHOWN, lock]
                answer = await self._redis.run("read_locks", self._queue_keys("read_locks", name), words)
                position = answer[0].decode()
                found += (_lock_info(name, answer[at : at + 5]) for at in range(1, len(answer), 5))
                if position != "0" and len(found) >= limit:
                    return LockPage(found, f"{name}:{position}")
                if position == "0":
                    break
        return LockPage(found, None)

    async def dependents(self, ref: JobRef, position: int, limit: int) -> tuple[int, list[str]]:
        """Dependents of a run as "queue run name", from a scan position on; and the next position, 0 at the end."""
        assert ref.run is not None, "dependents belong to one run"
        key = self._keys.queue(ref.queue, "dependents", ref.run)
        following, found = await self._redis.command("ZSCAN", key, position, "COUNT", limit)
        return int(following), [member.decode() for member in found[::2]]

    async def tasks(self) -> dict[str, dict[str, Any]]:
        """Task -> what workers published about it: schema, queue, defaults."""
        answer = read_text_hash(await self._redis.command("HGETALL", self._keys.shared("tasks")))
        return {name: msgspec.json.decode(text) for name, text in sorted(answer.items())}

    async def server_info(self) -> dict[str, Any]:
        """The reply of INFO: memory, CPU, persistence, replication."""
        return dict(await self._redis.command("INFO"))

    async def log(self, ref: JobRef, *, start: int = 0) -> list[LogLine]:
        """The log lines of a run, from number `start` on."""
        assert ref.run is not None, "a log belongs to one run"
        lines = await self._redis.command("LRANGE", self._keys.queue(ref.queue, "log", ref.run), start, -1)
        return [_log_line(line.decode()) for line in lines]

    async def raw(self, ref: JobRef) -> dict[str, Any]:
        """A run as it is stored, key by key, for operators."""
        assert ref.run is not None, "a record belongs to one run"
        hashes = ("jobs", "runs", "named", "results", "errors", "history", "progress", "logs", "waiters")
        indexes = (*(state.value for state in JobState), "stopping", "expiring")
        commands = [["HGET", self._keys.queue(ref.queue, name), ref.run] for name in hashes]
        commands += [["ZSCORE", self._keys.queue(ref.queue, name), ref.run] for name in indexes]
        answers = await self._redis.commands(commands)
        return {
            self._keys.queue(ref.queue, name): answer.decode(errors="replace") if isinstance(answer, bytes) else answer
            for name, answer in zip((*hashes, *indexes), answers, strict=True)
            if answer is not None
        }

    def _queue_keys(self, name: str, queue: str) -> list[str]:
        return [self._keys.queue(queue, key) for key in script(name).keys]


def _pause_of(meta: Mapping[str, str]) -> Pause:
    at = meta.get("paused_at", "")
    return Pause(meta.get("paused_by", ""), int(at) if at.isdecimal() else None, meta.get("pause_note", ""))


def _paused_task(queue: str, task: str, info: str, waiting: int) -> PausedTask:
    at, _, encoded = info.partition(" ")
    if not encoded:
        return PausedTask(task, queue, Pause(), waiting, is_resuming=True)
    pause = msgspec.json.decode(encoded, type=Pause)
    return PausedTask(task, queue, msgspec.structs.replace(pause, at=int(at)), waiting)


def _lock_info(queue: str, fields: Sequence[bytes]) -> LockInfo:
    name, holder, since, waiting, waiters = (field.decode() for field in fields)
    return LockInfo(
        queue,
        name,
        f"{queue}:{holder}",
        int(since) if since else None,
        int(waiting),
        tuple(f"{queue}:{waiter}" for waiter in waiters.split()),
    )


def _lease(queue: str, run: bytes, record: bytes, progress: bytes) -> Lease | None:
    """Decodes a run record, see `parse_and_format_run_record.lua`; None if the run is no longer being processed."""
    fields = record.decode().split(" ", 6)
    if len(fields) < 7 or fields[0] != JobState.PROCESSING.value:
        return None
    _, _, worker, claimed_at, _, attempt, _ = fields
    return Lease(queue, run.decode(), worker, int(claimed_at), int(attempt), decode_progress(progress))


def _name(run: str, record: bytes) -> tuple[str, str]:
    try:
        body = decode_body(run, record)
    except UndecodableRecord:
        return run, "?"
    return body.id, body.task


def _lock_position(cursor: str | None, queues: Sequence[str]) -> tuple[str, str]:
    """The queue and the scan position within it where a listing of locks continues."""
    if cursor is None:
        return "", "0"
    queue, _, position = cursor.rpartition(":")
    if queue not in queues or not position.isdecimal() or not position.isascii() or int(position) >= 2**64:
        raise InvalidOption("cursor", f"{cursor!r} was not made by this listing")
    return queue, position


def _score(head: Sequence[bytes]) -> int:
    """The score of the first member of a sorted set, read with its score."""
    return int(float(head[1]))


def _log_line(line: str) -> LogLine:
    at, level, text = line.split(" ", 2)
    return LogLine(int(at), level, text)
