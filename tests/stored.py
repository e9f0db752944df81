"""Reads what a server holds, of any type, in few round trips: some tests compare thousands of keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import redis

#: type -> command that reads all of it
_READERS: Final[Mapping[bytes, Callable[[redis.Redis, str], object]]] = {
    b"hash": lambda client, key: client.hgetall(key),
    b"zset": lambda client, key: client.zrange(key, 0, -1, withscores=True),
    b"list": lambda client, key: client.lrange(key, 0, -1),
    b"set": lambda client, key: client.smembers(key),
    b"stream": lambda client, key: client.xrange(key),
    b"string": lambda client, key: client.get(key),
    b"none": lambda client, key: client.get(key),  # it has just expired
}


def read_keys(client: redis.Redis, keys: Sequence[str]) -> dict[str, Any]:
    """Returns each key with all that it holds."""
    with client.pipeline(transaction=False) as pipeline:
        for key in keys:
            pipeline.type(key)
        for key, kind in zip(keys, pipeline.execute(), strict=True):
            _READERS[kind](pipeline, key)
        return dict(zip(keys, pipeline.execute(), strict=True))


def find_keys(client: redis.Redis, namespace: str) -> list[str]:
    """Returns the keys of a namespace, sorted."""
    return sorted(key.decode() for key in client.scan_iter(match=f"{namespace}:*", count=1_000))
