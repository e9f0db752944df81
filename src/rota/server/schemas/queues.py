"""Queues."""

from __future__ import annotations

from rota.server.schemas.common import MessageResponse, PauseNote, RequestBody, ResponseBody
from rota.server.schemas.jobs import Stats


class QueueTotals(ResponseBody):
    """Counts since the queue was first used."""

    enqueued: int
    completed: int
    failed: int
    cancelled: int
    redriven: int
    deleted: int


class Pause(ResponseBody):
    """Who paused a queue or a task, when and why."""

    by: str | None
    at: str | None
    note: str


class PauseQueue(RequestBody):
    """A pause."""

    #: Why it is paused.
    note: PauseNote = ""


class Queue(ResponseBody):
    """The state of a queue."""

    name: str
    is_paused: bool
    #: Null unless it is paused.
    paused: Pause | None
    stats: Stats
    totals: QueueTotals
    #: Waiting time of the first pending job.
    oldest_pending_ms: int | None


class QueueResponse(ResponseBody):
    """One queue."""

    queue: Queue


class QueuesResponse(ResponseBody):
    """All queues."""

    queues: list[Queue]


class PurgeQueue(RequestBody):
    """A purge cannot be undone: without `confirm` it only reports what it would delete."""

    #: The queue's name.
    confirm: str | None = None


class PurgeResponse(MessageResponse):
    """The number of jobs deleted, or that would be deleted."""

    queue: str
    is_dry_run: bool
    waiting: int
    purged: int
