"""Dead letters and their groups."""

from __future__ import annotations

from rota.server.schemas.common import PerSecond, QueueName, RequestBody, ResponseBody, Word
from rota.server.schemas.jobs import Job


class TimeBucket(ResponseBody):
    """How many failed from that time on, until the next one begins."""

    at: str
    count: int


class DeadGroup(ResponseBody):
    """Dead letters of a queue that failed with the same error."""

    id: str
    queue: str
    #: The class of the error.
    error: str
    #: Numbers are replaced by # and quoted text by ….
    message: str
    count: int
    #: Time of the first one.
    since: str
    #: The message of the latest one, as it was raised; null without samples.
    example: str | None
    #: Of the latest thousand: when the first and the last failed.
    first_seen: str | None
    last_seen: str | None
    #: The latest thousand in 24 equal parts of the time from the first to the last.
    histogram: list[TimeBucket]
    #: The latest ones.
    samples: list[Job]


class DeadGroupsResponse(ResponseBody):
    """Dead letters by error, the largest group first."""

    groups: list[DeadGroup]
    #: Number of all dead letters.
    total: int


class RedriveDead(RequestBody):
    """Filters of a redrive. Without any, all dead letters are redriven."""

    queue: QueueName | None = None
    type: Word | None = None
    #: The class of the error.
    error: Word | None = None
    group: Word | None = None
    #: Maximum rate.
    per_second: PerSecond | None = None
    #: Only count the jobs.
    dry_run: bool = False
