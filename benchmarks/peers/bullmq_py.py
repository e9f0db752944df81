"""BullMQ for Python."""

from __future__ import annotations

import asyncio
from typing import Any

from bullmq import Queue, Worker

from benchmarks import peer_interface
from benchmarks.peer_interface import NAP_S, URL, count_job

ABOUT = {
    "title": "BullMQ for Python",
    "guarantee": "at least once",
    "setup": "100 jobs at a time, removed when completed",
    "packages": ["bullmq==3.4.4", "redis==8.1.0", "hiredis==3.5.0", "uvloop==0.23.0"],
}

REMOVED = {"removeOnComplete": True}
queue: Queue


async def process(job: Any, token: str) -> None:
    """Runs a job."""
    if job.name == "stamp":
        peer_interface.stamp(job.data["argument"])
        return
    if job.name == "nap":
        await asyncio.sleep(NAP_S)
    count_job()


def commands(measure: str, processes: int) -> list[list[str]]:
    """The worker."""
    return [["python", "-m", "benchmarks.peers.bullmq_py"]] * processes


async def start() -> None:
    """Connects."""
    global queue
    queue = Queue("bench", {"connection": URL})


async def enqueue(task: str, argument: Any) -> None:
    """One job."""
    await queue.add(task, {"argument": argument}, REMOVED)


async def enqueue_many(task: str, arguments: list[Any]) -> None:
    """Many."""
    await queue.addBulk([{"name": task, "data": {"argument": argument}, "opts": REMOVED} for argument in arguments])


async def stop() -> None:
    """Closes connections."""
    await queue.close()


async def work() -> None:
    """Runs jobs for ever."""
    Worker("bench", process, {"connection": URL, "concurrency": 100})
    await asyncio.Event().wait()


if __name__ == "__main__":
    import uvloop

    uvloop.run(work())
