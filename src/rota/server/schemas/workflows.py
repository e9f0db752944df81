"""Workflows and their steps."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from rota.server.schemas.common import (
    JobIdText,
    RequestBody,
    ResponseBody,
    State,
    TaskName,
    WorkflowStateName,
    documented,
)
from rota.server.schemas.jobs import Data, JobAttempt, JobError, JobOptions


class NewUndo(JobOptions):
    """The compensation of a step."""

    type: TaskName
    data: Data | None = None
    #: Also run it if the step was started and did not succeed.
    even_if_unsure: bool = False


class NewStep(JobOptions):
    """A step. `{"$result": "name"}` in its data is replaced by the result of that step, which becomes a dependency."""

    name: JobIdText | None = None
    type: TaskName
    data: Data | None = None
    #: Names of the steps that it depends on.
    after: list[str] = Field(default=[], max_length=1000)
    undo: NewUndo | None = None


class NewWorkflow(RequestBody):
    """A workflow, stored atomically. A step refers only to steps before it."""

    name: JobIdText
    id: Annotated[str, documented(r"^[A-Za-z0-9._-]{1,100}$")] | None = None
    on_failure: Literal["undo", "hold"] | None = None
    resume: Literal["on_start"] | None = None
    #: Maximum number of workflows of this name that run at the same time.
    limit: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    steps: Annotated[list[NewStep], Field(min_length=1, max_length=1000, fail_fast=True)]


class CancelWorkflow(RequestBody):
    """Options of a cancel."""

    #: Run the compensations of completed steps.
    undo: bool = True


class WorkflowInfo(ResponseBody):
    """Summary of a workflow."""

    id: str
    name: str
    state: WorkflowStateName
    done: int
    total: int
    created_at: str
    ended_at: str | None
    cause: str | None


class WorkflowUndo(ResponseBody):
    """State of a step's compensation."""

    jobId: str  # noqa: N815
    #: "none" until it is needed.
    state: str
    #: State of its job; null once the job has been removed.
    status: State | None
    attempts: list[JobAttempt]
    error: JobError | None
    actions: list[Literal["redrive"]]


class WorkflowStep(ResponseBody):
    """A step and its state."""

    index: int
    name: str
    type: str
    queue: str
    #: Null if it runs once for each item of a list.
    jobId: str | None  # noqa: N815
    #: Indexes of the steps that it depends on.
    after: list[int]
    #: waiting, completed, failed, cancelled or deleted.
    outcome: str
    #: State of its job; null once the job has been removed.
    status: State | None
    attempts: int
    items: int | None
    items_done: int | None
    enqueued_at: str | None
    started_at: str | None
    ended_at: str | None
    #: The attempts of its job; empty once the job has been removed.
    executions: list[JobAttempt]
    error: JobError | None
    #: For a step over a list: the first twenty jobs of unsuccessful items.
    bad_items: list[str]
    #: Actions on its job. A failed step is retried by redriving its job.
    actions: list[Literal["redrive"]]
    undo: WorkflowUndo | None


class Workflow(WorkflowInfo):
    """A workflow with its steps."""

    on_failure: Literal["undo", "hold"]
    resume: Literal["on_start"] | None
    limit: int | None
    explanation: str
    steps: list[WorkflowStep]
    actions: list[Literal["cancel", "resume"]]


class WorkflowsResponse(ResponseBody):
    """A page of workflows."""

    workflows: list[WorkflowInfo]
    #: Cursor of the next page; null at the end. A short page may still have one.
    cursor: str | None


class WorkflowResponse(ResponseBody):
    """One workflow."""

    workflow: Workflow
