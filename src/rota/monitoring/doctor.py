"""The doctor: checks the server's configuration and the state of the queues."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Final, Literal

from rota.client.rota import Rota
from rota.client.session import session_of, sessions_of
from rota.client.shard_directory import FORMAT
from rota.core.explain import format_count, format_duration
from rota.core.ids import encode_run
from rota.core.job_options import DEFAULT_OPTIONS
from rota.core.job_record_codec import encode_body
from rota.core.lease_heartbeat_poll_and_grace_durations import NAMES, DurationSettings
from rota.errors import InvalidOption, StoreDenied, StoreError, StoreFull, StoreUnavailable
from rota.monitoring.keys_of_wrong_type import (
    WrongKey,
    find_queue_keys_of_wrong_type,
    find_shared_keys_of_wrong_type,
)
from rota.store.enqueue_batcher import NewJob
from rota.store.job_store import JobStore
from rota.store.keys import QUEUE_KEYS, TRIAL_QUEUE
from rota.store.namespace_settings import SettingsStore
from rota.store.reads import QueueInfo, WorkerInfo
from rota.store.report_encoding import Completed

Level = Literal["ok", "warn", "fail"]

#: Server -> oldest supported version.
OLDEST: Final[Mapping[str, tuple[int, ...]]] = {"valkey": (8,), "redis": (7,)}
#: Checks of jobs and workers instead of the server: a starting worker does not log those.
QUEUE_CHECKS: Final = frozenset({"settings", "workers", "unserved queues", "paused queues", "dead letters"})
TRIAL_KEPT_MS: Final = 60_000
#: The run of the trial job, unless another doctor is at work.
FIRST_RUN: Final = encode_run(1)
#: Values of `INFO` on a healthy node.
_HEALTHY: Final = {
    "role": "master",
    "maxmemory_policy": "noeviction",
    "aof_last_write_status": "ok",
    "rdb_last_bgsave_status": "ok",
}
#: Settings of `appendfsync`, the worst first.
_FSYNC: Final = ("no", "everysec", "always")
PINGS: Final = 5
SLOW_MS: Final = 20.0
MAX_SKEW_MS: Final = 2_000
FULL_AT: Final = 0.9
#: Running workers follow a change of the settings within 5 s; one that has lost its connection takes longer.
FOLLOWED_WITHIN_MS: Final = 30_000
#: Names listed by one finding.
MAX_NAMES: Final = 5


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of one check: its level, the risk, and what to do."""

    level: Level
    check: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Observations about the server. None or empty where the server does not report them."""

    address: str
    #: Why the server could not be reached.
    connection_error: str = ""
    server: str = ""
    version: tuple[int, ...] = ()
    role: str = ""
    #: Replicas of the primary; in a cluster, of the node that has most.
    replicas: int = 0
    min_replicas_to_write: int | None = None
    is_aof_on: bool | None = None
    appendfsync: str | None = None
    #: Kinds of persistence whose last write failed.
    failed_writes: tuple[str, ...] = ()
    maxmemory: int | None = None
    used_memory: int = 0
    policy: str = ""
    evicted_keys: int = 0
    #: Error of the trial job, if a permission is missing.
    denied: str = ""
    #: True if the user may not write at all.
    is_read_only: bool = False
    is_full: bool = False
    skew_ms: int = 0
    latency_ms: float = 0.0
    format: int | None = None
    #: Damaged values that were replaced lately, by queue: "mail: meta fence".
    repairs: Sequence[str] = ()
    #: Keys that another program has written to. Their queues are not among `queues`.
    wrong_keys: Sequence[WrongKey] = ()
    queues: Sequence[QueueInfo] = field(default_factory=list[QueueInfo])
    workers: Sequence[WorkerInfo] = field(default_factory=list[WorkerInfo])
    settings: DurationSettings = field(default_factory=DurationSettings)
    #: The server's time, ms.
    now: int = 0


async def examine(rota: Rota) -> list[Finding]:
    """Returns all findings about the server and its queues. Errors of the server become findings."""
    return diagnose(await collect(rota))


# --- deciding ----------------------------------------------------------------------------------------------------


def diagnose(facts: Facts) -> list[Finding]:
    """Returns the findings that follow from the facts, those about the server first."""
    if facts.connection_error:
        return [Finding("fail", "server", facts.connection_error)]
    findings = [Finding("ok", "server", f"{facts.address} answers")]
    for check in (
        _version,
        _role,
        _replication,
        _aof,
        _disk,
        _memory,
        _permissions,
        _clock,
        _latency,
        _format,
        _repairs,
        _wrong_keys,
        _durations,
        _workers,
        _unserved,
        _paused,
        _dead,
    ):
        findings += check(facts)
    return findings


def _version(facts: Facts) -> Iterator[Finding]:
    oldest = OLDEST.get(facts.server)
    if not facts.version or oldest is None:
        yield Finding(
            "warn", "version", "the server does not report its version; Rota needs Valkey 8 or Redis 7 or newer"
        )
        return
    named = f"{facts.server.capitalize()} {'.'.join(map(str, facts.version))}"
    if facts.version < oldest:
        yield Finding(
            "fail", "version", f"{named} is too old: scripts will fail; upgrade to Valkey 8 or Redis 7 or newer"
        )
    else:
        yield Finding("ok", "version", named)


def _role(facts: Facts) -> Iterator[Finding]:
    if facts.role == "primary":
        yield Finding("ok", "role", "primary")
    elif facts.role:
        yield Finding(
            "fail", "role", f"this is a {facts.role}, which accepts no writes: use the address of its primary"
        )


def _replication(facts: Facts) -> Iterator[Finding]:
    if not facts.replicas or facts.min_replicas_to_write is None:
        return
    least = facts.min_replicas_to_write
    if least:
        yield Finding("ok", "replication", f"min-replicas-to-write {least}, replicas: {facts.replicas}")
    else:
        yield Finding(
            "warn",
            "replication",
            "`min-replicas-to-write 0`: a primary that is cut off from its replicas accepts jobs that are lost when "
            "another server is promoted; set it to 1 (with two replicas or more, so that one may fail)",
        )


def _aof(facts: Facts) -> Iterator[Finding]:
    risk = "accepted jobs are lost when the server crashes or restarts"
    if facts.is_aof_on is False:
        yield Finding(
            "warn", "append-only file", f"off: {risk}; set `appendonly yes` and `appendfsync everysec` or `always`"
        )
    elif facts.is_aof_on is None:
        yield Finding("warn", "append-only file", f"the server does not report whether it is on; if it is off, {risk}")
    elif facts.appendfsync == "no":
        yield Finding(
            "warn",
            "append-only file",
            "on, but `appendfsync no`: a power cut loses up to about 30 s; set everysec or always",
        )
    elif facts.appendfsync == "always":
        yield Finding("ok", "append-only file", "on, appendfsync always: accepted jobs are on disk")
    else:
        how = f"appendfsync {facts.appendfsync}" if facts.appendfsync else "appendfsync unknown"
        yield Finding(
            "ok", "append-only file", f"on, {how}: a power cut may lose the last second; `always` loses nothing"
        )


def _disk(facts: Facts) -> Iterator[Finding]:
    for what in facts.failed_writes:
        yield Finding(
            "fail",
            "disk",
            f"the last {what} failed: check the disk space; the server may refuse all writes until it succeeds",
        )


def _memory(facts: Facts) -> Iterator[Finding]:
    if facts.is_full:
        yield Finding(
            "fail", "memory", "maxmemory is reached: new jobs are refused; let workers drain the queues, or add memory"
        )
    if facts.maxmemory is None or not facts.policy:
        yield Finding(
            "warn",
            "memory",
            "the server does not report its maxmemory-policy; with any other than noeviction it may evict jobs",
        )
        return
    limit = f"maxmemory {_bytes(facts.maxmemory)}" if facts.maxmemory else "no maxmemory"
    if facts.policy != "noeviction":
        risk = (
            f"maxmemory-policy {facts.policy}: under memory pressure the server silently evicts jobs; "
            "set it to noeviction"
        )
        level: Level = "fail" if facts.maxmemory else "warn"
        yield Finding(level, "memory", risk if facts.maxmemory else f"{risk} (maxmemory is not set)")
    elif facts.maxmemory and facts.used_memory > FULL_AT * facts.maxmemory and not facts.is_full:
        used = f"{_bytes(facts.used_memory)} of {_bytes(facts.maxmemory)}"
        yield Finding("warn", "memory", f"{used} in use: new jobs will soon be refused; add workers or memory")
    elif not facts.is_full:
        yield Finding("ok", "memory", f"{_bytes(facts.used_memory)} in use, {limit}, noeviction")


def _permissions(facts: Facts) -> Iterator[Finding]:
    if facts.is_read_only:
        yield Finding(
            "warn",
            "permissions",
            f"this user may only list and show jobs, and cannot enqueue or run any: {facts.denied}",
        )
    elif facts.denied:
        yield Finding("fail", "permissions", facts.denied)
    elif facts.role == "primary" and not facts.is_full:
        yield Finding("ok", "permissions", "a trial job was enqueued, claimed, completed and removed")


def _clock(facts: Facts) -> Iterator[Finding]:
    if abs(facts.skew_ms) > MAX_SKEW_MS:
        how = f"{format_duration(abs(facts.skew_ms))} {'ahead of' if facts.skew_ms > 0 else 'behind'} this machine"
        risk = "jobs run by the server's clock, so a `run_at` computed here is off by as much"
        yield Finding("warn", "clock", f"the server is {how}: {risk}; synchronize both with NTP")
    else:
        yield Finding("ok", "clock", f"within {format_duration(abs(facts.skew_ms))} of this machine's clock")


def _latency(facts: Facts) -> Iterator[Finding]:
    shown = f"{facts.latency_ms:.2g} ms per round trip"
    if facts.latency_ms > SLOW_MS:
        yield Finding(
            "warn", "latency", f"{shown}: each claim and report waits for one; run workers closer to the server"
        )
    else:
        yield Finding("ok", "latency", shown)


def _format(facts: Facts) -> Iterator[Finding]:
    if any(wrong.key.endswith("}:format") for wrong in facts.wrong_keys):
        return
    if facts.format is None:
        yield Finding("ok", "format", "nothing is stored in this namespace yet")
    elif facts.format > FORMAT:
        yield Finding(
            "fail", "format", f"the data has format {facts.format}, this version of Rota reads {FORMAT}: upgrade Rota"
        )
    else:
        yield Finding("ok", "format", f"{facts.format}")


def _repairs(facts: Facts) -> Iterator[Finding]:
    if facts.repairs:
        yield Finding(
            "warn",
            "repairs",
            f"damaged values were replaced in the last 7 days: {_listed(facts.repairs)}; check what else writes to "
            "this namespace, and the memory and disks of the server",
        )


def _wrong_keys(facts: Facts) -> Iterator[Finding]:
    for wrong in facts.wrong_keys[:MAX_NAMES]:
        affected = f"queue {wrong.queue} stands still" if wrong.queue else "what needs it fails"
        yield Finding(
            "fail",
            "keys",
            f"{wrong}: {affected}; find the program that writes to this namespace, then restore the key from a backup, "
            f"or delete it with `UNLINK {wrong.key}` and run `rota doctor --repair`, which rebuilds indexes from the "
            "jobs; then restart the workers",
        )
    if len(facts.wrong_keys) > MAX_NAMES:
        more = format_count(len(facts.wrong_keys) - MAX_NAMES, "key")
        yield Finding("fail", "keys", f"another {more} of a wrong type: repair these, then run the doctor again")


def _durations(facts: Facts) -> Iterator[Finding]:
    try:
        durations = facts.settings.durations
    except InvalidOption as error:
        yield Finding("fail", "settings", f"workers do not use them: {error}: see `rota settings set`")
        return
    names = [name for name in NAMES if getattr(facts.settings, f"{name}_ms") is not None]
    if names:
        given = ", ".join(f"{name} {getattr(durations, f'{name}_ms') / 1000:g} s" for name in names)
        yield Finding("ok", "settings", f"all workers use {given}")
    others = [
        worker.name
        for worker in facts.workers
        if worker.status == "ALIVE" and worker.info.get("settings", 0) != facts.settings.version
    ]
    if others and facts.now - facts.settings.changed_at > FOLLOWED_WITHIN_MS:
        message = f"{_listed(others)} did not follow the change of the settings: restart with this version of Rota"
        yield Finding("warn", "settings", message)


def _workers(facts: Facts) -> Iterator[Finding]:
    alive = [worker for worker in facts.workers if worker.status == "ALIVE"]
    if alive:
        yield Finding("ok", "workers", f"{len(alive)} alive")
    else:
        yield Finding("warn", "workers", "none is running: start one with `rota worker module:rota`")


def _unserved(facts: Facts) -> Iterator[Finding]:
    left = [
        (info.name, sum(info.counts[state] for state in ("pending", "scheduled")))
        for info in facts.queues
        if not any(worker.serves(info.name) for worker in facts.workers)
    ]
    waiting = [f"{name} ({format_count(count, 'job')} waiting)" for name, count in left if count]
    if waiting:
        yield Finding("warn", "unserved queues", f"no worker serves {_listed(waiting)}: start one with --queues")


def _paused(facts: Facts) -> Iterator[Finding]:
    paused = [f"{info.name} ({info.counts['pending']:,} pending)" for info in facts.queues if info.is_paused]
    if paused:
        yield Finding("warn", "paused queues", f"{_listed(paused)}: no job starts until `rota queue resume`")


def _dead(facts: Facts) -> Iterator[Finding]:
    dead = [f"{info.name} ({info.counts['failed']:,})" for info in facts.queues if info.counts["failed"]]
    if dead:
        yield Finding(
            "warn",
            "dead letters",
            f"jobs failed for good in {_listed(dead)}: see `rota dead list`, then redrive or delete them",
        )
    else:
        yield Finding("ok", "dead letters", "none")


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return ", ".join(names[:MAX_NAMES]) + more


def _bytes(number: int) -> str:
    return f"{number / 2**30:.1f} GiB" if number >= 2**30 else f"{number / 2**20:.1f} MiB"


# --- collecting --------------------------------------------------------------------------------------------------


async def collect(rota: Rota, *, tries_permissions: bool = True) -> Facts:
    """Returns facts about the server. Facts that the server denies stay empty.

    Writes nothing unless `tries_permissions`, which takes a trial job through its states.
    """
    store = sessions_of(rota).connect(f"doctor-{secrets.token_hex(6)}")
    try:
        latency_ms, skew_ms = await _measure(store)
        info = _worst(await _infos(store))
        role = {"master": "primary", "slave": "replica"}.get(str(info.get("role", "")), str(info.get("role", "")))
        server, version = _version_of(info)
        is_usable = role != "replica" and (not version or version >= OLDEST.get(server, ()))
        denied, is_full = await _try_permissions(store) if is_usable and tries_permissions else ("", False)
        is_read_only = bool(denied) and await _is_read_only(store)
        wrong_keys, queues, workers = await _queues_and_workers(rota, store, is_usable=is_usable)
        fsync = await _settings(store, "appendfsync")
        least_replicas = await _settings(store, "min-replicas-to-write")
        return Facts(
            address=rota.address,
            server=server,
            version=version,
            role=role,
            is_aof_on=bool(int(info["aof_enabled"])) if "aof_enabled" in info else None,
            replicas=int(info.get("connected_slaves", 0)),
            min_replicas_to_write=min(map(int, least_replicas), default=None),
            appendfsync=min(fsync, key=lambda text: _FSYNC.index(text) if text in _FSYNC else -1, default=None),
            failed_writes=_failed_writes(info),
            maxmemory=int(info["maxmemory"]) if "maxmemory" in info else None,
            used_memory=int(info.get("used_memory", 0)),
            policy=str(info.get("maxmemory_policy", "")),
            evicted_keys=int(info.get("evicted_keys", 0)),
            denied=denied,
            is_read_only=is_read_only,
            is_full=is_full,
            skew_ms=skew_ms,
            latency_ms=latency_ms,
            format=await _stored_format(store, wrong_keys),
            repairs=await _recorded_repairs(store, [info.name for info in queues]),
            wrong_keys=wrong_keys,
            queues=queues,
            workers=workers,
            settings=await _stored_settings(store, wrong_keys),
            now=round(time.time() * 1000) + skew_ms,
        )
    except StoreError as error:
        return Facts(address=rota.address, connection_error=str(error))
    finally:
        await store.redis.close()


async def _stored_settings(store: JobStore, wrong_keys: Sequence[WrongKey]) -> DurationSettings:
    if any(wrong.key == store.keys.shared("settings") for wrong in wrong_keys):
        return DurationSettings()
    try:
        return await SettingsStore(store.redis, store.keys).read()
    except StoreDenied:
        return DurationSettings()


async def server_info(store: JobStore) -> Mapping[str, Any]:
    """Returns the fields of `INFO`; for a cluster, each from the node with the worst value."""
    return _worst(await _infos(store))


async def _measure(store: JobStore) -> tuple[float, int]:
    """Returns the latency, and how far the server's clock is ahead, both in ms."""
    await store.redis.command("PING")  # opens the connection
    took: list[float] = []
    skews: list[float] = []
    for _ in range(PINGS):
        started, clock = time.monotonic(), time.time()
        seconds, micros = await store.redis.command("TIME")
        took.append(time.monotonic() - started)
        skews.append(int(seconds) + int(micros) / 1e6 - (clock + took[-1] / 2))
    return median(took) * 1000, round(median(skews) * 1000)


async def _infos(store: JobStore) -> list[dict[str, Any]]:
    """Returns `INFO` of each primary: several only in a cluster."""
    try:
        replies = await store.redis.command_on_primaries("INFO")
    except StoreDenied:
        return [{}]
    return [_info(reply) for reply in replies]


def _info(reply: Any) -> dict[str, Any]:
    if isinstance(reply, dict):
        return reply  # pyright: ignore[reportUnknownVariableType]
    lines = (line.partition(":") for line in reply.decode().splitlines() if ":" in line)
    return {name: value for name, _, value in lines}


def _worst(infos: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Returns one `INFO` for all nodes of a cluster: each field from the node with the worst value."""
    oldest = min(_version_of(info)[1] for info in infos)
    worst = dict(next(info for info in infos if _version_of(info)[1] == oldest))
    for info in infos:
        worst |= {name: info[name] for name, good in _HEALTHY.items() if info.get(name, good) != good}
        if not int(info.get("aof_enabled", 1)):
            worst["aof_enabled"] = 0
        worst["connected_slaves"] = max(int(one.get("connected_slaves", 0)) for one in (worst, info))
        if _fullness(info) > _fullness(worst):
            worst |= {name: info[name] for name in ("maxmemory", "used_memory")}
    return worst


def _fullness(info: Mapping[str, Any]) -> float:
    most = int(info.get("maxmemory", 0))
    return int(info.get("used_memory", 0)) / most if most else 0.0


def _version_of(info: Mapping[str, Any]) -> tuple[str, tuple[int, ...]]:
    server = "valkey" if "valkey_version" in info else "redis"
    text = str(info.get(f"{server}_version", ""))
    return server, tuple(int(part) for part in text.split(".") if part.isdigit())


def _failed_writes(info: Mapping[str, Any]) -> tuple[str, ...]:
    statuses = {"aof_last_write_status": "write to the append-only file", "rdb_last_bgsave_status": "snapshot"}
    return tuple(what for status, what in statuses.items() if info.get(status, "ok") != "ok")


async def _settings(store: JobStore, name: str) -> list[str]:
    """Returns the value of a setting on each primary; none if the server does not report it."""
    try:
        replies = await store.redis.command_on_primaries("CONFIG", "GET", name)
    except StoreError:  # managed servers often deny CONFIG
        return []
    pairs: list[list[Any]] = [["", *reply.values()] if isinstance(reply, dict) else reply for reply in replies]
    return [_text(pair[1]) for pair in pairs if len(pair) > 1]


async def _stored_format(store: JobStore, wrong_keys: Sequence[WrongKey]) -> int | None:
    key = store.keys.shared("format")
    if any(wrong.key == key for wrong in wrong_keys):
        return None
    with suppress(StoreDenied):
        stored = await store.redis.command("GET", key)
        return None if stored is None else int(stored)
    return None


async def _recorded_repairs(store: JobStore, queues: Sequence[str]) -> list[str]:
    keys = [store.keys.queue(queue, "repairs") for queue in queues]
    with suppress(StoreDenied):
        found = await store.redis.commands([["HKEYS", key] for key in keys])
        return [f"{queue}: {_text(name)}" for queue, names in zip(queues, found, strict=True) for name in names]
    return []


async def _queues_and_workers(
    rota: Rota, store: JobStore, *, is_usable: bool
) -> tuple[list[WrongKey], list[QueueInfo], list[WorkerInfo]]:
    """Returns the keys of a wrong type, the queues without such keys, and the workers if their keys can be read."""
    wrong: list[WrongKey] = []
    with suppress(StoreDenied):
        if is_usable:
            views = session_of(rota).views
            wrong += await find_shared_keys_of_wrong_type(store)
            unreadable = {one.key for one in wrong}
            names = [] if store.keys.shared("queues") in unreadable else await views.queues()
            wrong += await find_queue_keys_of_wrong_type(store, names)
            stopped = {one.queue for one in wrong}
            has_workers = not unreadable & {store.keys.shared(name) for name in ("workers", "worker_seen", "draining")}
            queues = await views.queue_infos([name for name in names if name not in stopped])
            return wrong, queues, await views.workers() if has_workers else []
    return wrong, [], []


async def _try_permissions(store: JobStore) -> tuple[str, bool]:
    """Takes a trial job through its states. Returns the error for a missing permission, and whether memory is full."""
    run = FIRST_RUN
    try:
        await _clean_up(store, run)  # a doctor that was killed may have left something
        await store.enqueue(TRIAL_QUEUE, [NewJob("", 0, "", "", encode_body(DEFAULT_OPTIONS, "doctor", b"[]"))])
        await _expire(store, run)
        token = secrets.token_hex(4)
        for job in (await store.claim(TRIAL_QUEUE, 1, call_number=16, claim_token=token)).jobs:
            run = job.run
            await store.heartbeat(TRIAL_QUEUE, [(job.run, job.claim)])
            await store.save_progress(TRIAL_QUEUE, [(job.run, job.claim, "1", "1", "")])
            await store.append_log(TRIAL_QUEUE, job.run, job.claim, 1, ["info trial"])
            await _expire(store, run)
            await store.report(TRIAL_QUEUE, [Completed(job.run, job.claim, "0:0 doctor", b"")])
        await store.redis.read_streams({store.keys.queue(TRIAL_QUEUE, "events"): "0"}, 1)
        await _subscribe(store)
    except StoreFull:
        return "", True
    except StoreUnavailable:
        raise
    except StoreError as error:  # a permission missing inside a script is not always reported as StoreDenied
        return str(error), False
    finally:
        with suppress(StoreError):
            await _clean_up(store, run)
    return "", False


async def _is_read_only(store: JobStore) -> bool:
    """True if the user may neither delete a key nor run a script that writes."""
    for command in (("UNLINK", store.keys.queue(TRIAL_QUEUE, "meta")), ("EVALSHA", "0" * 40, 0)):
        try:
            await store.redis.command(*command)
        except StoreDenied:
            continue
        except StoreError:
            return False  # no such script: it may run others
        return False
    return True


async def _subscribe(store: JobStore) -> None:
    """Publishes a message and receives it. Raises StoreDenied if it does not arrive."""
    inbox = store.keys.inbox(store.participant)
    try:
        async with asyncio.timeout(store.redis.patience):
            async for message in store.redis.listen(inbox):
                if message:
                    return
                await store.redis.command("PUBLISH", inbox, "trial")
    except TimeoutError as error:
        raise StoreDenied(f"messages published on {store.redis.address} do not reach subscribers") from error


async def _clean_up(store: JobStore, run: str) -> None:
    """Deletes all keys of the trial job."""
    await store.redis.command("UNLINK", *_trial_keys(store, run))


async def _expire(store: JobStore, run: str) -> None:
    """Lets all keys of the trial job expire, should the doctor be killed before it deletes them."""
    await store.redis.commands([["PEXPIRE", key, TRIAL_KEPT_MS] for key in _trial_keys(store, run)])


def _trial_keys(store: JobStore, run: str) -> list[str]:
    parts = {
        "log": [run],
        "task_index": [run[:7]],
        "kept": ["completed:0:0"],
        "last_reply": [f"{store.participant}:{kind}" for kind in ("enqueue", "claim")],
    }
    names = [(name, part) for name, some in parts.items() for part in some]
    names += [(name, "") for name, spec in QUEUE_KEYS.items() if "{name}" not in spec.pattern]
    return [store.keys.queue(TRIAL_QUEUE, name, part) for name, part in names]


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
