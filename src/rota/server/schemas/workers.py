"""Workers."""

from __future__ import annotations

from typing import Literal

from rota.server.schemas.common import ResponseBody, State
from rota.server.schemas.jobs import JobProgress


class RunningJob(ResponseBody):
    """A job that a worker is running."""

    jobId: str  # noqa: N815
    run: str
    type: str
    attempt: int
    claimed_at: str
    progress: JobProgress | None


class LostJob(ResponseBody):
    """A job that a worker was running when it was last seen, and what became of it."""

    jobId: str  # noqa: N815
    run: str
    type: str
    #: Null if it has been removed.
    status: State | None
    #: Attempts so far.
    attempt: int | None


class Worker(ResponseBody):
    """A worker: its running jobs now, and its last registration."""

    id: str
    status: Literal["ALIVE", "DEAD"]
    queues: list[str]
    last_seen: str
    silent_ms: int
    #: Its configured name, or its host.
    name: str
    #: starting, active, waiting, draining, drained, stopped
    state: str
    host: str
    pid: int | None
    slots: int
    busy: int
    finished: int
    running: list[RunningJob]
    cpu_seconds: float
    rss_bytes: int
    started_at: str | None
    #: Version of Rota.
    version: str
    #: Version of the program, from ROTA_CODE_VERSION.
    code_version: str | None
    #: Of a dead worker: the jobs of its last registration.
    lost_jobs: list[LostJob]
    #: Actions that its state allows and that affect only queues visible to the caller.
    actions: list[Literal["drain"]]


class WorkerResponse(ResponseBody):
    """One worker."""

    worker: Worker


class WorkersResponse(ResponseBody):
    """Workers seen in the last 24 hours."""

    workers: list[Worker]
