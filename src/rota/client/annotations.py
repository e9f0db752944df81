"""Annotations: marks on the charts, such as deploys."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from rota.client.page_limit import checked_limit
from rota.client.session import Sessions
from rota.client.sync_methods import sync_method
from rota.core.ids import checked_queue, checked_text
from rota.core.job_options import MAX_TIME_MS, checked_time_ms
from rota.errors import InvalidOption
from rota.store.annotations import Annotation

#: Characters of a text and of a version.
MAX_TEXT = 500
MAX_VERSION = 100


class Annotations:
    """The annotations of a namespace: `rota.annotations`. The latest 5,000 are kept."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def add(
        self,
        text: str,
        *,
        kind: Literal["deploy", "note"] = "note",
        at: datetime | None = None,
        version: str = "",
        queue: str = "",
        by: str = "",
    ) -> Annotation:
        """Adds a mark, by default now. Workers mark a new `ROTA_CODE_VERSION` by themselves."""
        if kind not in ("deploy", "note"):
            raise InvalidOption("kind", f"{kind!r} is neither deploy nor note")
        for option, value, most in (("text", text, MAX_TEXT), ("version", version, MAX_VERSION), ("by", by, MAX_TEXT)):
            if len(checked_text(value, option)) > most:
                raise InvalidOption(option, f"has {len(value):,} characters: use at most {most}")
        if not text and not version:
            raise InvalidOption("text", "is empty: say what happened")
        if queue:
            checked_queue(queue)
        annotation = Annotation(
            id=secrets.token_hex(8),
            kind=kind,
            text=text or version,
            version=version,
            queue=queue,
            by=by,
            at=0 if at is None else checked_time_ms(at, "at"),
        )
        return await (await self._sessions.checked()).annotations.add(annotation) or annotation

    async def list(
        self, *, since: datetime | None = None, until: datetime | None = None, limit: int = 1_000
    ) -> Sequence[Annotation]:
        """Returns the latest marks of a time range, oldest first."""
        checked_limit(limit)
        first = 0 if since is None else checked_time_ms(since, "since")
        last = MAX_TIME_MS if until is None else checked_time_ms(until, "until")
        return await (await self._sessions.checked()).annotations.between(first, last, limit=limit)

    async def remove(self, annotation_id: str) -> bool:
        """Deletes a mark. False if there is none with that id."""
        return await (await self._sessions.checked()).annotations.remove(annotation_id)

    add_sync = sync_method(add)
    list_sync = sync_method(list)
    remove_sync = sync_method(remove)
