"""Finds keys of Rota whose type is not the one that Rota stores there: another program has written to them.

Keys of which there is one for each job, lock or rule are not looked at: that would take a scan of all keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from rota.store.job_store import JobStore
from rota.store.keys import GLOBAL_KEYS, QUEUE_KEYS, KeySpec, failures_of

#: Keys that one round trip asks for.
BATCH: Final = 2_000
NAMES: Final = {"zset": "sorted set"}


class WrongKey(NamedTuple):
    """A key, the queue that it belongs to ("" for none), its type and the one that it should have."""

    key: str
    queue: str
    found: str
    wanted: str

    def __str__(self) -> str:
        found, wanted = (NAMES.get(one, one) for one in (self.found, self.wanted))
        return f"{self.key} is a {found} and should be a {wanted}"


async def find_shared_keys_of_wrong_type(store: JobStore) -> list[WrongKey]:
    """The keys of the wrong type among those that belong to no queue."""
    return await _check(store, [(store.keys.shared(name), "", spec.type) for name, spec in _single(GLOBAL_KEYS)])


async def find_queue_keys_of_wrong_type(store: JobStore, queues: Iterable[str]) -> list[WrongKey]:
    """The keys of the wrong type among those of these queues and of their failure queues."""
    both = dict.fromkeys(name for queue in queues for name in (queue, failures_of(queue)))
    expected = [
        (store.keys.queue(queue, name), queue, spec.type) for queue in both for name, spec in _single(QUEUE_KEYS)
    ]
    return await _check(store, expected)


async def _check(store: JobStore, expected: Sequence[tuple[str, str, str]]) -> list[WrongKey]:
    """Compares the types of keys: (key, queue, type) for each."""
    wrong: list[WrongKey] = []
    for start in range(0, len(expected), BATCH):
        part = expected[start : start + BATCH]
        types: list[bytes] = await store.redis.commands([["TYPE", key] for key, _, _ in part])
        for (key, queue, wanted), answer in zip(part, types, strict=True):
            found = answer.decode()
            if found not in ("none", wanted):
                wrong.append(WrongKey(key, queue, found, wanted))
    return wrong


def _single(specs: Mapping[str, KeySpec]) -> Iterator[tuple[str, KeySpec]]:
    """The keys that exist once."""
    return ((name, spec) for name, spec in specs.items() if "{name}" not in spec.pattern)
