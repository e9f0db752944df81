"""streaQ."""

from __future__ import annotations

import asyncio
from typing import Any

from streaq import Worker

from benchmarks import peer_interface
from benchmarks.peer_interface import NAP_S, URL, count_job

ABOUT = {
    "title": "streaQ",
    "guarantee": "at least once",
    "setup": "100 tasks at a time, results not kept, no log line for each task",
    "packages": ["streaq==7.2.0", "coredis==6.9.0", "hiredis==3.5.0", "uvloop==0.23.0"],
}

worker = Worker(redis_url=URL, concurrency=100)


@worker.task(ttl=0, silent=True)
async def noop(payload: str) -> None:
    """Nothing."""
    count_job()


@worker.task(ttl=0, silent=True)
async def nap(payload: str) -> None:
    """Waits."""
    await asyncio.sleep(NAP_S)
    count_job()


@worker.task(ttl=0, silent=True)
async def stamp(sent: int) -> None:
    """Says when it started."""
    peer_interface.stamp(sent)


TASKS = {"noop": noop, "nap": nap, "stamp": stamp}


def commands(measure: str, processes: int) -> list[list[str]]:
    """The worker."""
    return [["streaq", "run", "benchmarks.peers.streaq:worker", "--workers", str(processes)]]


async def start() -> None:
    """Connects."""
    await worker.__aenter__()


async def enqueue(task: str, argument: Any) -> None:
    """One job."""
    await TASKS[task].enqueue(argument)


async def enqueue_many(task: str, arguments: list[Any]) -> None:
    """Many."""
    await worker.enqueue_many([TASKS[task].enqueue(argument) for argument in arguments])


async def stop() -> None:
    """Closes connections."""
    await worker.__aexit__(None, None, None)
