"""Docket."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from docket import Docket, Worker

from benchmarks import peer_interface
from benchmarks.peer_interface import NAP_S, URL, count_job

ABOUT = {
    "title": "Docket",
    "guarantee": "at least once",
    "setup": "100 tasks at a time, finished executions not kept",
    "packages": ["pydocket==0.27.0", "redis==8.1.0", "hiredis==3.5.0", "uvloop==0.23.0"],
}

# A thousand calls at once need as many connections, or they raise.
docket = Docket(name="bench", url=f"{URL}?max_connections=2000", execution_ttl=timedelta(0))


async def noop(payload: str) -> None:
    """Nothing."""
    count_job()


async def nap(payload: str) -> None:
    """Waits."""
    await asyncio.sleep(NAP_S)
    count_job()


async def stamp(sent: int) -> None:
    """Says when it started."""
    peer_interface.stamp(sent)


TASKS = {"noop": noop, "nap": nap, "stamp": stamp}


def commands(measure: str, processes: int) -> list[list[str]]:
    """The worker: Docket's own program cannot be told to forget what has finished."""
    return [["python", "-m", "benchmarks.peers.docket"]] * processes


async def start() -> None:
    """Connects."""
    await docket.__aenter__()
    for task in TASKS.values():
        docket.register(task)


async def enqueue(task: str, argument: Any) -> None:
    """One job."""
    await docket.add(TASKS[task])(argument)


async def enqueue_many(task: str, arguments: list[Any]) -> None:
    """Many."""
    await docket.add_many([docket.call(TASKS[task])(argument) for argument in arguments])


async def stop() -> None:
    """Closes connections."""
    await docket.__aexit__(None, None, None)


async def work() -> None:
    """Runs tasks for ever."""
    await start()
    async with Worker(docket, concurrency=100) as worker:
        await worker.run_forever()


if __name__ == "__main__":
    import uvloop

    uvloop.run(work())
