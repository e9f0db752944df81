"""A program with error hooks, and a middleware that notes what it sees of each attempt."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from rota import Context, FailedAttempt, LostAttempt, Middleware, ProcessKilled, Retry, RetryLater, Rota, Snooze

FOLDER: Final = Path(os.environ["ROTA_TEST_FOLDER"])


def note(subject: str, text: object = "") -> None:
    """Leaves a line that the test can read, whatever happens to this process afterwards."""
    file = os.open(FOLDER / "notes", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{subject} {text}\n".encode())
    os.close(file)


class Noting(Middleware):
    """Notes the errors that reach a middleware."""

    async def attempt(self, context: Context, run: Callable[[], Awaitable[Any]]) -> Any:
        """Notes what the handler raises."""
        note(f"began-{context.job.ref.id}")
        try:
            return await run()
        except BaseException as error:
            note(f"middleware-{context.job.ref.id}", type(error).__name__)
            raise

    async def attempt_lost(self, attempt: LostAttempt) -> None:
        """Notes the error of an attempt whose process was killed."""
        note(f"middleware-{attempt.job.ref.id}", repr(attempt.error))


rota = Rota(namespace=os.environ["ROTA_TEST_NAMESPACE"], middleware=[Noting()])


@rota.on_error
def broken(_: FailedAttempt) -> None:
    """Comes first, and fails."""
    raise SystemExit("this hook is broken")


@rota.on_error
async def note_failed(failed: FailedAttempt) -> None:
    """Notes all that a hook gets."""
    of_signal = (
        f" {failed.error.signal.name}" if isinstance(failed.error, ProcessKilled) and failed.error.signal else ""
    )
    then = "retry" if failed.will_retry else "final"
    note(f"hook-{failed.job.ref.id}", f"{type(failed.error).__name__}{of_signal} attempt {failed.attempt} {then}")


@rota.on_error
def note_in_thread(failed: FailedAttempt) -> None:
    """A plain function."""
    note(f"thread-{failed.job.ref.id}", threading.current_thread() is not threading.main_thread())


@rota.on_error
async def hang(failed: FailedAttempt) -> None:
    """Never returns, for one job."""
    if failed.job.ref.id == "hanging-hook":
        await asyncio.Event().wait()


@rota.task(retry=Retry(attempts=2, backoff=[0.01]))
async def fail() -> None:
    """Fails twice."""
    raise ValueError("no")


@rota.task(retry=1, timeout=0.3)
async def wait() -> None:
    """Is stopped at its timeout."""
    await asyncio.Event().wait()


@rota.task(retry=1, timeout=0.3)
def wait_in_thread() -> None:
    """Is stopped at its timeout, in a thread."""
    while True:
        threading.Event().wait(0.01)


@rota.task(retry=1, timeout=0.3, run_in="process")
def wait_in_process() -> None:
    """Its process is killed at its timeout."""
    threading.Event().wait()


@rota.task(run_in="process", max_stalls=1)
def crash() -> None:
    """Kills its process."""
    os.kill(os.getpid(), signal.SIGKILL)


@rota.task
async def later(context: Context) -> None:
    """Ends its first attempt early, with one of the signals."""
    if context.attempt == 1:
        raise Snooze(0.01)
    if context.attempt == 2:
        raise RetryLater(after=0.01)


@rota.task(run_in="process")
def begin_and_wait(name: str) -> None:
    """Says that it has begun, and never ends."""
    note(name, "begin")
    threading.Event().wait()
