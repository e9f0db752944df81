"""Bulk operations on matching jobs or on named jobs."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from rota.client.bulk_operations import MAX_CHOSEN
from rota.core.job_index_terms import MAX_INDEXED
from rota.core.json_schema_validator import is_object
from rota.server.schemas.common import BoundedFields, FullId, PerSecond, RequestBody, ResponseBody, Seconds, Text
from rota.server.schemas.jobs import Action, JobFilter, Priority

IndexedValues = dict[str, str | int | float | bool | None]


def _check_number_of_fields(value: Any) -> Any:
    if is_object(value) and len(value) > MAX_INDEXED:
        raise PydanticCustomError("too_many_fields", "has more than {most} parameters", {"most": MAX_INDEXED})
    return value


class OperationWhere(BoundedFields, JobFilter):
    """Filters of a bulk operation. At least one is required, and none may be empty."""

    model_config = ConfigDict(extra="forbid", strict=True, str_min_length=1)

    #: Values of indexed parameters.
    fields: Annotated[IndexedValues, Field(max_length=MAX_INDEXED), BeforeValidator(_check_number_of_fields)] | None = (
        None
    )


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


class RedriveOutcome(ResponseBody):
    """What became of the first thousand jobs that were redriven."""

    succeeded: int
    failed_again: int
    #: Waiting or running.
    unfinished: int
    #: Cancelled, or no longer kept.
    gone: int


class Operation(ResponseBody):
    """The progress of a bulk operation."""

    id: str
    action: Action
    #: Null for one that a program started.
    by: str | None
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
    #: Of one redrive; null in lists and for other actions.
    outcome: RedriveOutcome | None


class OperationResponse(ResponseBody):
    """One bulk operation."""

    operation: Operation


class OperationsResponse(ResponseBody):
    """The latest bulk operations."""

    operations: list[Operation]
