"""The tasks of the demo, one for each way in which a job can go. What a handler needs to know, its context says."""

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
    """Fast: on the event loop, with many others."""
    await asyncio.sleep(0.02)
    return f"Hello, {name}!"


@rota.task(queue="images")
def thumbnail(name: str) -> str:
    """A plain `def`: in a thread, where it may block."""
    time.sleep(0.3)
    return hashlib.sha256(name.encode()).hexdigest()


@rota.task(queue="images", run_in="process")
def render(ctx: Context, name: str) -> str:
    """CPU-bound: in a process of its own."""
    digest, rows = name.encode(), 40
    for row in range(rows):
        until = time.process_time() + 0.05
        while time.process_time() < until:
            digest = hashlib.sha256(digest).digest()
        ctx.progress(row + 1, rows, f"row {row + 1}")
    return digest.hex()


@rota.task
async def download(ctx: Context, chunks: int = 30) -> int:
    """Slow, and says how far it is."""
    for chunk in range(chunks):
        await asyncio.sleep(0.2)
        ctx.progress(chunk + 1, chunks, f"{chunk + 1} of {chunks}")
    return chunks


@rota.task(queue="mail", retry=SOON)
async def flaky(ctx: Context) -> int:
    """Fails twice, and succeeds then."""
    failures = ctx.job.counts.failures
    if failures < 2:
        raise ConnectionError(f"the mail server hung up, for the {('first', 'second')[failures]} time")
    return failures


@rota.task
async def broken() -> None:
    """Fails for good."""
    raise PermanentError("there is no such account")


@rota.task
async def mended(ctx: Context) -> str:
    """Fails for good in its first life, and succeeds once it is redriven."""
    if ctx.attempt == 1:
        raise PermanentError("the disk is full")
    return "there is room again"


@rota.task(queue="mail")
async def reminder(text: str) -> str:
    """Is enqueued for later."""
    return text


@rota.task(queue="chores")
async def chore(number: int) -> int:
    """One of many."""
    await asyncio.sleep(0.25)
    return number


@rota.task
async def endless(ctx: Context) -> None:
    """Goes on until somebody cancels it."""
    for step in range(10_000):
        ctx.progress(step % 100, 100, "until it is cancelled")
        await asyncio.sleep(0.1)


@rota.task(run_in="process", timeout=1.5, retry=NEVER_AGAIN)
def stuck() -> None:
    """Hangs, and is killed when its time is over."""
    time.sleep(600)


@rota.task(queue="mail")
async def patient(ctx: Context) -> int:
    """Asks twice to be run later: no failure is spent."""
    if ctx.job.counts.snoozes < 2:
        raise Snooze(1.0)
    return ctx.job.counts.snoozes


@rota.task
async def needless() -> None:
    """Finds that there is nothing to do, and says so."""
    raise Cancel("the order was withdrawn")


@rota.task(run_in="process")
def crasher(ctx: Context) -> int:
    """Takes its process down at the first attempt; the second one is fine."""
    if ctx.job.counts.stalls == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return ctx.job.counts.stalls


@rota.task(run_in="process", max_stalls=1)
def poison() -> None:
    """Takes its process down whenever it runs: it is forgiven once, and then kept as a dead letter."""
    os.kill(os.getpid(), signal.SIGKILL)


@rota.task(queue="chores")
async def booking(ctx: Context, name: str) -> str:
    """One of several that share a lock, an id, or come one after the other: they never run at the same time."""
    for step in range(10):
        ctx.progress(step, 10, name)
        await asyncio.sleep(0.1)
    return name


@rota.task
async def survivor(ctx: Context, seconds: float = 2.0) -> float:
    """Outlives its worker: the demo kills that one with SIGKILL while this is running."""
    steps = round(seconds * 10)
    for step in range(steps):
        ctx.progress(step, steps, f"attempt {ctx.attempt}, its worker gets killed" if ctx.attempt == 1 else "once more")
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
    """Undoes it."""
    await asyncio.sleep(0.2)


@rota.task(queue="chores")
async def take(item: str) -> str:
    """Beside it, in another queue."""
    await asyncio.sleep(0.4)
    return item


@rota.task(queue="chores")
async def restock(item: str) -> None:
    """Undoes that."""
    await asyncio.sleep(0.2)


@rota.task(queue="mail")
async def send(ctx: Context, item: str, payment: str) -> str:
    """The last step, after both. An elephant cannot be sent; a piano only when somebody is at home."""
    await asyncio.sleep(0.3)
    if item == "elephant":
        raise PermanentError("it is too heavy")
    if item == "piano" and ctx.attempt == 1:
        raise PermanentError("nobody is at home")
    return f"sent a {item}, {payment}"
