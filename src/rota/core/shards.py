"""Shards: the parts of a queue that is spread over the nodes of a cluster, and which of them a job belongs to."""

from __future__ import annotations

import zlib
from typing import Final

from rota.errors import InvalidOption

MAX_SHARDS: Final = 256


def shard_name(queue: str, shard: int, count: int) -> str:
    """Returns the name of a shard: `mail~3of8`, or `mail~3of8-fail` for the failure queue. A shard is a queue."""
    base = queue.removesuffix("-fail")
    return f"{base}~{shard + 1}of{count}{queue[len(base) :]}"


def shard_names(queue: str, count: int) -> list[str]:
    """Returns the names of all shards; only the queue itself if it has none, or is one."""
    return [shard_name(queue, shard, count) for shard in range(count)] if count and "~" not in queue else [queue]


def base_of(queue: str) -> str:
    """Returns the queue that a shard belongs to: `mail~3of8` → `mail`. Other names are returned unchanged."""
    base = queue.removesuffix("-fail")
    return base.partition("~")[0] + queue[len(base) :]


def choose_shard(queue: str, count: int, *, id: str, lock: str, turn: int) -> str:
    """Returns the shard of a job: by its lock, else by its id, else round robin (`turn`).

    Raises InvalidOption for a job with both: all jobs of a lock, and all runs of an id, must be in one shard.
    """
    if id and lock:
        raise InvalidOption(
            "lock", f"queue {queue!r} has shards: use an id or a lock, not both, because either selects the shard"
        )
    return shard_name(queue, zlib.crc32((lock or id).encode()) % count if lock or id else turn % count, count)
