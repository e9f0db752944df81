"""Locks."""

from __future__ import annotations

from rota.server.schemas.common import ResponseBody


class Lock(ResponseBody):
    """A lock, its holder and the jobs that wait for it."""

    name: str
    queue: str
    #: The job that holds the lock or gets it next.
    holder: str
    #: When the holder started; null while it has not.
    since: str | None
    waiting: int
    #: The first waiting jobs.
    waiters: list[str]


class LocksResponse(ResponseBody):
    """A page of locks."""

    locks: list[Lock]
    cursor: str | None
