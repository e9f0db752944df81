"""The copy that a mirror keeps on a second server: one line of an export for each job, schedule and workflow."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Final

from rota.core.export_line_codec import bytes_of, text_of
from rota.errors import ConfigurationError
from rota.store.job_store import JobStore
from rota.store.redis.retrying_client import Argument

#: Lines that one call writes, and reads.
BATCH: Final = 100
#: The pseudo queue of workflows, as in the streams of events.
WORKFLOW_LINES: Final = "~"
#: What the field of a chunk of a blob begins with.
BLOB: Final = "blob"


def chunk_field(run: str, blob: str, index: int) -> str:
    """The field of a chunk of a job's blob."""
    return f"{BLOB} {run} {blob} {index}"


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
        self,
        queue: str,
        lines: Mapping[str, str],
        removed: Sequence[str] = (),
        *,
        newest: str = "",
        position: str = "",
    ) -> None:
        """Writes lines by their fields, then removes others and stores the position.

        `newest` is the number of the source's newest run, read after the lines. Raises ConfigurationError if it is
        lower than the mirror knows, or another mirror writes.
        """
        pairs = list(lines.items())
        for start in range(0, max(1, len(pairs)), BATCH):
            part, is_last = pairs[start : start + BATCH], start + BATCH >= len(pairs)
            gone = removed if is_last else ()
            words: list[Argument] = [self._fence, newest, position if is_last else "", len(gone), *gone]
            for name, line in part:
                words += (name, bytes_of(line))
            answer = await self._redis.run("write_mirror", self._store.script_keys("write_mirror", queue), words)
            if answer.startswith(b"lost "):
                raise ConfigurationError(
                    f"queue {queue} of the source has lost data: its newest job had the number "
                    f"{text_of(answer).split(' ')[1]}, now {newest}; the copy was left as it is: restore it with "
                    "`rota mirror restore`, or delete it to start anew"
                )
            if answer != b"written":
                raise ConfigurationError("another `rota mirror` has taken over this copy: run only one of them")

    async def read(self, queue: str, fields: Sequence[str]) -> list[str | None]:
        """The lines of these fields."""
        if not fields:
            return []
        found = await self._redis.command("HMGET", self._keys.queue(queue, "mirrored"), *fields)
        return [None if line is None else text_of(line) for line in found]

    async def newest(self, queue: str) -> int:
        """The number of the newest run of a queue that the mirror knows of."""
        return int(await self._redis.command("HGET", self._keys.queue(queue, "mirror"), "run") or 0)

    async def chunks(self, queue: str, run: str, blobs: Iterable[str]) -> AsyncIterator[tuple[str, str]]:
        """Yields field and line of each chunk of a job's blobs, one at a time."""
        for blob in blobs:
            for index in itertools.count():
                name = chunk_field(run, blob, index)
                (line,) = await self.read(queue, [name])
                if line is None:
                    break
                yield name, line

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
