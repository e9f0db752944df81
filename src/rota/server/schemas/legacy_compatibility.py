"""Responses of the compatibility endpoints."""

from __future__ import annotations

from typing import Any, Literal

from rota.server.schemas.common import ResponseBody, State
from rota.server.schemas.jobs import Stats


class LegacyResponse(ResponseBody):
    """A successful response."""

    success: Literal[True]


class LegacyMessageResponse(LegacyResponse):
    """A successful change."""

    message: str


class LegacyJob(ResponseBody):
    """A job."""

    jobId: str  # noqa: N815
    status: State
    type: str
    #: The arguments as JSON text.
    data: str
    #: Number of failures.
    retries: str
    #: 0 to 100.
    progress: str
    #: Milliseconds since 1970.
    created_at: str
    #: JSON text; null until the job has completed.
    result: str | None


class LegacyNewJobResponse(LegacyMessageResponse):
    """The stored job."""

    jobId: str  # noqa: N815
    job: LegacyJob


class LegacyJobResponse(LegacyResponse):
    """One job."""

    job: LegacyJob


class LegacyJobsResponse(LegacyResponse):
    """A page of jobs, under both names that clients use."""

    job: list[LegacyJob]
    jobs: list[LegacyJob]
    #: Cursor of the next page; null at the end.
    cursor: str | None


class LegacyStatsResponse(LegacyResponse):
    """Number of jobs per state."""

    stats: Stats


class LegacyResultResponse(LegacyResponse):
    """The result of a job; null until it has completed."""

    jobId: str  # noqa: N815
    status: State
    result: Any


class LegacyWorker(ResponseBody):
    """A worker."""

    id: str
    #: The names of its queues, separated by commas.
    queue: str
    status: Literal["ALIVE", "DEAD"]
    last_seen: str


class LegacyWorkersResponse(LegacyResponse):
    """Workers seen in the last 24 hours."""

    workers: list[LegacyWorker]
