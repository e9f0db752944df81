"""Following one job until it ends: its progress, or its log. Pushed by events; every two seconds it looks anyway."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from rota.cli import output
from rota.cli.job import describe_progress, read
from rota.cli.settings import Settings, connected
from rota.cli.shapes import job_shape, log_shape
from rota.core.shapes import moment
from rota.core.states import JobState

if TYPE_CHECKING:
    from rota.client import Rota
    from rota.core.job import JobRecord, JobRef

LOOK_EVERY_S: Final = 2.0


async def watch_job(settings: Settings, job_id: str) -> int:
    """Shows every change until the job has ended; the answer is the exit code."""
    async with connected(settings) as rota:
        ref = (await read(rota, job_id)).record.ref
        record: JobRecord | None = None
        with _display(settings) as display:
            async for record in _changes(rota, ref):
                display.show(record)
        assert record is not None, "a job that exists is seen at least once"
    if not settings.json and record.state is JobState.FAILED and record.error is not None:
        output.note(f"{record.error.type}: {record.error.message}")
    return 0 if record.state is JobState.COMPLETED else 1


async def print_log(settings: Settings, job_id: str, *, follow: bool) -> None:
    """Prints a run's log; with `follow` until the run has ended."""
    async with connected(settings) as rota:
        record = (await read(rota, job_id)).record
        printed = await _print_lines(settings, rota, record.ref, 0)
        if not follow:
            return
        async for _ in _looks(rota, record.ref):
            # Looked at before the lines are read, so that the last ones are not missed.
            state = (await read(rota, str(record.ref))).record.state
            printed += await _print_lines(settings, rota, record.ref, printed)
            if state.is_finished:
                return


async def _print_lines(settings: Settings, rota: Rota, ref: JobRef, start: int) -> int:
    lines = await rota.views.log(ref, start=start)
    for line in lines:
        if settings.json:
            output.json_line(log_shape(line))
        else:
            output.text(f"{moment(line.at)} {line.level:<7} {line.text}")
    return len(lines)


async def _changes(rota: Rota, ref: JobRef) -> AsyncIterator[JobRecord]:
    """The run's record, first as it is and then whenever it has changed. Ends with the run."""
    last: JobRecord | None = None
    async for _ in _looks(rota, ref):
        record = (await read(rota, str(ref))).record
        if last is None or _visible(record) != _visible(last):
            yield record
        last = record
        if record.state.is_finished:
            return


async def _looks(rota: Rota, ref: JobRef) -> AsyncIterator[None]:
    """The moments to look: at once, at every event of the run, and every two seconds."""
    moved = asyncio.Event()

    async def listen() -> None:
        async for event in rota.events(queues=[ref.queue]):
            if ref.run in event.runs or event.verb == "reset":
                moved.set()

    listening = asyncio.create_task(listen())
    try:
        while True:
            moved.clear()
            yield
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_EVERY_S):
                    await moved.wait()
    finally:
        listening.cancel()
        # An outage ends the listening; the looks go on, and are what reports it.
        with suppress(Exception, asyncio.CancelledError):
            await listening


def _visible(record: JobRecord) -> tuple[Any, ...]:
    # The lease moves with every heartbeat, which is no news.
    return (record.state, record.counts, record.progress, record.error, record.due_at, record.worker, record.result)


class _Display(Protocol):
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    def show(self, record: JobRecord) -> None: ...


def _display(settings: Settings) -> _Display:
    if settings.json:
        return _JsonLines()
    return _Bar() if output.is_rich() else _Lines()


class _Lines:
    """A line for every change."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing to put back."""

    def show(self, record: JobRecord) -> None:
        """Prints it at once."""
        output.text(
            " ".join(filter(None, (f"{record.state.value:<10}", f"attempt {record.counts.attempt}", _detail(record))))
        )


class _JsonLines(_Lines):
    def show(self, record: JobRecord) -> None:
        output.json_line(job_shape(record))


class _Bar:
    """A progress bar that stays in its place."""

    def __init__(self) -> None:
        from rich.progress import BarColumn, Progress, TextColumn

        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[detail]}", markup=False),
        )
        self._bar = self._progress.add_task("", total=100, detail="")

    def __enter__(self) -> Self:
        self._progress.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.__exit__(kind, error, trace)

    def show(self, record: JobRecord) -> None:
        """Moves the bar."""
        reached = record.progress.percent if record.progress else 0
        percent = 100 if record.state is JobState.COMPLETED else reached
        name = f"{record.task} {record.state.value}"
        self._progress.update(
            self._bar, completed=percent, description=output.clean(name), detail=output.clean(_detail(record))
        )


def _detail(record: JobRecord) -> str:
    if record.state is JobState.CANCELLED:
        return record.reason
    if record.state is JobState.SCHEDULED and record.error is not None:
        return f"after {record.error.type}: {record.error.message}".partition("\n")[0]
    return describe_progress(record)
