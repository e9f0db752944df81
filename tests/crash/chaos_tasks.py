"""The program of the fault-injection suite: tasks whose handlers write a journal. Address and folder come from the
environment."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from rota import Context, ErrorRecord, Fixed, JobRecord, Keep, Retry, Rota
from tests.crash.journal import Journal

FOLDER: Final = Path(os.environ["ROTA_TEST_FOLDER"])
SHARDS: Final = int(os.environ.get("ROTA_TEST_SHARDS", "0"))
#: Faults make no job a dead letter, and nothing that the checker reads is trimmed before it has been read.
STALLS: Final = 100_000
RETRY: Final = Retry(attempts=3, backoff=Fixed(0.2))
KEEP: Final = Keep(finished=86_400, finished_count=1_000_000, failed=86_400, failed_count=1_000_000)
TIMEOUT_S: Final = 120.0

rota = Rota(
    namespace=os.environ["ROTA_TEST_NAMESPACE"],
    durability=os.environ.get("ROTA_TEST_DURABILITY", "memory"),  # type: ignore[arg-type]  # checked when it is used
    # The key that holds by how many ms the server's clock is wrong: the scripts add it to their time.
    clock=os.environ.get("ROTA_TEST_CLOCK_KEY", ""),
)
if SHARDS:
    rota.queue("default", shards=SHARDS)
journal = Journal(FOLDER, "handler")
_WRONG_CLOCK_S: Final = float(os.environ.get("ROTA_TEST_WRONG_CLOCK_S", "0"))
if _WRONG_CLOCK_S:
    _right_time = time.time
    time.time = lambda: _right_time() + _WRONG_CLOCK_S


@dataclass
class Work:
    """What a job is to do."""

    seconds: float = 0.0
    #: Its first attempts fail.
    failures: int = 0
    #: The name of its lock, for the journal.
    lock: str = ""
    #: Counts the calls that were made for one id.
    version: int = 0
    #: Names the call that made the job, where the server chose the id: one call makes one job.
    key: str = ""


class Failed(Exception):
    """The failure that a job was asked for."""


@contextmanager
def _journalled(ctx: Context, work: Work, task: str) -> Generator[dict[str, Any]]:
    """Journals the attempt. Yields what the handler returns: which attempt it was."""
    ref = ctx.job.ref
    which = {"job": ref.full_id, "run": ref.run, "attempt": ctx.attempt, "fence": ctx.fence}
    journal.write(
        "begin",
        **which,
        task=task,
        lock=work.lock,
        queue=ref.queue,
        version=work.version,
        key=work.key,
        failures=ctx.job.counts.failures,
        supervisor=os.getppid(),
    )
    outcome = "stopped"
    try:
        if ctx.job.counts.failures < work.failures:
            outcome = "error"
            raise Failed(f"failure {ctx.job.counts.failures + 1} of {work.failures}")
        yield which
        outcome = "ok"
    finally:
        journal.write("end", **which, task=task, lock=work.lock, queue=ref.queue, outcome=outcome)


@rota.task(max_stalls=STALLS, timeout=TIMEOUT_S, retry=RETRY, keep=KEEP)
async def work(ctx: Context, todo: Work) -> dict[str, Any]:
    """On the loop."""
    with _journalled(ctx, todo, "work") as which:
        await asyncio.sleep(todo.seconds)
        return which


@rota.task(max_stalls=STALLS, timeout=TIMEOUT_S, retry=RETRY, keep=KEEP)
def work_in_thread(ctx: Context, todo: Work) -> dict[str, Any]:
    """In a thread."""
    with _journalled(ctx, todo, "work_in_thread") as which:
        end = time.monotonic() + todo.seconds
        while time.monotonic() < end:
            time.sleep(0.005)
        return which


@rota.task(run_in="process", max_stalls=STALLS, timeout=TIMEOUT_S, retry=RETRY, keep=KEEP)
def work_in_process(ctx: Context, todo: Work) -> dict[str, Any]:
    """In a process of its own."""
    with _journalled(ctx, todo, "work_in_process") as which:
        time.sleep(todo.seconds)
        return which


@rota.task(max_stalls=STALLS, timeout=TIMEOUT_S, retry=RETRY, keep=KEEP, per_worker=1)
async def work_alone(ctx: Context, todo: Work) -> dict[str, Any]:
    """Never twice in one worker at the same time."""
    with _journalled(ctx, todo, "work_alone") as which:
        await asyncio.sleep(todo.seconds)
        return which


@rota.task(max_stalls=STALLS, timeout=TIMEOUT_S, retry=1, keep=KEEP)
async def fail_for_good(ctx: Context, todo: Work) -> dict[str, Any]:
    """Becomes a dead letter, whose failure handler runs."""
    with _journalled(ctx, todo, "fail_for_good"):
        raise Failed("as asked")


@fail_for_good.on_failure
async def handle_failure(error: ErrorRecord, job: JobRecord, todo: Work) -> None:
    """Journals that it ran."""
    journal.write("failure_handled", job=job.ref.full_id, run=job.ref.run)


@rota.every(timedelta(seconds=1), misfire="all")
@rota.task(max_stalls=STALLS, timeout=TIMEOUT_S, retry=RETRY, keep=KEEP)
async def tick(ctx: Context) -> dict[str, Any]:
    """The job of a schedule."""
    with _journalled(ctx, Work(), "tick") as which:
        return which
