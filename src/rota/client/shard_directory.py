"""The shard directory: the shards of each queue, and the one that a job or a schedule belongs to.

Known after `register`, which adds a queue to the list that the server keeps.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterable, Mapping
from time import monotonic
from typing import Final

import msgspec

from rota.client.single_flight import SingleFlight
from rota.core.dependencies import Parent
from rota.core.ids import JobRef
from rota.core.schedule import Schedule
from rota.core.shards import MAX_SHARDS, choose_shard, shard_names
from rota.errors import ConfigurationError
from rota.store.job_store import JobStore
from rota.store.reads import Views

#: Version of the stored data. A server that holds a newer one is refused.
FORMAT: Final = 1
#: Registrations and shard counts are renewed this often: the server may have lost its data.
REFRESH_S: Final = 60.0


class ShardDirectory:
    """The shards of each queue, as far as one session knows them."""

    def __init__(self, store: JobStore, views: Views, declared: Mapping[str, int]) -> None:
        self._store = store
        self._views = views
        #: Queue -> the number of shards that the program declares.
        self._declared = declared
        #: Queue -> its number of shards, and when that was read.
        self._counts: dict[str, tuple[int, float]] = {}
        #: Queue -> when it was registered.
        self._registered: dict[str, float] = {}
        #: Spreads jobs without id and lock evenly.
        self._turn = secrets.randbelow(MAX_SHARDS)
        self._single_flight = SingleFlight()

    def is_registered(self, queue: str) -> bool:
        """True when `register` has nothing to do for the queue."""
        return self._registered.get(queue, -math.inf) > monotonic() - REFRESH_S

    async def register(self, queues: Iterable[str]) -> None:
        """Adds queues to the list that the server keeps, with their declared shards; at most once per `REFRESH_S`.

        Raises ConfigurationError when a queue has another number of shards than declared.
        """
        new = [queue for queue in queues if not self.is_registered(queue)]
        if new:
            await self._single_flight.run(f"register {' '.join(new)}", lambda: self._register(new))

    async def _register(self, queues: Iterable[str]) -> None:
        now = monotonic()
        await self._store.redis.command("SET", self._store.keys.shared("format"), FORMAT, "NX")
        found = await self._store.register_queues({queue: self._declared.get(queue, 0) for queue in queues})
        for queue, count in found.items():
            _check_count(queue, self._declared.get(queue, count), count)
            self._counts[queue] = (count, now)
            self._registered[queue] = now

    async def names_of(self, queue: str) -> list[str]:
        """The names of a queue's shards; the queue itself where it has none."""
        if "~" in queue:
            return [queue]
        base = queue.removesuffix("-fail")
        now = monotonic()
        count, read_at = self._counts.get(base, (0, -math.inf))
        if read_at <= now - REFRESH_S:
            # A queue that is declared and was never used will have the declared number.
            count = await self._views.shards_of(base) or self._declared.get(base, 0)
            known = self._counts.get(base)
            if known is None or known[1] < now:
                self._counts[base] = (count, now)
            else:  # it was registered, or read again, while this call was under way
                count = known[0]
        return shard_names(queue, count)

    async def names_of_all(self, queue: str | None) -> list[str]:
        """The names of one queue's shards, or of all queues and shards when `queue` is empty."""
        return await self.names_of(queue) if queue else list(await self._views.queues())

    async def locate(self, ref: JobRef) -> JobRef:
        """Returns the reference with the shard of the job, where its queue has shards."""
        names = await self.names_of(ref.queue)
        if names == [ref.queue]:
            return ref
        return JobRef(choose_shard(ref.queue, len(names), id=ref.id, lock="", turn=0), ref.id, ref.run)

    async def locate_parent(self, parent: Parent) -> Parent:
        """Returns the parent with its reference located."""
        ref = await self.locate(parent.ref)
        return parent if ref == parent.ref else msgspec.structs.replace(parent, ref=ref)

    async def locate_schedule(self, schedule: Schedule) -> Schedule:
        """Returns the schedule with the shard that holds it and its jobs. Registers its queue."""
        await self.register([schedule.queue])
        queue = self.choose(schedule.queue, "" if schedule.lock else schedule.name, schedule.lock)
        return msgspec.structs.replace(schedule, queue=queue)

    def choose(self, queue: str, job_id: str, lock: str) -> str:
        """Returns the shard for a new job of a registered queue."""
        count = self._counts[queue][0]
        if not count:
            return queue
        self._turn += 1
        return choose_shard(queue, count, id=job_id, lock=lock, turn=self._turn)


def _check_count(queue: str, declared: int, count: int) -> None:
    if declared != count:
        has = f"{count} shards" if count else "none"
        raise ConfigurationError(
            f"queue {queue!r} is declared with {declared} shards, and has been used with {has}: jobs of one id, or of "
            "one lock, would no longer meet; declare what it has, or take another name"
        )
