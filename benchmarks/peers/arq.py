"""arq."""

from __future__ import annotations

import asyncio
from typing import Any

from arq import create_pool
from arq.connections import ArqRedis, RedisSettings

from benchmarks import peer_interface
from benchmarks.peer_interface import NAP_S, PORT, count_job

ABOUT = {
    "title": "arq",
    "guarantee": "at least once",
    "setup": "100 jobs at a time, no results kept, poll_delay 0.5 s as by default",
    "packages": ["arq==0.28.0", "redis==5.3.1", "hiredis==3.5.0"],
}

SETTINGS = RedisSettings(host="127.0.0.1", port=PORT)
pool: ArqRedis


async def noop(_: Any, payload: str) -> None:
    """Nothing."""
    count_job()


async def nap(_: Any, payload: str) -> None:
    """Waits."""
    await asyncio.sleep(NAP_S)
    count_job()


async def stamp(_: Any, sent: int) -> None:
    """Says when it started."""
    peer_interface.stamp(sent)


class WorkerSettings:
    """What `arq` reads."""

    functions = (noop, nap, stamp)
    redis_settings = SETTINGS
    max_jobs = 100
    keep_result = 0


def commands(measure: str, processes: int) -> list[list[str]]:
    """The worker."""
    return [
        ["arq", "benchmarks.peers.arq.WorkerSettings", "--custom-log-dict", "benchmarks.peers.arq.QUIET"]
    ] * processes


QUIET = {"version": 1, "loggers": {"arq": {"level": "WARNING"}}}


async def start() -> None:
    """Connects."""
    global pool
    pool = await create_pool(SETTINGS)


async def enqueue(task: str, argument: Any) -> None:
    """One job."""
    await pool.enqueue_job(task, argument)
