"""Operations on many jobs, as the store keeps them: what is to be done, to which jobs, and how far that has come.

Whoever drives one holds it for a while and saves how far it came; when a driver dies, another goes on from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from rota.store.gateway import Argument, Gateway
from rota.store.keys import Keys
from rota.store.scripts import script

HOLD_MS: Final = 10_000
KEPT_MS: Final = 7 * 24 * 3_600_000
#: Failures that a report names; of more, only the number is known.
NAMED: Final = 100


class Failure(msgspec.Struct, frozen=True):
    """A job that it could not be done to, and why."""

    job: str
    why: str


class OperationInfo(msgspec.Struct, frozen=True, kw_only=True):
    """An operation as it stands. `done` and `failed` are jobs; `matched` all that were found so far."""

    id: str
    verb: str
    #: What the jobs are that it is about, as `rota.jobs` takes it; times as ISO 8601. Empty where they were chosen.
    where: dict[str, Any]
    #: How many jobs were chosen one by one; None where all that match are meant.
    chosen: int | None = None
    #: The queues that it stays in; empty where it may be any.
    queues: list[str] = []
    #: What else it was told: the reason of a cancel, the priority of an update.
    arguments: dict[str, Any] = {}
    state: str = "running"  # running | stopping | stopped | completed
    is_dry_run: bool = False
    per_second: float | None = None
    #: How many jobs there were to be looked at when it began, at most.
    expected: int = 0
    matched: int = 0
    done: int = 0
    failed: int = 0
    failures: list[Failure] = []
    cursor: str | None = None
    created_at: int = 0
    ended_at: int | None = None

    @property
    def has_ended(self) -> bool:
        """True when nothing more will be done."""
        return self.state in ("completed", "stopped")


_info: Final = msgspec.json.Decoder(OperationInfo)
#: What changes while it goes on; the rest is written once.
_MOVING: Final = ("matched", "done", "failed", "failures", "cursor")
#: What tells how it stands; not the chosen jobs, which may be thousands, and which only its driver needs.
_READ: Final = ("plan", "state", "ended_at", *_MOVING)


class OperationStore:
    """What can be done to operations, and asked of them."""

    def __init__(self, gateway: Gateway, keys: Keys) -> None:
        self._gateway = gateway
        self._keys = keys

    async def open(self, info: OperationInfo, jobs: Sequence[str] = ()) -> None:
        """Writes it down, with the jobs that were chosen: from now on whoever comes by goes on with it."""
        key = self._keys.shared("operation", info.id)
        fields: list[Argument] = ["plan", msgspec.json.encode(info), "state", info.state]
        if jobs:
            fields += ("jobs", msgspec.json.encode(jobs))
        await self._gateway.commands(
            [
                ["HSET", key, *fields],
                ["PEXPIRE", key, KEPT_MS],
                ["ZADD", self._keys.shared("operations"), info.created_at, info.id],
                ["ZADD", self._keys.shared("operation_due"), "NX", info.created_at, info.id],
            ]
        )

    async def read(self, operation_id: str) -> OperationInfo | None:
        """One of them; None when it is not kept, or never was."""
        return (await self._read([operation_id]))[0]

    async def jobs(self, operation_id: str) -> list[str]:
        """The jobs that were chosen. Kept until it is over."""
        kept = await self._gateway.command("HGET", self._keys.shared("operation", operation_id), "jobs")
        return [] if kept is None else msgspec.json.decode(kept, type=list[str])

    async def recent(self, limit: int) -> list[OperationInfo]:
        """The latest, the newest first."""
        ids = await self._gateway.command("ZRANGE", self._keys.shared("operations"), 0, limit - 1, "REV")
        return [info for info in await self._read([one.decode() for one in ids]) if info is not None]

    async def take(self, driver: str, *, limit: int = 1, wanted: str = "") -> list[str]:
        """Operations that nobody goes on with, held by this driver from now on."""
        found = await self._run("take_operations", [driver, HOLD_MS, limit, wanted])
        return [one.decode() for one in found]

    async def save(self, info: OperationInfo, driver: str, outcome: str = "") -> str:
        """How far it has come: "saved", "lost" when somebody else has taken it, "stop" when it was asked to."""
        words: list[Argument] = [info.id, driver, HOLD_MS, outcome, KEPT_MS]
        for name in _MOVING:
            words += (name, msgspec.json.encode(getattr(info, name)))
        return (await self._run("save_operation", words)).decode()

    async def stop(self, operation_id: str) -> None:
        """Asks whoever drives it to stop, or who comes next."""
        await self._gateway.command("HSET", self._keys.shared("operation", operation_id), "state", "stopping")

    async def _read(self, ids: Sequence[str]) -> list[OperationInfo | None]:
        answers = await self._gateway.commands([["HMGET", self._keys.shared("operation", one), *_READ] for one in ids])
        return [_read_info(answer) for answer in answers]

    async def _run(self, name: str, arguments: Sequence[Argument]) -> Any:
        return await self._gateway.run(name, [self._keys.shared(key) for key in script(name).keys], arguments)


def _read_info(answer: Any) -> OperationInfo | None:
    fields = {name: value for name, value in zip(_READ, answer, strict=True) if value is not None}
    if "plan" not in fields:
        return None
    moving = {name: msgspec.json.decode(fields[name]) for name in _MOVING if name in fields}
    moving["failures"] = [Failure(**one) for one in moving.get("failures", ())]
    ended_at, state = int(fields["ended_at"]) if "ended_at" in fields else None, fields["state"].decode()
    if ended_at is not None and state == "stopping":
        state = "completed"  # whoever asked for it came too late
    return msgspec.structs.replace(_info.decode(fields["plan"]), state=state, ended_at=ended_at, **moving)
