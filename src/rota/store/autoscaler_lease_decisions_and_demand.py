"""The autoscaler's part of the store: the planner lease, settings, decisions, launches, and the demand of queues.

One planner of a namespace holds the lease. Each of its writes carries the fence of the lease, and is refused once
another planner has taken it.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from rota.core.autoscaling.pool_history_chart import PoolSample
from rota.errors import InvalidOption, RotaError
from rota.store.keys import Keys
from rota.store.redis.hash_and_time_replies import read_hash, read_text_hash, read_time_ms
from rota.store.redis.retrying_client import Argument, RedisClient, ScriptCall
from rota.store.redis.script_compiler import script

#: How long the planner lease is held without a renewal.
PLANNER_LEASE_MS: Final = 10_000
#: Keys of a queue that exist only while it has work.
WORK_KEYS: Final = ("pending", "processing", "scheduled", "schedule_due", "outbox")
#: So many queues share a command that asks if any of them has work.
PROBE_GROUP: Final = 10
#: Characters that the stored reasons of one decision may have, and machines that it names.
MAX_REASONS: Final = 600
MAX_MACHINES: Final = 20
#: Decisions that one round trip of `samples` reads.
SAMPLES_BATCH: Final = 1_000
#: Queues whose demand one round trip reads.
DEMAND_BATCH: Final = 500
#: As in `scheduled_score.lua`.
SCHEDULED_SCORE_UNIT: Final = 256


class PlannerFenced(RotaError):
    """Another planner has taken the lease: this one must not act any more."""


class ScalingSettings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Settings changed at run time. None: as the autoscaler was started."""

    is_paused: bool | None = None
    is_dry_run: bool | None = None
    min_workers: int | None = None
    max_workers: int | None = None
    policy: str | None = None
    target_wait_ms: int | None = None


class PlannerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a planner says about itself: where it runs, and with which settings it was started."""

    host: str = ""
    pid: int = 0
    version: str = ""
    provider: str = ""
    queues: list[str] = []
    #: The settings that it works with now, those changed at run time included.
    policy: str = ""
    min_workers: int = 0
    max_workers: int = 0
    target_wait_ms: int | None = None
    interval_ms: int = 0
    is_dry_run: bool = False
    is_paused: bool = False


class ScalingDecision(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A planning round: what was observed, what was decided, and what was done."""

    #: Its id in the stored history; "" for the latest state, which may not be part of it.
    id: str = ""
    at: int
    #: Workers that the pool should have, and workers that the demand alone calls for.
    wanted: int
    needed: int = 0
    running: int = 0
    booting: int = 0
    draining: int = 0
    #: Pending jobs with a priority above normal, and the others; for how long the next one has been due.
    high: int = 0
    normal: int = 0
    oldest_wait_ms: int | None = None
    reasons: list[str] = []
    #: Machines launched, drained and terminated in this round; at most 20 of each are named.
    launched: list[str] = []
    drained: list[str] = []
    terminated: list[str] = []
    launch_count: int = 0
    drain_count: int = 0
    #: The figures did not allow a decision, and nothing was done.
    is_hold: bool = False
    is_dry_run: bool = False
    is_paused: bool = False


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """Machines requested from the provider under one token. Without ids: the answer has not come yet."""

    count: int
    at: int
    machines: list[str] | None = None


class PlannerLease(NamedTuple):
    """The answer to an attempt to take the lease."""

    #: "" if another planner holds it.
    fence: str
    holder: str
    info: PlannerInfo


class ScalingRecord(NamedTuple):
    """The stored state of the autoscaler."""

    now: int
    #: The planner that holds the lease; None if none does.
    holder: str | None
    info: PlannerInfo | None
    latest: ScalingDecision | None
    #: Decisions ever stored.
    decisions: int
    settings: ScalingSettings
    #: The planners that wait for the lease, by id.
    standby: list[str]


class Demand(NamedTuple):
    """The demand of one queue or shard."""

    high: int
    pending: int
    due_since: int
    processing: int
    due: int
    is_paused: bool
    runs: int


_settings: Final = msgspec.json.Decoder(ScalingSettings)
_info: Final = msgspec.json.Decoder(PlannerInfo)
_decision: Final = msgspec.json.Decoder(ScalingDecision)
_launch: Final = msgspec.json.Decoder(Launch)
_sample: Final = msgspec.json.Decoder(PoolSample)


class ScalingStore:
    """Reads and writes the state of the autoscaler in one namespace."""

    def __init__(self, redis: RedisClient, keys: Keys) -> None:
        self._redis = redis
        self._keys = keys
        #: Of the calls that a planner numbers.
        self._numbers = itertools.count(1)
        #: The queues that `queues_with_work` was last asked for, in groups, with the command for each group.
        self._probed: list[str] = []
        self._probes: list[tuple[Sequence[str], list[Argument]]] = []
        self._probe_of: dict[str, list[Argument]] = {}

    # --- the planner -------------------------------------------------------------------------------------------

    async def take_lease(self, holder: str, info: PlannerInfo) -> PlannerLease:
        """Takes or renews the planner lease, or registers as a planner that stands by."""
        words: list[Argument] = [holder, PLANNER_LEASE_MS, next(self._numbers), msgspec.json.encode(info)]
        fence, found, said = await self._run("take_planner_lease", words)
        return PlannerLease(fence.decode(), found.decode(), _info.decode(said or b"{}"))

    async def release_lease(self, fence: str) -> None:
        """Gives the lease back."""
        await self._run("release_planner_lease", [fence])

    async def record(self, fence: str, number: int, decision: ScalingDecision, *, is_kept: bool) -> None:
        """Stores the state after a round, and keeps the decision if it is worth it. Raises PlannerFenced."""
        encoded = msgspec.json.encode(_bounded(decision))
        words: list[Argument] = [fence, number, encoded, encoded if is_kept else b""]
        self._check(await self._run("record_scaling_decision", words))

    async def save_launch(self, fence: str, token: str, launch: Launch | None) -> None:
        """Stores a launch, or removes it. Raises PlannerFenced."""
        encoded = b"" if launch is None else msgspec.json.encode(launch)
        self._check(await self._run("save_launch", [fence, next(self._numbers), token, encoded]))

    async def launches(self) -> dict[str, Launch]:
        """Token -> the launch made under it, as long as its machines have not registered."""
        found = read_hash(await self._redis.command("HGETALL", self._keys.shared("scaling_launches")))
        return {token: _launch.decode(encoded) for token, encoded in found.items()}

    async def bar_machine(self, fence: str, machine: str) -> None:
        """Makes workers that register from this machine later drain at once. Raises PlannerFenced."""
        self._check(await self._run("bar_machine", [fence, machine]))

    async def barred_machines(self) -> set[str]:
        """The machines that are about to be removed."""
        found = await self._redis.command("ZRANGE", self._keys.shared("barred_machines"), 0, -1)
        return {name.decode() for name in found}

    async def drained_by(self) -> dict[str, str]:
        """Worker that was asked to drain -> "operator" or "planner"."""
        return read_text_hash(await self._redis.command("HGETALL", self._keys.shared("draining")))

    async def demand(self, queues: Sequence[str], soon_ms: int) -> list[bytes]:
        """The demand of each queue, encoded: `read_demand` decodes it. Equal bytes mean that nothing has changed."""
        keys = script("read_demand").keys
        found: list[bytes] = []
        for start in range(0, len(queues), DEMAND_BATCH):
            found += await self._redis.run_many(
                [
                    ScriptCall("read_demand", [self._keys.queue(queue, key) for key in keys], [soon_ms])
                    for queue in queues[start : start + DEMAND_BATCH]
                ]
            )
        return found

    async def queues_with_work(self, queues: Sequence[str]) -> set[str]:
        """Those of these queues that hold a job which waits or runs, a schedule or an outcome to deliver.

        Several queues share a command. Where it finds something, each of them is looked at.
        """
        if self._probed != queues:
            self._probed = list(queues)
            size = 1 if self._redis.is_cluster else PROBE_GROUP
            groups = [self._probed[start : start + size] for start in range(0, len(queues), size)]
            self._probe_of = {}
            self._probes = [(group, self._exists(group)) for group in groups]
        counts = await self._redis.commands([command for _, command in self._probes])
        found = [name for (group, _), count in zip(self._probes, counts, strict=True) if count for name in group]
        if self._redis.is_cluster:
            return set(found)
        for name in found:
            if name not in self._probe_of:
                self._probe_of[name] = self._exists([name])
        counts = await self._redis.commands([self._probe_of[name] for name in found])
        return {name for name, count in zip(found, counts, strict=True) if count}

    def _exists(self, queues: Sequence[str]) -> list[Argument]:
        return ["EXISTS", *(self._keys.queue(queue, key) for queue in queues for key in WORK_KEYS)]

    async def next_due(self, queues: Sequence[str]) -> int | None:
        """When the next scheduled job or schedule of these queues falls due, ms; None if there is none."""
        keys = [(key, queue) for key in ("scheduled", "schedule_due") for queue in queues]
        replies: list[Any] = await self._redis.commands(
            [["ZRANGE", self._keys.queue(queue, key), 0, 0, "WITHSCORES"] for key, queue in keys]
        )
        # The score of a scheduled job is its time and, in the lowest 8 bits, its priority.
        return min(
            (
                int(float(score)) // (SCHEDULED_SCORE_UNIT if key == "scheduled" else 1)
                for (key, _), reply in zip(keys, replies, strict=True)
                for score in read_hash(reply).values()
            ),
            default=None,
        )

    # --- clients ------------------------------------------------------------------------------------------------

    async def read(self) -> ScalingRecord:
        """The planner, those that stand by, its latest state, and the settings changed at run time."""
        planner, settings, standby, time = await self._redis.commands(
            [
                ["HGETALL", self._keys.shared("planner")],
                ["GET", self._keys.shared("scaling_settings")],
                ["ZRANGE", self._keys.shared("standby_planners"), 0, -1, "WITHSCORES"],
                ["TIME"],
            ]
        )
        fields = read_hash(planner)
        now = read_time_ms(time)
        is_held = "holder" in fields and int(fields["until"]) > now
        return ScalingRecord(
            now=now,
            holder=fields["holder"].decode() if is_held else None,
            info=_info.decode(fields["info"]) if is_held else None,
            latest=_decision.decode(fields["state"]) if "state" in fields else None,
            decisions=int(fields.get("decisions", 0)),
            settings=_settings.decode(settings or b"{}"),
            standby=sorted(
                name.decode() for name, until in zip(standby[::2], standby[1::2], strict=True) if float(until) > now
            ),
        )

    async def change_settings(self, expected: ScalingSettings, wanted: ScalingSettings) -> bool:
        """Replaces the settings changed at run time. False if they are no longer the expected ones."""
        before, after = (b"" if one == ScalingSettings() else msgspec.json.encode(one) for one in (expected, wanted))
        return await self._run("change_scaling_settings", [self._keys.inbox_prefix, before, after]) == b"changed"

    async def decisions(self, *, before: str | None, limit: int) -> list[ScalingDecision]:
        """Decisions with their ids, newest first; only those older than the decision `before`."""
        if before and not _is_entry_id(before):
            raise InvalidOption("cursor", f"{before!r} is not a cursor of this listing")
        start = f"({before}" if before else "+"
        found: list[Any] = await self._redis.command(
            "XREVRANGE", self._keys.shared("scaling_decisions"), start, "-", "COUNT", limit
        )
        return [
            msgspec.structs.replace(_decision.decode(read_hash(fields)["decision"]), id=entry.decode())
            for entry, fields in found
        ]

    async def samples(self, since: int) -> list[PoolSample]:
        """The figures of all stored decisions since a time, oldest first: up to 50,000, read in batches."""
        found: list[PoolSample] = []
        start = str(max(0, since))
        while True:
            batch: list[Any] = await self._redis.command(
                "XRANGE", self._keys.shared("scaling_decisions"), start, "+", "COUNT", SAMPLES_BATCH
            )
            found += [_sample.decode(read_hash(fields)["decision"]) for _, fields in batch]
            if len(batch) < SAMPLES_BATCH:
                return found
            start = f"({batch[-1][0].decode()}"

    async def _run(self, name: str, arguments: Sequence[Argument]) -> Any:
        return await self._redis.run(name, self._keys.shared_of_script(script(name).keys), arguments)

    @staticmethod
    def _check(answer: bytes) -> None:
        if answer == b"fenced":
            raise PlannerFenced("another planner has taken the lease: this one stands by")


def read_demand(encoded: bytes) -> Demand:
    """Decodes one answer of `ScalingStore.demand`."""
    high, pending, since, processing, due, is_paused, runs = map(int, encoded.split())
    return Demand(high, pending, since, processing, due, bool(is_paused), runs)


def combine_settings(before: ScalingSettings, changes: ScalingSettings) -> ScalingSettings:
    """The settings `before`, with those of `changes` that are not None."""
    given = {name: value for name, value in msgspec.structs.asdict(changes).items() if value is not None}
    return msgspec.structs.replace(before, **given)


def _bounded(decision: ScalingDecision) -> ScalingDecision:
    """The decision with as many bytes as one may have: about 3 KB."""
    reasons: list[str] = []
    for reason in decision.reasons:
        reasons.append(reason[: max(0, MAX_REASONS - sum(map(len, reasons)))])
    return msgspec.structs.replace(
        decision,
        reasons=[reason for reason in reasons if reason],
        launched=decision.launched[:MAX_MACHINES],
        drained=decision.drained[:MAX_MACHINES],
        terminated=decision.terminated[:MAX_MACHINES],
    )


def _is_entry_id(text: str) -> bool:
    parts = text.split("-")
    return len(parts) == 2 and all(p.isascii() and p.isdecimal() and int(p) < 2**64 for p in parts)
