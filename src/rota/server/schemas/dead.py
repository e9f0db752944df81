"""Dead letters and their groups."""

from __future__ import annotations

from rota.server.schemas.base import Answer, Asked, PerSecond, QueueName, Word, Yes
from rota.server.schemas.jobs import Job


class DeadGroup(Answer):
    """Dead letters of a queue that failed in the same way."""

    id: str
    queue: str
    #: The class of the error.
    error: str
    #: With # for numbers and … for what was quoted.
    message: str
    count: int
    #: When the first of them came.
    since: str
    #: The latest of them.
    samples: list[Job]


class DeadGroupsAnswer(Answer):
    """Dead letters by error, the largest group first."""

    success: Yes
    groups: list[DeadGroup]
    #: All dead letters.
    total: int


class RedriveDead(Asked):
    """Which dead letters; what is left out does not matter. Nothing at all means all of them."""

    queue: QueueName | None = None
    type: Word | None = None
    #: The class of the error.
    error: Word | None = None
    group: Word | None = None
    #: No faster than this.
    per_second: PerSecond | None = None
    #: Only count them.
    dry_run: bool = False
