"""Workflows: built step by step, and shown with their graph."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from rota.server.schemas.base import Answer, Asked, JobIdText, State, TaskName, WorkflowStateName, Yes, documented
from rota.server.schemas.jobs import JobOptions


class NewUndo(JobOptions):
    """What compensates a step."""

    type: TaskName
    data: dict[str, Any] | list[Any] | None = None
    #: Also where the step was started and did not succeed.
    even_if_unsure: bool = False


class NewStep(JobOptions):
    """A step. `{"$result": "name"}` in its data stands for the result of another step, and comes after it."""

    name: JobIdText | None = None
    type: TaskName
    data: dict[str, Any] | list[Any] | None = None
    #: Names of steps that come first.
    after: list[str] = Field(default=[], max_length=1000)
    undo: NewUndo | None = None


class NewWorkflow(Asked):
    """A workflow, built and committed as a whole. A step names only steps before it."""

    name: JobIdText
    id: Annotated[str, documented(r"^[A-Za-z0-9._-]{1,100}$")] | None = None
    on_failure: Literal["undo", "hold"] | None = None
    resume: Literal["on_start"] | None = None
    #: How many of that name advance at once.
    limit: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    steps: Annotated[list[NewStep], Field(min_length=1, max_length=1000)]


class CancelWorkflow(Asked):
    """How to cancel."""

    #: Undo what was done.
    undo: bool = True


class WorkflowInfo(Answer):
    """How a workflow stands, in a line."""

    id: str
    name: str
    state: WorkflowStateName
    done: int
    total: int
    created_at: str
    ended_at: str | None
    cause: str | None


class WorkflowUndo(Answer):
    """How the compensation of a step stands."""

    jobId: str  # noqa: N815
    #: "none" until it is wanted.
    state: str


class WorkflowStep(Answer):
    """A step, and how it stands."""

    index: int
    name: str
    type: str
    queue: str
    #: Null where it runs once for each item of a list.
    jobId: str | None  # noqa: N815
    #: Indexes of the steps it comes after.
    after: list[int]
    #: What the workflow knows of it: waiting, completed, failed, cancelled, deleted.
    outcome: str
    #: The state of its job, while that is kept.
    status: State | None
    attempts: int
    items: int | None
    items_done: int | None
    enqueued_at: str | None
    started_at: str | None
    ended_at: str | None
    undo: WorkflowUndo | None


class Workflow(WorkflowInfo):
    """A workflow with its graph."""

    on_failure: Literal["undo", "hold"]
    resume: Literal["on_start"] | None
    limit: int | None
    explanation: str
    steps: list[WorkflowStep]
    actions: list[Literal["cancel", "resume"]]


class WorkflowsAnswer(Answer):
    """The latest workflows."""

    success: Yes
    workflows: list[WorkflowInfo]


class WorkflowAnswer(Answer):
    """One workflow."""

    success: Yes
    workflow: Workflow
