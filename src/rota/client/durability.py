"""Durability of an enqueue: the check that the server fsyncs every write, and the wait for replicas."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, Literal, cast, get_args
from weakref import WeakSet

from rota.errors import ConfigurationError, InvalidOption
from rota.store.create_dependents_and_deliver_outcomes import WORKFLOWS
from rota.store.keys import Keys
from rota.store.redis.hash_and_time_replies import read_text_hash
from rota.store.redis.retrying_client import RedisClient

#: When an enqueue returns: once the server has the job in memory, on disk, or on replicas as well.
Durability = Literal["memory", "fsynced", "replicated"]
_FSYNC_SETTINGS: Final = ("CONFIG", "GET", "appendonly", "appendfsync")


class DurabilityChecker:
    """Makes sure that an enqueue returns only when its jobs are as durable as requested.

    Where it takes queues, `WORKFLOWS` stands for the hash slot of the workflow records.
    """

    def __init__(self, redis: RedisClient, keys: Keys, *, default: Durability, replicas: int) -> None:
        self._redis = redis
        self._keys = keys
        #: The durability of jobs that request none.
        self.default: Durability = default
        self._replicas = replicas
        #: Connections to servers that fsynced every write when last asked.
        self._fsynced = WeakSet[object]()

    async def check(self, queues: Iterable[str], durability: Collection[Durability]) -> None:
        """Runs before a write, to refuse it without leaving anything behind.

        Raises ConfigurationError when "fsynced" is requested and a server of these queues does not fsync every write.
        """
        if "fsynced" not in durability:
            return
        new = [meta for meta in self._keys_of(queues) if await self._redis.connection_of(meta) not in self._fsynced]
        await self._check_fsync(new, "")

    async def read_replication_ids(self, queues: Iterable[str]) -> dict[str, str]:
        """The replication history of each queue's node before a write, for `confirm` to compare with."""
        return await self._redis.read_replication_ids(self._keys_of(queues))

    async def confirm(
        self, queues: Collection[str], durability: Collection[Durability], replication_ids: Mapping[str, str]
    ) -> None:
        """Runs after a write: returns once it is as durable as requested, raises where it may not be."""
        if "fsynced" in durability:
            # A server that fsyncs every write does so before it sends any reply: this one comes after that of the
            # write, so the setting that it shows has put the write on disk. It may have changed since `check`.
            await self._check_fsync(self._keys_of(queues), "stored, but perhaps not on disk: ")
        if "replicated" in durability:
            keys = self._keys_of(queues)
            await self._redis.wait_for_replicas(
                self._replicas, {key: ("HINCRBY", key, "waits", 0) for key in keys}, replication_ids
            )

    def _keys_of(self, queues: Iterable[str]) -> list[str]:
        """A hash in the slot of each queue."""
        return [
            self._keys.shared("meta") if queue == WORKFLOWS else self._keys.queue(queue, "meta") for queue in queues
        ]

    async def _check_fsync(self, metas: Iterable[str], effect: str) -> None:
        for connection, reply in (await self._redis.command_on_nodes_of(metas, *_FSYNC_SETTINGS)).items():
            found = read_text_hash(reply)
            if found != {"appendonly": "yes", "appendfsync": "always"}:
                self._fsynced.discard(connection)
                raise ConfigurationError(
                    f"{effect}durability='fsynced' needs `appendonly yes` and `appendfsync always` on the server "
                    f"(it has {found}): with less, an answer can come before the disk has the job"
                )
            self._fsynced.add(connection)


def checked_durability(durability: Any) -> Durability:
    """Returns `durability`. Raises InvalidOption unless it is one of the three."""
    if durability not in get_args(Durability):
        raise InvalidOption("durability", f"{durability!r} is none of {', '.join(get_args(Durability))}")
    return cast(Durability, durability)
