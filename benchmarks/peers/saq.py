"""SAQ."""

from __future__ import annotations

import asyncio
from typing import Any

from saq import Queue

from benchmarks import peer_interface
from benchmarks.peer_interface import NAP_S, URL, count_job

ABOUT = {
    "title": "SAQ",
    "guarantee": "at least once",
    "setup": "100 jobs at a time, finished jobs not kept",
    "packages": ["saq[redis]==0.26.4", "redis==7.4.1", "hiredis==3.5.0", "typing_extensions==4.16.0", "uvloop==0.23.0"],
}

queue = Queue.from_url(URL, name="bench")


async def noop(_: Any, *, argument: str) -> None:
    """Nothing."""
    count_job()


async def nap(_: Any, *, argument: str) -> None:
    """Waits."""
    await asyncio.sleep(NAP_S)
    count_job()


async def stamp(_: Any, *, argument: int) -> None:
    """Says when it started."""
    peer_interface.stamp(argument)


settings = {"queue": queue, "functions": [noop, nap, stamp], "concurrency": 100}


def commands(measure: str, processes: int) -> list[list[str]]:
    """The worker."""
    return [["saq", "benchmarks.peers.saq.settings", "--workers", str(processes)]]


async def start() -> None:
    """Connects."""
    await queue.connect()


async def enqueue(task: str, argument: Any) -> None:
    """One job."""
    await queue.enqueue(task, argument=argument, ttl=-1)


async def stop() -> None:
    """Closes connections."""
    await queue.disconnect()
