"""What one event loop shares of a client: its connections, the store, the inbox, and who waits for which run."""

from __future__ import annotations

import asyncio
import math
import secrets
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final, Literal, cast, get_args

import msgspec

from rota.core.after import Parent
from rota.core.job import DEFAULT_QUEUE, MAX_SHARDS, JobRef, choose_shard, shard_names
from rota.core.schedule import Schedule
from rota.core.workflow import ENDED, STUCK
from rota.errors import (
    ConfigurationError,
    InvalidOption,
    JobNotFound,
    StoreError,
    StoreUnsupported,
    WorkflowNotFound,
)
from rota.store.flows import Flows
from rota.store.operations import OperationStore
from rota.store.search import Search
from rota.store.store import Store
from rota.store.tallies import Tallies
from rota.store.ties import FLOWS, SLICE, Ties
from rota.store.views import Views

Durability = Literal["memory", "fsynced", "replicated"]

#: Version of what is stored. A server that holds a newer one is refused.
FORMAT: Final = 1
#: However good the pushes are, whoever waits looks for himself this often.
LOOK_AGAIN_S: Final = 2.0
REGISTER_AGAIN_S: Final = 60.0


class Link:
    """The connections of one event loop, and what is known through them."""

    def __init__(self, store: Store, durability: Durability, replicas: int, declared: Mapping[str, int]) -> None:
        self.store = store
        self.gateway = store.gateway
        self.ties = Ties(store)
        self.flows = Flows(store, self.ties)
        self.views = Views(store.gateway, store.keys)
        self.operations = OperationStore(store.gateway, store.keys)
        self.search = Search(store.gateway, store.keys, self.views)
        self.tallies = Tallies(store.gateway, store.keys)
        #: What a receipt is worth where nothing else is asked for.
        self.durability: Durability = durability
        self._replicas = replicas
        #: Queue -> the number of shards that the program declares.
        self._declared = declared
        #: Queue -> how many it has, and when that was heard.
        self._shards: dict[str, tuple[int, float]] = {}
        self._turn = secrets.randbelow(MAX_SHARDS)
        self._is_checked = False
        self._is_fsynced = False
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._registered: dict[str, float] = {}
        self._listening: asyncio.Task[None] | None = None
        self._waiters: dict[tuple[str, str], set[asyncio.Event]] = {}

    async def check(self) -> None:
        """Refuses a server that holds a newer format, once per link."""
        if self._is_checked:
            return
        await self._together("check", self._check)

    async def _together(self, what: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Does it once for all who ask meanwhile; one of them leaving does not stop it for the others."""
        task = self._under_way.get(what)
        if task is None:
            task = self._under_way[what] = asyncio.create_task(work())
            task.add_done_callback(lambda _: self._under_way.pop(what))
        await asyncio.shield(task)

    async def _check(self) -> None:
        stored = await self.gateway.command("GET", self.store.keys.shared("format"))
        if stored is None:
            # Nobody has used it before: a server too old for the scripts is to say so before anything is written.
            await self.views.read(DEFAULT_QUEUE, [])
        elif not stored.isdigit() or int(stored) > FORMAT:
            raise StoreUnsupported(
                f"the server holds format {stored.decode(errors='replace')}, this version of Rota knows {FORMAT}: "
                "upgrade Rota, or use another namespace"
            )
        if self.durability == "fsynced":
            await self._check_fsync()
        self._is_checked = True

    def is_ready_for(self, queue: str, durability: Durability) -> bool:
        """True when a job for that queue can be stored right away, as durably as that."""
        return (
            self._is_checked
            and self._registered.get(queue, -math.inf) > asyncio.get_running_loop().time() - REGISTER_AGAIN_S
            and (durability == "memory" or (durability == "fsynced" and self._is_fsynced))
        )

    async def make_ready(self, queues: Iterable[str], durability: Collection[Durability]) -> None:
        """Refuses what the server could not keep, before anything is stored; and lists the queues."""
        queues = list(queues)
        await self.check()
        if "fsynced" in durability and not self._is_fsynced:
            await self._together("fsync", self._check_fsync)
        await self.register(queues)
        if "replicated" in durability:
            names = [name for queue in queues for name in await self.names_of(queue)]
            await self.gateway.note_lineages([self.store.keys.queue(name, "meta") for name in names])

    async def _check_fsync(self) -> None:
        for answer in await self.gateway.everywhere("CONFIG", "GET", "append*"):
            settings = _settings(answer)
            found = {name: settings.get(name) for name in ("appendonly", "appendfsync")}
            if found != {"appendonly": "yes", "appendfsync": "always"}:
                raise ConfigurationError(
                    "durability='fsynced' needs `appendonly yes` and `appendfsync always` on the server "
                    f"(it has {found}): with less, an answer can come before the disk has the job"
                )
        self._is_fsynced = True

    async def register(self, queues: Iterable[str]) -> None:
        """Makes sure that the queues are listed: once in a while, as the server may have lost its data meanwhile."""
        now = asyncio.get_running_loop().time()
        new = [queue for queue in queues if self._registered.get(queue, -math.inf) <= now - REGISTER_AGAIN_S]

        async def register() -> None:
            await self.gateway.command("SET", self.store.keys.shared("format"), FORMAT, "NX")
            found = await self.store.enlist({queue: self._declared.get(queue, 0) for queue in new})
            for queue, count in found.items():
                _check_shards(queue, self._declared.get(queue, count), count)
                self._shards[queue] = (count, now)
                self._registered[queue] = now

        if new:
            await self._together(f"register {' '.join(new)}", register)

    # --- shards ------------------------------------------------------------------------------------------------

    async def names_of(self, queue: str) -> list[str]:
        """A queue's shards; the queue itself where it has none."""
        if "~" in queue:
            return [queue]
        base = queue.removesuffix("-fail")
        now = asyncio.get_running_loop().time()
        count, heard_at = self._shards.get(base, (0, -math.inf))
        if heard_at <= now - REGISTER_AGAIN_S:
            # What is declared and has never been used will have as many.
            count = await self.views.shards_of(base) or self._declared.get(base, 0)
            self._shards[base] = (count, now)
        return shard_names(queue, count)

    async def locate(self, ref: JobRef) -> JobRef:
        """The same job with the shard that it is in, where its queue has shards."""
        names = await self.names_of(ref.queue)
        if names == [ref.queue]:
            return ref
        return JobRef(choose_shard(ref.queue, len(names), id=ref.id, lock="", turn=0), ref.id, ref.run)

    async def locate_parent(self, parent: Parent) -> Parent:
        """The same of what a job comes after."""
        ref = await self.locate(parent.ref)
        return parent if ref == parent.ref else msgspec.structs.replace(parent, ref=ref)

    async def check_parents(self, parents: Iterable[Parent]) -> None:
        """Refuses jobs that are not there, and must be. Raises JobNotFound."""
        by_queue: dict[str, list[JobRef]] = {}
        for parent in parents:
            if parent.if_gone == "refused":
                ref = await self.locate(parent.ref)
                by_queue.setdefault(ref.queue, []).append(ref)
        for queue, refs in by_queue.items():
            for start in range(0, len(refs), SLICE):
                part = refs[start : start + SLICE]
                for ref, found in zip(part, await self.views.read(queue, part, detail="brief"), strict=True):
                    if found is None:
                        raise JobNotFound(str(ref))

    async def settle(self, schedule: Schedule) -> Schedule:
        """A schedule in the shard where it lives, with its jobs. Lists its queue."""
        await self.register([schedule.queue])
        queue = self.choose(schedule.queue, "" if schedule.lock else schedule.name, schedule.lock)
        return msgspec.structs.replace(schedule, queue=queue)

    def choose(self, queue: str, job_id: str, lock: str) -> str:
        """Where a new job goes, in a queue that is registered."""
        count = self._shards[queue][0]
        if not count:
            return queue
        self._turn += 1
        return choose_shard(queue, count, id=job_id, lock=lock, turn=self._turn)

    async def make_durable(self, queues: Iterable[str]) -> None:
        """Waits for the replicas of the queues."""
        metas = [self.store.keys.queue(queue, "meta") for queue in queues]
        await self.gateway.wait_for_replicas(self._replicas, {meta: ("HINCRBY", meta, "waits", 0) for meta in metas})

    async def wait_ended(self, ref: JobRef) -> JobRef:
        """See `Rota.wait_ended`."""
        self._begin_to_listen()
        if ref.run is None:
            ref = (await self._watch(ref))[0]
        key = (ref.queue, ref.run or "")
        ended = asyncio.Event()
        # Listening comes before looking, so that the end cannot fall in between.
        self._waiters.setdefault(key, set()).add(ended)
        try:
            while True:
                pinned, has_ended = await self._watch(ref)
                if has_ended:
                    return pinned
                if pinned != ref:  # a follow-up that has become a part of the run before it
                    return await self.wait_ended(pinned)
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_AGAIN_S):
                        await ended.wait()
                ended.clear()
        finally:
            self._waiters[key].discard(ended)
            if not self._waiters[key]:
                del self._waiters[key]

    async def wait_flow_ended(self, flow_id: str) -> None:
        """Until a workflow has ended, or waits for a human."""
        self._begin_to_listen()
        key = (FLOWS, flow_id)
        ended = asyncio.Event()
        self._waiters.setdefault(key, set()).add(ended)
        try:
            while (state := await self.flows.watch(flow_id)) not in (*ENDED, *STUCK):
                if state == "missing":
                    raise WorkflowNotFound(flow_id)
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_AGAIN_S):
                        await ended.wait()
                ended.clear()
        finally:
            self._waiters[key].discard(ended)
            if not self._waiters[key]:
                del self._waiters[key]

    def _begin_to_listen(self) -> None:
        if self._listening is None or self._listening.done():
            self._listening = asyncio.create_task(self._listen_while_possible(), name="rota-inbox")

    async def _watch(self, ref: JobRef) -> tuple[JobRef, bool]:
        seen = await self.store.watch(ref)
        if seen is None:
            raise JobNotFound(str(ref))
        return JobRef(ref.queue, ref.id, seen[0]), seen[1]

    async def _listen_while_possible(self) -> None:
        with suppress(StoreError):  # who waits looks for himself every now and then, and hears of it there
            await self._listen()

    async def _listen(self) -> None:
        async for message in self.gateway.listen(self.store.keys.inbox(self.store.participant)):
            word, _, rest = message.partition(" ")
            if word == "ended":
                queue, _, run = rest.partition(" ")
                woken = list(self._waiters.get((queue, run), ()))
            else:  # a gap: anything may have ended meanwhile
                woken = [event for events in self._waiters.values() for event in events]
            for event in woken:
                event.set()

    async def close(self) -> None:
        """Closes the connections."""
        if self._listening is not None:
            self._listening.cancel()
            with suppress(asyncio.CancelledError):
                await self._listening
        await self.gateway.close()


def _check_shards(queue: str, wanted: int, count: int) -> None:
    if wanted != count:
        has = f"{count} shards" if count else "none"
        raise ConfigurationError(
            f"queue {queue!r} is declared with {wanted} shards, and has been used with {has}: jobs of one id, or of "
            "one lock, would no longer meet; declare what it has, or take another name"
        )


def checked_durability(durability: Any) -> Durability:
    """One of the three."""
    if durability not in get_args(Durability):
        raise InvalidOption("durability", f"{durability!r} is none of {', '.join(get_args(Durability))}")
    return cast(Durability, durability)


def _settings(answer: Any) -> dict[str, str]:
    if hasattr(answer, "items"):
        return {_text(key): _text(value) for key, value in answer.items()}
    return {_text(answer[at]): _text(answer[at + 1]) for at in range(0, len(answer), 2)}


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
