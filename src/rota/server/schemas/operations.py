"""Operations on every job that matches, or that was chosen."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from rota.operations import MAX_CHOSEN
from rota.server.schemas.base import (
    Answer,
    Asked,
    FullId,
    PerSecond,
    PriorityName,
    QueueName,
    Seconds,
    State,
    Text,
    Word,
    Yes,
)

OperationAction = Literal["cancel", "delete", "redrive", "update"]
DateTimeText = Annotated[str, Field(max_length=64, json_schema_extra={"format": "date-time"})]


class OperationWhere(Asked):
    """Which jobs: all that is given must be true of them, and something must be given."""

    state: State | None = None
    queue: QueueName | None = None
    type: Word | None = None
    tag: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    #: Values of parameters that the task declared as an index.
    fields: dict[str, str | int | float | bool | None] | None = None
    worker: Word | None = None
    error: Word | None = None
    group: Word | None = None
    since: DateTimeText | None = None
    until: DateTimeText | None = None
    text: Word | None = None


class NewOperation(Asked):
    """What is to be done: to every job that matches `where`, or to the `jobs` that are named; one of the two."""

    action: OperationAction
    where: OperationWhere | None = None
    jobs: Annotated[list[FullId], Field(min_length=1, max_length=MAX_CHOSEN)] | None = None
    #: Only count them.
    dry_run: bool = False
    #: No faster than this.
    per_second: PerSecond | None = None
    #: Of a cancel.
    reason: Text = ""
    #: For an update.
    priority: PriorityName | Annotated[int, Field(ge=-100, le=100)] | None = None
    delay: Seconds | None = None


class OperationFailure(Answer):
    """A job that it could not be done to, and why."""

    jobId: str  # noqa: N815
    message: str


class Operation(Answer):
    """How far an operation has come."""

    id: str
    action: OperationAction
    #: Empty where the jobs were chosen.
    where: dict[str, Any]
    #: How many jobs were chosen; null where all that match are meant.
    chosen: int | None
    state: Literal["RUNNING", "STOPPING", "STOPPED", "COMPLETED"]
    is_dry_run: bool
    per_second: float | None
    #: How many jobs there were to be looked at when it began, at most.
    expected: int
    matched: int
    done: int
    failed: int
    #: The first hundred.
    failures: list[OperationFailure]
    created_at: str
    ended_at: str | None


class OperationAnswer(Answer):
    """One operation."""

    success: Yes
    operation: Operation


class OperationsAnswer(Answer):
    """The latest operations."""

    success: Yes
    operations: list[Operation]
