"""Bulk operations on matching jobs or on named jobs."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from rota.client.bulk_operations import MAX_CHOSEN
from rota.server.schemas.common import FullId, PerSecond, RequestBody, ResponseBody, Seconds, Text
from rota.server.schemas.jobs import Action, JobFilter, Priority


class OperationWhere(JobFilter):
    """Filters of a bulk operation. At least one is required, and none may be empty."""

    model_config = ConfigDict(extra="forbid", strict=True, str_min_length=1)

    #: Values of indexed parameters.
    fields: dict[str, str | int | float | bool | None] | None = None


class NewOperation(RequestBody):
    """A bulk operation on the jobs that match `where`, or on the named `jobs`: give one of the two."""

    action: Action
    where: OperationWhere | None = None
    jobs: Annotated[list[FullId], Field(min_length=1, max_length=MAX_CHOSEN)] | None = None
    #: Only count the jobs.
    dry_run: bool = False
    #: Maximum rate.
    per_second: PerSecond | None = None
    #: Reason of a cancel.
    reason: Text = ""
    #: For an update.
    priority: Priority | None = None
    delay: Seconds | None = None


class OperationFailure(ResponseBody):
    """A job for which the action failed, and the reason."""

    jobId: str  # noqa: N815
    message: str


class Operation(ResponseBody):
    """The progress of a bulk operation."""

    id: str
    action: Action
    #: Empty if the jobs were named.
    where: dict[str, Any]
    #: Number of named jobs; null for an operation on all that match.
    chosen: int | None
    state: Literal["RUNNING", "STOPPING", "STOPPED", "COMPLETED"]
    is_dry_run: bool
    per_second: float | None
    #: Upper bound of the number of jobs to examine, counted at the start.
    expected: int
    matched: int
    done: int
    failed: int
    #: The first hundred.
    failures: list[OperationFailure]
    created_at: str
    ended_at: str | None


class OperationResponse(ResponseBody):
    """One bulk operation."""

    operation: Operation


class OperationsResponse(ResponseBody):
    """The latest bulk operations."""

    operations: list[Operation]
