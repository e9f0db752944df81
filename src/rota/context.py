"""What a handler gets from the worker: its context, and the resources it depends on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal, Protocol, TypeVar, overload

from rota.core.job import JobRecord

T = TypeVar("T")
Scope = Literal["attempt", "worker"]


@dataclass(frozen=True, slots=True)
class Provided:
    """The default of a parameter that the worker fills in with what `provider` gives."""

    provider: Callable[..., Any]
    scope: Scope


@overload
def Depends(provider: Callable[..., AsyncIterator[T]], *, scope: Scope = ...) -> T: ...
@overload
def Depends(provider: Callable[..., Iterator[T]], *, scope: Scope = ...) -> T: ...
@overload
def Depends(provider: Callable[..., Awaitable[T]], *, scope: Scope = ...) -> T: ...
@overload
def Depends(provider: Callable[..., T], *, scope: Scope = ...) -> T: ...
def Depends(provider: Callable[..., Any], *, scope: Scope = "attempt") -> Any:  # noqa: N802, it reads as a type does
    """Marks a parameter that the worker fills in with what `provider` returns, or yields and then cleans up.

    `async def handler(order: int, db: Database = Depends(open_database, scope="worker"))`. Scope "attempt" makes
    one for each attempt; "worker" makes one for each process, which lives as long as it. A provider may itself have
    `Depends` and `Context` parameters. Callers must not pass such a parameter: enqueue refuses it.
    """
    if not callable(provider):
        raise TypeError(f"Depends takes a function, not {provider!r}")
    if scope not in ("attempt", "worker"):
        raise TypeError(f"scope is attempt or worker, not {scope!r}")
    return Provided(provider, scope)


class Reporter(Protocol):
    """Takes what a handler says while it runs to the store."""

    def progress(self, done: float, total: float, note: str) -> None:
        """Keeps how far the attempt has come."""
        ...

    def log(self, level: str, text: str) -> None:
        """Adds a line to the job's log."""
        ...


class Context:
    """One attempt, as its handler sees it. Injected where a parameter is annotated with `Context`."""

    def __init__(
        self, job: JobRecord, *, reporter: Reporter, fence: int, stops_at: float | None, state: Any = None
    ) -> None:
        self.job = job
        #: Grows with every claim of the queue: give it to systems that can refuse an older one.
        self.fence = fence
        #: What the lifespan of `Rota(lifespan=…)` yielded.
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
        """The same in every attempt of this run: send it along with calls that must not be done twice."""
        return f"{self.job.ref.full_id}@{self.job.ref.run}"

    @property
    def deadline(self) -> datetime | None:
        """When this attempt will be stopped; None without a timeout."""
        return None if self._stops_at is None else datetime.fromtimestamp(self._stops_at, UTC)

    @property
    def cancelled(self) -> bool:
        """True once this attempt is to stop: cancelled, timed out, or its lease lost. Threads look here."""
        return self._is_cancelled

    def progress(self, done: float, total: float = 100, note: str = "") -> None:
        """Says how far the attempt has come. Cheap: what is said in quick succession is sent once."""
        self._reporter.progress(float(done), float(total), note)

    def log(self, text: object, *, level: str = "info") -> None:
        """Adds a line to the job's own log: 1,000 lines or 256 KiB are kept."""
        self._reporter.log(level, str(text))

    def cancel(self) -> None:
        """Marks this attempt as one that is to stop. The worker's business."""
        self._is_cancelled = True


#: Gives the attempt that the code which looks here belongs to; None outside of one. Threads of handlers see it, too.
#: It is made when somebody asks: most handlers never do.
current: Final[ContextVar[Callable[[], Context] | None]] = ContextVar("rota_context", default=None)


class SilentReporter:
    """Reports to nobody: for handlers that are called directly."""

    def progress(self, done: float, total: float, note: str) -> None:
        """Nothing."""

    def log(self, level: str, text: str) -> None:
        """Nothing."""
