"""The copy that a mirror keeps on a second server: one line of an export for each job, schedule and workflow."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final

from rota.core.job_copy import bytes_of, text_of
from rota.errors import ConfigurationError
from rota.store.job_store import JobStore
from rota.store.redis.retrying_client import Argument

#: Lines that one call writes, and reads.
BATCH: Final = 100
#: The pseudo queue of workflows, as in the streams of events.
WORKFLOW_LINES: Final = "~"


class MirrorStore:
    """Reads and writes the lines of a mirror. All of them are written under one fence: the newest mirror's."""

    def __init__(self, store: JobStore) -> None:
        self._store = store
        self._redis = store.redis
        self._keys = store.keys
        self._fence = 0

    async def open(self, new_id: str) -> str:
        """Takes over the mirror from the one that wrote it before. Returns its id: `new_id` if there was none."""
        key = self._keys.shared("mirror")
        self._fence = int(await self._redis.command("HINCRBY", key, "opened", 1))
        await self._redis.command("HSETNX", key, "id", new_id)
        return text_of(await self._redis.command("HGET", key, "id"))

    async def id(self) -> str:
        """The id of the mirror; "" if there is none."""
        return text_of(await self._redis.command("HGET", self._keys.shared("mirror"), "id") or b"")

    async def queues(self) -> list[str]:
        """The queues that the mirror has, but for the workflows."""
        names = await self._redis.command("SMEMBERS", self._keys.shared("mirrored_queues"))
        return sorted(map(text_of, names))

    async def add_queue(self, queue: str) -> None:
        """Adds a queue to those that the mirror has."""
        await self._redis.command("SADD", self._keys.shared("mirrored_queues"), queue)

    async def position(self, queue: str) -> str:
        """How far the mirror has followed the events of a queue; "" if it never has."""
        return text_of(await self._redis.command("HGET", self._keys.queue(queue, "mirror"), "position") or b"")

    async def write(
        self, queue: str, lines: Mapping[str, str], removed: Sequence[str] = (), *, position: str = ""
    ) -> None:
        """Writes lines by their fields, removes others, then the position. Raises ConfigurationError if replaced."""
        pairs = list(lines.items())
        for start in range(0, max(1, len(pairs)), BATCH):
            part, is_last = pairs[start : start + BATCH], start + BATCH >= len(pairs)
            gone = removed if start == 0 else ()
            words: list[Argument] = [self._fence, position if is_last else "", len(gone), *gone]
            for name, line in part:
                words += (name, bytes_of(line))
            answer = await self._redis.run("write_mirror", self._store.script_keys("write_mirror", queue), words)
            if answer != b"written":
                raise ConfigurationError("another `rota mirror` has taken over this copy: run only one of them")

    async def read(self, queue: str, fields: Sequence[str]) -> list[str | None]:
        """The lines of these fields."""
        if not fields:
            return []
        found = await self._redis.command("HMGET", self._keys.queue(queue, "mirrored"), *fields)
        return [None if line is None else text_of(line) for line in found]

    async def walk(self, queue: str) -> AsyncIterator[dict[str, str]]:
        """Yields all lines of a queue, slice by slice."""
        cursor = "0"
        while True:
            found, page = await self._redis.command(
                "HSCAN", self._keys.queue(queue, "mirrored"), cursor, "COUNT", BATCH
            )
            yield {text_of(name): text_of(line) for name, line in zip(page[::2], page[1::2], strict=True)}
            cursor = text_of(found)
            if cursor == "0":
                return
