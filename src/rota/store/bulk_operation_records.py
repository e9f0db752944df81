"""Bulk operations: their records and their progress.

A driver holds an operation for `HOLD_MS` at a time and saves its progress; when it dies, another resumes from there.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from rota.store.keys import Keys
from rota.store.redis.retrying_client import Argument, RedisClient
from rota.store.redis.script_compiler import script

HOLD_MS: Final = 10_000
KEPT_MS: Final = 7 * 24 * 3_600_000
#: Failures that a report lists; further ones are only counted.
MAX_FAILURES_LISTED: Final = 100
#: Redriven jobs that are remembered, to show what became of them.
MAX_REDRIVEN_LISTED: Final = 1_000


class BulkFailure(msgspec.Struct, frozen=True):
    """A job that the operation failed for, and why."""

    job: str
    reason: str


class OperationInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A bulk operation. `done` and `failed` count jobs; `matched` counts all that were found so far."""

    id: str
    verb: str
    #: The filters, as `rota.jobs` takes them, times in ISO 8601. Empty when the jobs were listed one by one.
    where: dict[str, Any]
    #: The number of jobs listed one by one; None when the operation applies to all that match.
    chosen: int | None = None
    #: The queues that it is restricted to; empty for all.
    queues: list[str] = []
    #: Further arguments: the reason of a cancel, the priority of an update.
    arguments: dict[str, Any] = {}
    #: Who started it.
    by: str = ""
    state: str = "running"  # running | stopping | stopped | completed
    is_dry_run: bool = False
    per_second: float | None = None
    #: Upper bound of the jobs to examine, taken at the start.
    expected: int = 0
    matched: int = 0
    done: int = 0
    failed: int = 0
    failures: list[BulkFailure] = []
    cursor: str | None = None
    created_at: int = 0
    ended_at: int | None = None

    @property
    def has_ended(self) -> bool:
        """True when the operation has ended."""
        return self.state in ("completed", "stopped")


_info: Final = msgspec.json.Decoder(OperationInfo)
#: Fields that change while the operation runs; the others are written once.
_PROGRESS_FIELDS: Final = ("matched", "done", "failed", "failures", "cursor")
#: Without the listed jobs, which may be thousands and which only the driver needs.
_INFO_FIELDS: Final = ("plan", "state", "ended_at", *_PROGRESS_FIELDS)


class BulkOperationStore:
    """Reads and writes bulk operations."""

    def __init__(self, redis: RedisClient, keys: Keys) -> None:
        self._redis = redis
        self._keys = keys
        self._save_numbers = itertools.count(1)

    async def open(self, info: OperationInfo, jobs: Sequence[str] = ()) -> None:
        """Stores an operation, with the jobs listed one by one. From then on any driver resumes it."""
        words: list[Argument] = [info.id, info.created_at, KEPT_MS, "plan", msgspec.json.encode(info)]
        if jobs:
            words += ("jobs", msgspec.json.encode(jobs))
        await self._run("open_operation", words)

    async def read(self, operation_id: str) -> OperationInfo | None:
        """The operation with that id; None when there is none, or it is no longer kept."""
        return (await self._read([operation_id]))[0]

    async def jobs(self, operation_id: str) -> list[str]:
        """The jobs listed one by one. Kept until the operation ends."""
        encoded = await self._redis.command("HGET", self._keys.shared("operation", operation_id), "jobs")
        return [] if encoded is None else msgspec.json.decode(encoded, type=list[str])

    async def recent(self, limit: int) -> list[OperationInfo]:
        """The latest operations, newest first."""
        ids = await self._redis.command("ZRANGE", self._keys.shared("operations"), 0, limit - 1, "REV")
        return [info for info in await self._read([one.decode() for one in ids]) if info is not None]

    async def take_due(self, driver: str, *, limit: int = 1, wanted: str = "") -> list[str]:
        """Takes operations that have no driver. Returns their ids; this driver holds them from then on."""
        found = await self._run("take_due_operations", [driver, HOLD_MS, limit, wanted, next(self._save_numbers)])
        return [one.decode() for one in found]

    async def redriven(self, operation_id: str) -> list[str]:
        """The first jobs that a redrive has redriven, `queue:id@run`; at most `MAX_REDRIVEN_LISTED`."""
        encoded = await self._redis.command("HGET", self._keys.shared("operation", operation_id), "redriven")
        return [] if encoded is None else msgspec.json.decode(encoded, type=list[str])

    async def save(self, info: OperationInfo, driver: str, outcome: str = "", *, redriven: Sequence[str] = ()) -> str:
        """Saves the progress: "saved", "lost" when another driver holds it, "stop" when a stop was requested."""
        words: list[Argument] = [info.id, driver, next(self._save_numbers), HOLD_MS, outcome, KEPT_MS]
        for name in _PROGRESS_FIELDS:
            words += (name, msgspec.json.encode(getattr(info, name)))
        if redriven:
            words += ("redriven", msgspec.json.encode(redriven[:MAX_REDRIVEN_LISTED]))
        return (await self._run("save_operation_progress", words)).decode()

    async def stop(self, operation_id: str) -> None:
        """Requests a stop: the current or the next driver carries it out."""
        await self._run("stop_operation", [operation_id])

    async def _read(self, ids: Sequence[str]) -> list[OperationInfo | None]:
        answers = await self._redis.commands(
            [["HMGET", self._keys.shared("operation", one), *_INFO_FIELDS] for one in ids]
        )
        return [_read_info(answer) for answer in answers]

    async def _run(self, name: str, arguments: Sequence[Argument]) -> Any:
        return await self._redis.run(name, [self._keys.shared(key) for key in script(name).keys], arguments)


def _read_info(answer: Any) -> OperationInfo | None:
    fields = {name: value for name, value in zip(_INFO_FIELDS, answer, strict=True) if value is not None}
    if "plan" not in fields:
        return None
    progress = {name: msgspec.json.decode(fields[name]) for name in _PROGRESS_FIELDS if name in fields}
    progress["failures"] = [BulkFailure(**one) for one in progress.get("failures", ())]
    ended_at = int(fields["ended_at"]) if "ended_at" in fields else None
    return msgspec.structs.replace(
        _info.decode(fields["plan"]), state=fields["state"].decode(), ended_at=ended_at, **progress
    )
