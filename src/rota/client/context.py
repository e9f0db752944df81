"""The context of an attempt: what a handler can read about its job and report."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Final, Protocol, TypeVar

from rota.core.job_record import JobRecord

T = TypeVar("T")


class Reporter(Protocol):
    """Sends progress and log lines of a running handler to the store."""

    def progress(self, done: float, total: float, note: str) -> None:
        """Stores the progress of the attempt."""
        ...

    def log(self, level: str, text: str) -> None:
        """Adds a line to the job's log."""
        ...


class Context:
    """One attempt, for its handler. Injected where a parameter is annotated with `Context`."""

    def __init__(
        self, job: JobRecord, *, reporter: Reporter, fence: int, stops_at: float | None, state: Any = None
    ) -> None:
        self.job = job
        #: Grows with every claim of the queue: pass it to systems that can reject an older one.
        self.fence = fence
        #: The value that the lifespan of `Rota(lifespan=…)` yielded.
        self.state = state
        self._stops_at = stops_at
        self._reporter = reporter
        self._is_cancelled = False

    @property
    def attempt(self) -> int:
        """1 at the first attempt, and always growing."""
        return self.job.counts.attempt

    @property
    def idempotency_key(self) -> str:
        """The same in every attempt of this run: send it with requests that must not be carried out twice."""
        return f"{self.job.ref.full_id}@{self.job.ref.run}"

    @property
    def deadline(self) -> datetime | None:
        """When this attempt will be stopped; None without a timeout."""
        return None if self._stops_at is None else datetime.fromtimestamp(self._stops_at, UTC)

    @property
    def cancelled(self) -> bool:
        """True once this attempt has to stop: cancelled, timed out, or its lease lost. For handlers in threads."""
        return self._is_cancelled

    def progress(self, done: float, total: float = 100, note: str = "") -> None:
        """Reports progress. Cheap: reports in quick succession are sent once."""
        self._reporter.progress(float(done), float(total), note)

    def log(self, text: object, *, level: str = "info") -> None:
        """Adds a line to the job's own log: 1,000 lines or 256 KiB are kept."""
        self._reporter.log(level, str(text))

    def cancel(self) -> None:
        """Marks this attempt as one that has to stop. Called by the worker."""
        self._is_cancelled = True


#: Creates the context of the running attempt, also in threads of handlers; None outside of an attempt. The context is
#: created on use: most handlers do not use it.
current: Final[ContextVar[Callable[[], Context] | None]] = ContextVar("rota_context", default=None)


class SilentReporter:
    """Discards reports: for handlers that are called directly."""

    def progress(self, done: float, total: float, note: str) -> None:
        """Does nothing."""

    def log(self, level: str, text: str) -> None:
        """Does nothing."""
