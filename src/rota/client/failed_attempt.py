"""Error hooks: functions that are called for every failed attempt of a program's jobs. See `Rota.on_error`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from rota.core.job_record import JobRecord


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """An attempt that failed, for error hooks."""

    #: What the handler raised; or `Timeout`, `ProcessKilled` or `WorkerLost`.
    error: BaseException
    #: The job as it was in that attempt.
    job: JobRecord
    #: The job gets another attempt. False: it has failed for good.
    will_retry: bool

    @property
    def attempt(self) -> int:
        """The number of the attempt: 1 for the first."""
        return self.job.counts.attempt


#: A coroutine function, or a plain function, which is called in a thread.
ErrorHook = Callable[[FailedAttempt], Awaitable[None] | None]
