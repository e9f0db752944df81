"""The program whose jobs are traced, as a user would have written it: nothing in it speaks of telemetry."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading

from rota import Context, ErrorRecord, JobRecord, Retry, Rota

rota = Rota(namespace=os.environ["ROTA_TEST_NAMESPACE"])
logger = logging.getLogger("shop")


@rota.task(retry=Retry(attempts=3, backoff=[0.01]))
async def charge(ctx: Context, order: int) -> int:
    """Succeeds the second time."""
    logger.info("charging %d", order)
    if ctx.attempt == 1:
        raise ConnectionError("the bank does not answer")
    return order


@rota.task
def pack(order: int) -> str:
    """In a thread; enqueues another job from there."""
    logger.info("packing %d", order)
    return label.enqueue_sync(order).id


@rota.task(run_in="process")
def label(order: int) -> str:
    """In a process of its own."""
    logger.info("labelling %d", order)
    return f"label {order}"


@rota.task(queue="mail", retry=1)
async def send(to: str) -> None:
    """Fails for good."""
    raise ValueError(f"no route to {to}")


@send.on_failure
async def tell(error: ErrorRecord, job: JobRecord) -> None:
    """Runs when the job has failed for good."""
    logger.info("told of %s", error.type)


@rota.task(queue="slow", timeout=0.3, retry=1)
async def hang() -> None:
    """Is stopped at its timeout."""
    await asyncio.sleep(60)


@rota.task(queue="fast")
async def tick(number: int = 0) -> int:
    """Hardly anything."""
    return number


@rota.task(queue="flow", retry=1)
async def step(name: str) -> str:
    """A step of a workflow."""
    if name == "ship":
        raise ValueError("nothing ships today")
    return name


@rota.task(queue="flow")
async def unstep(name: str) -> None:
    """Undoes one."""


# --- handlers that do not live to see their end ------------------------------------------------------------------


@rota.task(queue="deadly")
async def crash(ctx: Context, times: int) -> int:
    """Kills the process that runs it, at once, so many times."""
    if ctx.attempt <= times:
        os.kill(os.getpid(), signal.SIGKILL)
    return ctx.attempt


@rota.task(queue="deadly", run_in="process", timeout=0.3, retry=1)
def grind() -> None:
    """Its process is killed at its timeout."""
    threading.Event().wait()


@rota.task(queue="deadly", timeout=0.3, retry=1)
def doze() -> None:
    """In a thread that ignores its cancellation: its runner is killed some time after the timeout."""
    threading.Event().wait()


@rota.task(queue="deadly", run_in="process")
def toil(name: str) -> None:
    """Says that it has begun, and never ends."""
    logger.info("toiling at %s", name)
    threading.Event().wait()
