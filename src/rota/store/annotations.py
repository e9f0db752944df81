"""Annotations: marks on the charts, such as deploys."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from rota.store.keys import Keys
from rota.store.redis.retrying_client import Argument, RedisClient
from rota.store.redis.script_compiler import script

#: Annotations that are kept; the oldest are dropped.
ANNOTATIONS_KEPT: Final = 5_000


class Annotation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A mark at one moment: a deploy, or a note."""

    id: str
    kind: Literal["deploy", "note"] = "note"
    text: str = ""
    #: The version that was deployed.
    version: str = ""
    #: The queue that it is about; "" for all.
    queue: str = ""
    by: str = ""
    #: When it was, ms.
    at: int = 0


class AnnotationStore:
    """The annotations of one namespace."""

    def __init__(self, redis: RedisClient, keys: Keys) -> None:
        self._redis = redis
        self._keys = keys

    async def add(self, annotation: Annotation, *, announced_version: str = "") -> Annotation | None:
        """Stores an annotation; without a time it is now. None if the announced version is known."""
        record = msgspec.json.encode(msgspec.structs.replace(annotation, at=0))
        answer: bytes = await self._redis.run(
            "annotate",
            self._keys.shared_of_script(script("annotate").keys),
            [str(annotation.at) if annotation.at else "", record, announced_version, ANNOTATIONS_KEPT],
        )
        return None if answer == b"known" else msgspec.structs.replace(annotation, at=int(answer))

    async def between(self, since: int, until: int, *, limit: int) -> list[Annotation]:
        """The latest annotations from `since` up to `until`, ms, oldest first."""
        key = self._keys.shared("annotations")
        words: list[Argument] = ["ZRANGE", key, f"({until}", since, "BYSCORE", "REV", "LIMIT", 0, limit, "WITHSCORES"]
        answer = await self._redis.command(*words)
        found = [
            msgspec.structs.replace(msgspec.json.decode(record, type=Annotation), at=int(float(at)))
            for record, at in zip(answer[::2], answer[1::2], strict=True)
        ]
        return found[::-1]

    async def remove(self, annotation_id: str) -> bool:
        """Deletes an annotation. False if there is none with that id."""
        for record in await self._redis.command("ZRANGE", self._keys.shared("annotations"), 0, -1):
            if msgspec.json.decode(record, type=Annotation).id == annotation_id:
                return bool(await self._redis.command("ZREM", self._keys.shared("annotations"), record))
        return False
