"""What a test left behind: each key must expire by itself, or be declared permanent in `rota.store.keys`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, cast

import redis

PAGE: Final = 1_000
NO_EXPIRY: Final = -1


def leaked_keys(client: redis.Redis, namespace: str, is_permanent: Callable[[str, str], bool]) -> list[str]:
    """The namespace's keys, with their types, that neither expire nor are declared permanent."""
    leaked: list[str] = []
    for page in _pages(client, namespace):
        with client.pipeline(transaction=False) as pipe:
            for key in page:
                pipe.pttl(key)
                pipe.type(key)
            replies = cast(list[object], pipe.execute())
        for key, ttl, kind in zip(page, replies[::2], replies[1::2], strict=True):
            name = key.decode(errors="backslashreplace")
            if ttl == NO_EXPIRY and not is_permanent(name, namespace):
                leaked.append(f"{name} ({cast(bytes, kind).decode()})")
    return sorted(set(leaked))


def delete_keys(client: redis.Redis, namespace: str) -> None:
    """Removes every key of the namespace."""
    for page in _pages(client, namespace):
        client.unlink(*page)


def _pages(client: redis.Redis, namespace: str) -> Iterator[list[bytes]]:
    # A namespace is random, so that a key which contains it anywhere is one of its own.
    cursor = 0
    while True:
        cursor, page = cast(tuple[int, list[bytes]], client.scan(cursor, match=f"*{namespace}*", count=PAGE))
        if page:
            yield page
        if cursor == 0:
            return
