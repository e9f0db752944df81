"""The tasks of the demo, one for each way in which a job can end. Handlers read the attempt from their context."""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
import time
from typing import Final

from rota import Cancel, Context, Fixed, PermanentError, Retry, Rota, Snooze

rota = Rota()

QUEUES: Final = ("default", "mail", "images", "chores")
SOON: Final = Retry(attempts=3, backoff=Fixed(1.0))
NEVER_AGAIN: Final = Retry(attempts=1)


@rota.task(queue="mail")
async def greet(name: str) -> str:
    """Fast: runs on the event loop, with many others."""
    await asyncio.sleep(0.02)
    return f"Hello, {name}!"


@rota.task(queue="images")
def thumbnail(name: str) -> str:
    """A plain `def`: runs in a thread, where it may block."""
    time.sleep(0.3)
    return hashlib.sha256(name.encode()).hexdigest()


@rota.task(queue="images", run_in="process")
def render(ctx: Context, name: str) -> str:
    """CPU-bound: runs in a separate process."""
    digest, rows = name.encode(), 40
    for row in range(rows):
        until = time.process_time() + 0.05
        while time.process_time() < until:
            digest = hashlib.sha256(digest).digest()
        ctx.progress(row + 1, rows, f"row {row + 1}")
    return digest.hex()


@rota.task
async def download(ctx: Context, chunks: int = 30) -> int:
    """Slow, and reports its progress."""
    for chunk in range(chunks):
        await asyncio.sleep(0.2)
        ctx.progress(chunk + 1, chunks, f"{chunk + 1} of {chunks}")
    return chunks


@rota.task(queue="mail", retry=SOON)
async def flaky(ctx: Context) -> int:
    """Fails twice, then succeeds."""
    failures = ctx.job.counts.failures
    if failures < 2:
        raise ConnectionError(f"the mail server closed the connection, for the {('first', 'second')[failures]} time")
    return failures


@rota.task
async def broken() -> None:
    """Fails for good."""
    raise PermanentError("there is no such account")


@rota.task
async def repaired(ctx: Context) -> str:
    """Fails for good at the first attempt, and succeeds once it is redriven."""
    if ctx.attempt == 1:
        raise PermanentError("the disk is full")
    return "there is room again"


@rota.task(queue="mail")
async def reminder(text: str) -> str:
    """Enqueued for later."""
    return text


@rota.task(queue="chores")
async def chore(number: int) -> int:
    """One of many."""
    await asyncio.sleep(0.25)
    return number


@rota.task
async def endless(ctx: Context) -> None:
    """Runs until it is cancelled."""
    for step in range(10_000):
        ctx.progress(step % 100, 100, "until it is cancelled")
        await asyncio.sleep(0.1)


@rota.task(run_in="process", timeout=1.5, retry=NEVER_AGAIN)
def stuck() -> None:
    """Hangs, and is killed at its timeout."""
    time.sleep(600)


@rota.task(queue="mail")
async def patient(ctx: Context) -> int:
    """Snoozes twice, which counts as no failure."""
    if ctx.job.counts.snoozes < 2:
        raise Snooze(1.0)
    return ctx.job.counts.snoozes


@rota.task
async def needless() -> None:
    """Finds nothing to do, and cancels itself."""
    raise Cancel("the order was withdrawn")


@rota.task(run_in="process")
def crasher(ctx: Context) -> int:
    """Crashes its process at the first attempt, and succeeds at the second."""
    if ctx.job.counts.stalls == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return ctx.job.counts.stalls


@rota.task(run_in="process", max_stalls=1)
def poison() -> None:
    """Crashes its process at every attempt: after the one stall it is allowed, it becomes a dead letter."""
    os.kill(os.getpid(), signal.SIGKILL)


@rota.task(queue="chores")
async def booking(ctx: Context, name: str) -> str:
    """One of several jobs that share a lock or an id, or depend on each other: they never run at the same time."""
    for step in range(10):
        ctx.progress(step, 10, name)
        await asyncio.sleep(0.1)
    return name


@rota.task
async def survivor(ctx: Context, seconds: float = 2.0) -> float:
    """Survives its worker: the demo kills the worker with SIGKILL while this job is running."""
    steps = round(seconds * 10)
    for step in range(steps):
        ctx.progress(step, steps, "its worker will be killed" if ctx.attempt == 1 else "again")
        await asyncio.sleep(0.1)
    return seconds


# --- steps of an order -------------------------------------------------------------------------------------------


@rota.task
async def pay(item: str) -> str:
    """The first step of an order."""
    await asyncio.sleep(0.3)
    return f"payment for a {item}"


@rota.task
async def refund(payment: str) -> None:
    """Undoes `pay`."""
    await asyncio.sleep(0.2)


@rota.task(queue="chores")
async def take(item: str) -> str:
    """The second step, parallel to `pay`, in another queue."""
    await asyncio.sleep(0.4)
    return item


@rota.task(queue="chores")
async def restock(item: str) -> None:
    """Undoes `take`."""
    await asyncio.sleep(0.2)


@rota.task(queue="mail")
async def send(ctx: Context, item: str, payment: str) -> str:
    """The last step, after both. An elephant cannot be sent; a piano only after the workflow was resumed."""
    await asyncio.sleep(0.3)
    if item == "elephant":
        raise PermanentError("it is too heavy")
    if item == "piano" and ctx.attempt == 1:
        raise PermanentError("the customer is not at home")
    return f"sent a {item}, {payment}"
