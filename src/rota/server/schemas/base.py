"""What answers and bodies have in common: names, ids, moments, and how a refusal is said."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from rota.core.retry import MAX_SECONDS

State = Literal["SCHEDULED", "BLOCKED", "PENDING", "PROCESSING", "COMPLETED", "FAILED", "CANCELLED"]
WorkflowStateName = Literal["WAITING", "RUNNING", "COMPLETED", "FAILED", "UNDOING", "PARKED", "UNDONE", "CANCELLED"]
PriorityName = Literal["critical", "high", "medium", "normal", "low"]
RoleName = Literal["viewer", "operator", "admin"]
Yes = Literal[True]

#: What an id, a queue's name and so on may look like: the library checks it, the document says it.
ID: Final = r"^[A-Za-z0-9._-]{1,128}$"
QUEUE: Final = r"^[A-Za-z0-9._-]{1,64}(~[0-9]{1,4})?(-fail)?$"
FULL_ID: Final = r"^([A-Za-z0-9._-]{1,64}(~[0-9]{1,4})?(-fail)?:)?[A-Za-z0-9._-]{1,128}(@[0-9a-z]{9})?$"
TASK: Final = r"^[^\s\x00-\x1f\x7f]{1,200}$"


def documented(pattern: str) -> Any:
    """A text that looks like this. The document says so; the library checks it, and says what is wrong in words."""
    return Field(max_length=300, json_schema_extra={"pattern": pattern})


FullId = Annotated[str, documented(FULL_ID)]
JobIdText = Annotated[str, documented(ID)]
QueueName = Annotated[str, documented(QUEUE)]
TaskName = Annotated[str, documented(TASK)]
Seconds = Annotated[float, Field(ge=0, le=MAX_SECONDS, allow_inf_nan=False)]
Text = Annotated[str, Field(max_length=1000)]
Word = Annotated[str, Field(min_length=1, max_length=200)]
PerSecond = Annotated[float, Field(ge=0.01, le=1_000_000, allow_inf_nan=False)]


class Asked(BaseModel):
    """A body: what it does not know is refused, and nothing is taken for something else."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Answer(BaseModel):
    """An answer. Its fields are always there."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)


class ProblemError(Answer):
    """One thing that is wrong with a request."""

    source: str
    field: str
    message: str


class ProblemAnswer(BaseModel):
    """Why not, and what to do (RFC 9457)."""

    success: Literal[False]
    message: str
    type: str
    title: str
    status: int
    detail: str
    instance: str
    code: str
    errors: list[ProblemError] = []
    #: Of a job or workflow that is in the wrong one.
    state: str = ""


class Done(Answer):
    """It is done."""

    success: Yes
    message: str
