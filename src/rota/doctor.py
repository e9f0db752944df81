"""Is this server fit for jobs, and is anything left lying? Facts are collected first; what they mean is decided apart.

`rota doctor` prints the findings; a worker looks at them when it starts.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Final, Literal

from rota.client import Rota
from rota.core.codec import encode_body
from rota.core.explain import span
from rota.core.job import DEFAULT_OPTIONS
from rota.errors import StoreDenied, StoreError, StoreFull, StoreUnavailable
from rota.link import FORMAT
from rota.store.door import NewJob
from rota.store.keys import QUEUE_KEYS
from rota.store.reports import Completed
from rota.store.store import Store
from rota.store.views import QueueInfo, WorkerInfo

Level = Literal["ok", "warn", "fail"]

#: Server -> the oldest version that has what Rota uses.
OLDEST: Final[Mapping[str, tuple[int, ...]]] = {"valkey": (8,), "redis": (7,)}
#: Checks that speak of jobs and workers, and not of the server: a worker that starts need not repeat those.
STANDING: Final = frozenset({"workers", "unserved queues", "paused queues", "dead letters"})
#: Where rights are tried out. No queue can be called that.
TRIAL: Final = "~doctor"
#: What a node of a cluster says when all is well with it.
_GOOD: Final = {
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
#: A list longer than this is cut.
NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check came to: how bad it is, what is at risk, what to do."""

    level: Level
    check: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What was seen. None, or nothing, where the server would not say."""

    address: str
    #: Why nothing could be asked at all.
    trouble: str = ""
    server: str = ""
    version: tuple[int, ...] = ()
    role: str = ""
    is_aof_on: bool | None = None
    appendfsync: str | None = None
    #: Which kind of writing to disk failed last time.
    failed_writes: tuple[str, ...] = ()
    maxmemory: int | None = None
    used_memory: int = 0
    policy: str = ""
    evicted_keys: int = 0
    #: What was refused when rights were tried out.
    denied: str = ""
    is_full: bool = False
    skew_ms: int = 0
    latency_ms: float = 0.0
    format: int | None = None
    queues: Sequence[QueueInfo] = field(default_factory=list[QueueInfo])
    workers: Sequence[WorkerInfo] = field(default_factory=list[WorkerInfo])


async def examine(rota: Rota) -> list[Finding]:
    """Looks at the server and at what waits on it. Raises nothing that the server is to blame for."""
    return diagnose(await collect(rota))


# --- deciding ----------------------------------------------------------------------------------------------------


def diagnose(facts: Facts) -> list[Finding]:
    """What the facts mean, the server first."""
    if facts.trouble:
        return [Finding("fail", "server", facts.trouble)]
    findings = [Finding("ok", "server", f"{facts.address} answers")]
    for check in (
        _version,
        _role,
        _aof,
        _disk,
        _memory,
        _rights,
        _clock,
        _latency,
        _format,
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
        yield Finding("warn", "version", "the server does not say which it is; Rota needs Valkey 8 or Redis 7 at least")
        return
    named = f"{facts.server.capitalize()} {'.'.join(map(str, facts.version))}"
    if facts.version < oldest:
        yield Finding(
            "fail", "version", f"{named} is too old: scripts will fail; upgrade to Valkey 8 or Redis 7 at least"
        )
    else:
        yield Finding("ok", "version", named)


def _role(facts: Facts) -> Iterator[Finding]:
    if facts.role == "primary":
        yield Finding("ok", "role", "primary")
    elif facts.role:
        yield Finding("fail", "role", f"this is a {facts.role}, which takes no writes: give the address of its primary")


def _aof(facts: Facts) -> Iterator[Finding]:
    risk = "jobs that were accepted are lost when the server crashes or restarts"
    if facts.is_aof_on is False:
        yield Finding(
            "warn", "append-only file", f"off: {risk}; set `appendonly yes` and `appendfsync everysec` or `always`"
        )
    elif facts.is_aof_on is None:
        yield Finding("warn", "append-only file", f"the server does not say whether it is on; where it is off, {risk}")
    elif facts.appendfsync == "no":
        yield Finding(
            "warn",
            "append-only file",
            "on, but `appendfsync no`: a power cut loses up to about 30 s; set everysec or always",
        )
    elif facts.appendfsync == "always":
        yield Finding("ok", "append-only file", "on, appendfsync always: what was accepted is on disk")
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
            f"the last {what} failed: is the disk full? The server may refuse all writes until it succeeds",
        )


def _memory(facts: Facts) -> Iterator[Finding]:
    if facts.is_full:
        yield Finding(
            "fail", "memory", "maxmemory is reached: new jobs are refused; let workers drain it, or give it more memory"
        )
    if facts.maxmemory is None or not facts.policy:
        yield Finding(
            "warn", "memory", "the server does not say its maxmemory-policy; with any but noeviction, jobs may vanish"
        )
        return
    limit = f"maxmemory {_bytes(facts.maxmemory)}" if facts.maxmemory else "no maxmemory"
    if facts.policy != "noeviction":
        told = (
            f"maxmemory-policy {facts.policy}: when memory runs out, jobs vanish without a word; set it to noeviction"
        )
        level: Level = "fail" if facts.maxmemory else "warn"
        yield Finding(level, "memory", told if facts.maxmemory else f"{told} (there is no maxmemory yet)")
    elif facts.maxmemory and facts.used_memory > FULL_AT * facts.maxmemory and not facts.is_full:
        used = f"{_bytes(facts.used_memory)} of {_bytes(facts.maxmemory)}"
        yield Finding("warn", "memory", f"{used} in use: soon new jobs are refused; add workers or memory")
    elif not facts.is_full:
        yield Finding("ok", "memory", f"{_bytes(facts.used_memory)} in use, {limit}, noeviction")


def _rights(facts: Facts) -> Iterator[Finding]:
    if facts.denied:
        yield Finding("fail", "rights", f"{facts.denied}. Grant it, or connect as another user")
    elif facts.role == "primary" and not facts.is_full:
        yield Finding("ok", "rights", "a trial job was enqueued, claimed, completed and removed")


def _clock(facts: Facts) -> Iterator[Finding]:
    if abs(facts.skew_ms) > MAX_SKEW_MS:
        how = f"{span(abs(facts.skew_ms))} {'ahead of' if facts.skew_ms > 0 else 'behind'} this machine"
        risk = "jobs run by the server's clock, so a `run_at` made from the clock here is as much off"
        yield Finding("warn", "clock", f"the server is {how}: {risk}; set both by NTP")
    else:
        yield Finding("ok", "clock", f"within {span(abs(facts.skew_ms))} of this machine's")


def _latency(facts: Facts) -> Iterator[Finding]:
    shown = f"{facts.latency_ms:.2g} ms per round trip"
    if facts.latency_ms > SLOW_MS:
        yield Finding(
            "warn", "latency", f"{shown}: each claim and report waits for one; run workers nearer to the server"
        )
    else:
        yield Finding("ok", "latency", shown)


def _format(facts: Facts) -> Iterator[Finding]:
    if facts.format is None:
        yield Finding("ok", "format", "nothing is stored yet in this namespace")
    elif facts.format > FORMAT:
        yield Finding(
            "fail", "format", f"the server holds format {facts.format}, this Rota knows {FORMAT}: upgrade it here"
        )
    else:
        yield Finding("ok", "format", f"{facts.format}")


def _workers(facts: Facts) -> Iterator[Finding]:
    alive = [worker for worker in facts.workers if worker.status == "ALIVE"]
    if alive:
        yield Finding("ok", "workers", f"{len(alive)} alive")
    else:
        yield Finding("warn", "workers", "none is alive: jobs wait until one is started with `rota worker module:rota`")


def _unserved(facts: Facts) -> Iterator[Finding]:
    left = [
        (info.name, sum(info.counts[state] for state in ("pending", "scheduled")))
        for info in facts.queues
        if not any(worker.serves(info.name) for worker in facts.workers)
    ]
    waiting = [f"{name} ({count:,} jobs wait)" for name, count in left if count]
    if waiting:
        yield Finding("warn", "unserved queues", f"no worker serves {_some(waiting)}: start one with --queues")


def _paused(facts: Facts) -> Iterator[Finding]:
    paused = [f"{info.name} ({info.counts['pending']:,} pending)" for info in facts.queues if info.is_paused]
    if paused:
        yield Finding("warn", "paused queues", f"{_some(paused)}: nothing of them starts until `rota queue resume`")


def _dead(facts: Facts) -> Iterator[Finding]:
    dead = [f"{info.name} ({info.counts['failed']:,})" for info in facts.queues if info.counts["failed"]]
    if dead:
        yield Finding(
            "warn",
            "dead letters",
            f"jobs failed for good in {_some(dead)}: see `rota dead list`, then redrive or delete them",
        )
    else:
        yield Finding("ok", "dead letters", "none")


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _bytes(number: int) -> str:
    return f"{number / 2**30:.1f} GiB" if number >= 2**30 else f"{number / 2**20:.1f} MiB"


# --- collecting --------------------------------------------------------------------------------------------------


async def collect(rota: Rota, *, tries_rights: bool = True) -> Facts:
    """Asks the server. What one question is refused is left open; the others are asked all the same.

    Without `tries_rights` nothing is written.
    """
    store = rota.connect(f"doctor-{secrets.token_hex(6)}")
    try:
        latency_ms, skew_ms = await _measure(store)
        info = _worst(await _infos(store))
        role = {"master": "primary", "slave": "replica"}.get(str(info.get("role", "")), str(info.get("role", "")))
        server, version = _version_of(info)
        is_usable = role != "replica" and (not version or version >= OLDEST.get(server, ()))
        denied, is_full = await _try_rights(store) if is_usable and tries_rights else ("", False)
        queues, workers = await _standing(rota, is_usable=is_usable)
        return Facts(
            address=rota.address,
            server=server,
            version=version,
            role=role,
            is_aof_on=bool(int(info["aof_enabled"])) if "aof_enabled" in info else None,
            appendfsync=await _appendfsync(store),
            failed_writes=_failed_writes(info),
            maxmemory=int(info["maxmemory"]) if "maxmemory" in info else None,
            used_memory=int(info.get("used_memory", 0)),
            policy=str(info.get("maxmemory_policy", "")),
            evicted_keys=int(info.get("evicted_keys", 0)),
            denied=denied,
            is_full=is_full,
            skew_ms=skew_ms,
            latency_ms=latency_ms,
            format=await _stored_format(store),
            queues=queues,
            workers=workers,
        )
    except StoreError as error:
        return Facts(address=rota.address, trouble=str(error))
    finally:
        await store.gateway.close()


async def server_info(store: Store) -> Mapping[str, Any]:
    """What the server says of itself: of a cluster, in each respect, the node that is worst off."""
    return _worst(await _infos(store))


async def _measure(store: Store) -> tuple[float, int]:
    """Latency, and how far the server's clock is ahead, both in ms. The first call also opens the connection."""
    await store.gateway.command("PING")
    took: list[float] = []
    skews: list[float] = []
    for _ in range(PINGS):
        asked, clock = time.monotonic(), time.time()
        seconds, micros = await store.gateway.command("TIME")
        took.append(time.monotonic() - asked)
        skews.append(int(seconds) + int(micros) / 1e6 - (clock + took[-1] / 2))
    return median(took) * 1000, round(median(skews) * 1000)


async def _infos(store: Store) -> list[dict[str, Any]]:
    """What each primary says of itself: one, but for a cluster."""
    try:
        answers = await store.gateway.everywhere("INFO")
    except StoreDenied:
        return [{}]
    return [_info(answer) for answer in answers]


def _info(answer: Any) -> dict[str, Any]:
    if isinstance(answer, dict):
        return answer  # pyright: ignore[reportUnknownVariableType]
    lines = (line.partition(":") for line in answer.decode().splitlines() if ":" in line)
    return {name: value for name, _, value in lines}


def _worst(infos: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One answer for all nodes of a cluster: in each respect that of the node which is worst off."""
    oldest = min(_version_of(info)[1] for info in infos)
    worst = dict(next(info for info in infos if _version_of(info)[1] == oldest))
    for info in infos:
        worst |= {name: info[name] for name, good in _GOOD.items() if info.get(name, good) != good}
        if not int(info.get("aof_enabled", 1)):
            worst["aof_enabled"] = 0
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


async def _appendfsync(store: Store) -> str | None:
    """The worst of all nodes."""
    try:
        answers = await store.gateway.everywhere("CONFIG", "GET", "appendfsync")
    except StoreError:  # managed servers often do not show their settings
        return None
    words: list[list[Any]] = [["", *answer.values()] if isinstance(answer, dict) else answer for answer in answers]
    found = [_text(pair[1]) for pair in words if len(pair) > 1]
    return min(found, key=lambda text: _FSYNC.index(text) if text in _FSYNC else -1, default=None)


async def _stored_format(store: Store) -> int | None:
    with suppress(StoreDenied):
        stored = await store.gateway.command("GET", store.keys.shared("format"))
        return None if stored is None else int(stored)
    return None


async def _standing(rota: Rota, *, is_usable: bool) -> tuple[list[QueueInfo], list[WorkerInfo]]:
    with suppress(StoreDenied):
        if is_usable:
            return await rota.views.queue_infos(await rota.views.queues()), await rota.views.workers()
    return [], []


async def _try_rights(store: Store) -> tuple[str, bool]:
    """Takes one job through its life, in a queue that nobody can have: what was refused, and whether memory is full."""
    try:
        await store.enqueue(TRIAL, [NewJob("", 0, "", "", encode_body(DEFAULT_OPTIONS, "doctor", b"[]"))])
        token = secrets.token_hex(4)
        for job in (await store.claim(TRIAL, 1, call=16, token=token)).jobs:
            await store.heartbeat(TRIAL, [(job.run, job.claim)])
            await store.progress(TRIAL, [(job.run, job.claim, "1", "1", "")])
            await store.log(TRIAL, job.run, job.claim, 1, ["info trial"])
            await store.report(TRIAL, [Completed(job.run, job.claim, "0:0 doctor", b"")])
        await store.gateway.read_streams({store.keys.queue(TRIAL, "events"): "0"}, 1)
        await _subscribe(store)
    except StoreFull:
        return "", True
    except StoreUnavailable:
        raise
    except StoreError as error:  # a right that a script lacks is not always told as such
        return str(error), False
    finally:
        with suppress(StoreError):
            await _clean_up(store)
    return "", False


async def _subscribe(store: Store) -> None:
    """Says something to itself, and hears it."""
    inbox = store.keys.inbox(store.participant)
    try:
        async with asyncio.timeout(store.gateway.patience):
            async for word in store.gateway.listen(inbox):
                if word:
                    return
                await store.gateway.command("PUBLISH", inbox, "trial")
    except TimeoutError as error:
        raise StoreDenied(
            f"what is published on {store.gateway.address} does not reach those who subscribed"
        ) from error


async def _clean_up(store: Store) -> None:
    """Removes every key that the trial may have made."""
    keys = [store.keys.queue(TRIAL, name) for name, spec in QUEUE_KEYS.items() if "{name}" not in spec.pattern]
    keys += [store.keys.queue(TRIAL, "calls", f"{store.participant}:{kind}") for kind in ("enqueue", "claim")]
    await store.gateway.command("UNLINK", *keys)


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
