"""A program whose jobs fail, and what it does about that."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final

from rota import Context, Depends, ErrorRecord, Fixed, JobRecord, PermanentError, Retry, Rota

FOLDER: Final = Path(os.environ["ROTA_TEST_FOLDER"])
STEP_SECONDS: Final = 0.01
#: What `test_options_come_from_the_handler_then_the_queue_then_the_defaults` expects of queue `mail`.
MAIL_TIMEOUT: Final = 44

rota = Rota(namespace=os.environ["ROTA_TEST_NAMESPACE"])
rota.queue("mail", failure_defaults={"timeout": MAIL_TIMEOUT, "max_stalls": 7})


def note(subject: str, text: object = "") -> None:
    """Leaves a line that the test can read, whatever happens to this process afterwards."""
    file = os.open(FOLDER / "notes", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{subject} {text}\n".encode())
    os.close(file)


async def hold(name: str) -> None:
    """Waits until the test allows it."""
    while not (FOLDER / f"allowed-{name}").exists():  # noqa: ASYNC110  # it happens in another process
        await asyncio.sleep(STEP_SECONDS)


def describe(error: ErrorRecord, job: JobRecord, *more: object) -> str:
    """The arguments of a failure handler, for the test."""
    return json.dumps(
        {
            "kind": error.kind,
            "type": error.type,
            "message": error.message,
            "attributes": error.attributes,
            "ref": str(job.ref),
            "task": job.task,
            "state": job.state,
            "attempt": job.counts.attempt,
            "failures": job.counts.failures,
            "stalls": job.counts.stalls,
            "enqueued_at": job.enqueued_at,
            "ended_at": job.ended_at,
            "tags": job.options.tags,
            "meta": job.options.meta,
            "more": [repr(one) for one in more],
        }
    )


@dataclass
class Order:
    """Not JSON itself: only the task's annotation makes one of what is stored."""

    number: int
    day: date


class Refused(Exception):
    """An error with an attribute."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code = code


def lend() -> Iterator[str]:
    """Something that has to be cleaned up."""
    yield "lent"
    note("lend", "cleaned up")


@rota.task(retry=1)
async def charge(subject: str, order: Order, *, how: str = "exception", loud: bool = False) -> None:
    """Fails in the way `how` names."""
    note(subject, "begin")
    if how == "permanent":
        raise PermanentError("never")
    if how == "timeout":
        await hold("never")
    if how == "die":
        os._exit(3)
    raise Refused("no money", 402)


@charge.on_failure
async def refund(
    ctx: Context,
    error: ErrorRecord,
    job: JobRecord,
    subject: str,
    order: Order,
    *,
    how: str = "exception",
    loud: bool = False,
    lent: str = Depends(lend),
) -> None:
    """Gets all there is."""
    note(f"{subject}-failure", describe(error, job, order, how, loud, ctx.job.ref.queue, ctx.job.task, lent))


@rota.task(retry=Retry(attempts=2, backoff=Fixed(0.01)))
def plain(*numbers: int, subject: str) -> None:
    """In a thread, with positional arguments beyond names."""
    raise ValueError(f"{numbers}")


@plain.on_failure(timeout=20, priority="high")
def plain_failed(error: ErrorRecord, job: JobRecord, *numbers: int, subject: str) -> None:
    """In a thread as well."""
    note(f"{subject}-failure", describe(error, job, *numbers))


@rota.task(retry=1)
async def shy(subject: str) -> None:
    """Fails; its handler takes no arguments, and does not need them."""
    raise ValueError(subject)


@shy.on_failure(run_in="process", retry=Retry(attempts=3, backoff=Fixed(0.01)))
def shy_failed(error: ErrorRecord, job: JobRecord) -> None:
    """In a process of its own."""
    note("shy-failure", describe(error, job, os.getpid()))


@rota.task(retry=1)
async def unlucky(subject: str, times: int) -> None:
    """Fails; so does its handler, so many times."""
    raise ValueError(subject)


@unlucky.on_failure(retry=Retry(attempts=3, backoff=Fixed(0.01)), tags=["alarm"])
async def unlucky_failed(ctx: Context, error: ErrorRecord, job: JobRecord, subject: str, times: int) -> str:
    """Succeeds at last."""
    note(f"{subject}-failure", ctx.attempt)
    if ctx.attempt <= times:
        raise ConnectionError("connection refused")
    return "told"


@rota.task(retry=1)
async def patient(subject: str) -> None:
    """Fails; its handler takes its time."""
    raise ValueError(subject)


@patient.on_failure
async def patient_failed(ctx: Context, error: ErrorRecord, job: JobRecord, subject: str) -> None:
    """Waits until the test allows it to end."""
    note(f"{subject}-failure", f"begin {ctx.attempt}")
    await hold(subject)
    note(f"{subject}-failure", f"end {ctx.attempt}")


@rota.task(retry=1)
async def careless(subject: str) -> None:
    """Fails, and has no failure handler."""
    note(subject, "begin")
    raise ValueError(subject)


@rota.task(at_most_once=True)
async def once(subject: str) -> None:
    """Holds until the worker goes."""
    note(subject, "begin")
    await hold(subject)


@once.on_failure
def once_failed(error: ErrorRecord, job: JobRecord, subject: str) -> None:
    """Handles the stall."""
    note(f"{subject}-failure", describe(error, job))


@rota.task(retry=1)
async def periodic(subject: str, round: int) -> None:
    """A job without end: each round enqueues the next one."""
    note(subject, f"round {round}")
    if round == 2:
        raise PermanentError("this round is bad")
    if round < 4:
        await periodic.using(id=f"{subject}-{round + 1}").enqueue(subject, round + 1)


@periodic.on_failure
async def periodic_failed(error: ErrorRecord, job: JobRecord, subject: str, round: int) -> None:
    """Makes the next round where the job itself could not."""
    note(subject, f"handler after {round}")
    await periodic.using(id=job.ref.id).enqueue(subject, round + 1)
