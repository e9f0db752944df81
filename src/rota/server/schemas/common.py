"""Types that several request and response bodies share."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from rota.core.json_schema_validator import is_object
from rota.core.retry import MAX_SECONDS

State = Literal["SCHEDULED", "BLOCKED", "PENDING", "PROCESSING", "COMPLETED", "FAILED", "CANCELLED"]
WorkflowStateName = Literal["WAITING", "RUNNING", "COMPLETED", "FAILED", "UNDOING", "PARKED", "UNDONE", "CANCELLED"]
PriorityName = Literal["critical", "high", "medium", "normal", "low"]
RoleName = Literal["viewer", "operator", "admin"]

#: Patterns of ids and names. The library checks them; the OpenAPI document states them.
ID: Final = r"^[A-Za-z0-9._-]{1,128}$"
QUEUE: Final = r"^[A-Za-z0-9._-]{1,64}(~[0-9]{1,4})?(-fail)?$"
FULL_ID: Final = r"^([A-Za-z0-9._-]{1,64}(~[0-9]{1,4})?(-fail)?:)?[A-Za-z0-9._-]{1,128}(@[0-9a-z]{9})?$"
TASK: Final = r"^[^\s\x00-\x1f\x7f]{1,200}$"


def documented(pattern: str) -> Any:
    """Returns a field whose pattern is in the OpenAPI document only: the library checks it with a better message."""
    return Field(max_length=300, json_schema_extra={"pattern": pattern})


FullId = Annotated[str, documented(FULL_ID)]
JobIdText = Annotated[str, documented(ID)]
QueueName = Annotated[str, documented(QUEUE)]
TaskName = Annotated[str, documented(TASK)]
Seconds = Annotated[float, Field(ge=0, le=MAX_SECONDS, allow_inf_nan=False)]
DateTimeText = Annotated[str, Field(max_length=64, json_schema_extra={"format": "date-time"})]
Text = Annotated[str, Field(max_length=1000)]
PauseNote = Annotated[str, Field(max_length=500)]
Word = Annotated[str, Field(min_length=1, max_length=200)]
PerSecond = Annotated[float, Field(ge=0.01, le=1_000_000, allow_inf_nan=False)]


class BoundedFields(BaseModel):
    """A model that refuses more fields than it has with one error.

    One error for each of 55,000 unknown fields would block the event loop for 300 ms.
    """

    @model_validator(mode="before")
    @classmethod
    def check_number_of_fields(cls, value: Any) -> Any:
        """Returns the value unchanged. Raises PydanticCustomError if it has more fields than the model."""
        if is_object(value) and len(value) > len(cls.model_fields):
            counts = {"count": len(value), "known": len(cls.model_fields)}
            raise PydanticCustomError(
                "too_many_fields", "has {count} fields and knows {known}: omit the unknown ones", counts
            )
        return value


class RequestBody(BoundedFields):
    """A request body. Unknown fields are refused, and values are not converted between types."""

    model_config = ConfigDict(extra="forbid", strict=True)


class ResponseBody(BaseModel):
    """A response body. All fields are always present."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)


class ProblemError(ResponseBody):
    """One error of a request."""

    source: str
    field: str
    message: str


class ProblemResponse(BaseModel):
    """An error: what happened and what to do (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    code: str
    errors: list[ProblemError] = []
    #: The state of a job or workflow that does not allow the request.
    state: str = ""


class MessageResponse(ResponseBody):
    """The change was made."""

    message: str
