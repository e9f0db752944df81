"""taskiq with Redis streams, which are acknowledged."""

from __future__ import annotations

import asyncio
from typing import Any

from taskiq_redis import RedisStreamBroker

from benchmarks import peer_interface
from benchmarks.peer_interface import NAP_S, URL, count_job

ABOUT = {
    "title": "taskiq (streams)",
    "guarantee": "at least once",
    "setup": "RedisStreamBroker, acknowledged when done, 100 tasks at a time, no result backend",
    "packages": ["taskiq==0.13.0", "taskiq-redis==1.2.4", "redis==8.1.0", "hiredis==3.5.0", "uvloop==0.23.0"],
}

broker = RedisStreamBroker(URL)


@broker.task
async def noop(payload: str) -> None:
    """Nothing."""
    count_job()


@broker.task
async def nap(payload: str) -> None:
    """Waits."""
    await asyncio.sleep(NAP_S)
    count_job()


@broker.task
async def stamp(sent: int) -> None:
    """Says when it started."""
    peer_interface.stamp(sent)


TASKS = {"noop": noop, "nap": nap, "stamp": stamp}


def commands(measure: str, processes: int) -> list[list[str]]:
    """The worker."""
    words = ["taskiq", "worker", "benchmarks.peers.taskiq:broker", "--workers", str(processes)]
    return [[*words, "--max-async-tasks", "100", "--log-level", "WARNING"]]


async def start() -> None:
    """Connects."""
    await broker.startup()


async def enqueue(task: str, argument: Any) -> None:
    """One job."""
    await TASKS[task].kiq(argument)


async def stop() -> None:
    """Closes connections."""
    await broker.shutdown()
