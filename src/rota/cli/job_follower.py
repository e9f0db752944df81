"""Follows one job until it ends: prints its progress, or its log.

Reads on each event, and at least every two seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from rota.cli import output
from rota.cli.commands.job import describe_progress, read
from rota.cli.common_options import Settings
from rota.cli.connection import connected
from rota.cli.to_json import job_json, log_json
from rota.core.format_iso_time import iso_time_or_none
from rota.core.state_transitions import JobState

if TYPE_CHECKING:
    from rota.client.rota import Rota
    from rota.core.ids import JobRef
    from rota.core.job_record import JobRecord

POLL_S: Final = 2.0


async def watch_job(settings: Settings, job_id: str) -> int:
    """Prints every change until the job has ended. Returns the exit code."""
    async with connected(settings) as rota:
        ref = (await read(rota, job_id)).record.ref
        record: JobRecord | None = None
        with _display(settings) as display:
            async for record in _changes(rota, ref):
                display.show(record)
        assert record is not None, "an existing job is read at least once"
    if not settings.json and record.state is JobState.COMPLETED and record.result is not None:
        output.text(record.result.decode())
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
        async for _ in _wakeups(rota, record.ref):
            # The state is read before the lines, so that the last lines are not missed.
            state = (await read(rota, str(record.ref))).record.state
            printed += await _print_lines(settings, rota, record.ref, printed)
            if state.is_finished:
                return


async def _print_lines(settings: Settings, rota: Rota, ref: JobRef, start: int) -> int:
    from rota.client.session import session_of

    lines = await session_of(rota).views.log(ref, start=start)
    for line in lines:
        if settings.json:
            output.json_line(log_json(line))
        else:
            output.text(f"{iso_time_or_none(line.at)} {line.level:<7} {line.text}")
    return len(lines)


async def _changes(rota: Rota, ref: JobRef) -> AsyncIterator[JobRecord]:
    """Yields the run's record, and again after each change, until the run has ended."""
    last: JobRecord | None = None
    async for _ in _wakeups(rota, ref):
        record = (await read(rota, str(ref))).record
        if last is None or _visible(record) != _visible(last):
            yield record
        last = record
        if record.state.is_finished:
            return


async def _wakeups(rota: Rota, ref: JobRef) -> AsyncIterator[None]:
    """Yields immediately, after each event of the run, and at least every two seconds."""
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
                async with asyncio.timeout(POLL_S):
                    await moved.wait()
    finally:
        listening.cancel()
        # An outage ends the event stream; the next read reports it.
        with suppress(Exception, asyncio.CancelledError):
            await listening


def _visible(record: JobRecord) -> tuple[Any, ...]:
    # Without the lease, which changes with every heartbeat.
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
    """Prints a line for every change."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing to clean up."""

    def show(self, record: JobRecord) -> None:
        """Prints the record."""
        output.text(
            " ".join(filter(None, (f"{record.state.value:<10}", f"attempt {record.counts.attempt}", _detail(record))))
        )


class _JsonLines(_Lines):
    def show(self, record: JobRecord) -> None:
        output.json_line(job_json(record))


class _Bar:
    """A live progress bar."""

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
        """Updates the bar."""
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
