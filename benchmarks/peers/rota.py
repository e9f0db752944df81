"""Rota, through the same interface as all others."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from benchmarks import peer_interface
from benchmarks.peer_interface import NAP_S, URL, count_job
from rota import Keep, Rota

ABOUT = {
    "title": "Rota",
    "guarantee": "at least once, fenced",
    "setup": "rota worker, 100 slots; fences, history, counts, events and retention as they are by default",
    "packages": [],
}

rota = Rota(URL, namespace="bench")


@rota.task
async def noop(payload: str) -> None:
    """Does nothing: what remains is the queue."""
    count_job()


@rota.task
async def nap(payload: str) -> None:
    """Waits, as most jobs do."""
    await asyncio.sleep(NAP_S)
    count_job()


@rota.task
async def stamp(sent: int) -> None:
    """Says when it started."""
    peer_interface.stamp(sent)


# What follows is measured of Rota alone.


@rota.task
async def due(at_ns: int) -> None:
    """Says how late it started, by the clock on the wall."""
    peer_interface.stamp(at_ns, time.time_ns())


@rota.task(keep=Keep(finished=3600, finished_count=1_000_000))
async def kept(payload: str) -> str:
    """All of its jobs are kept, with their result."""
    count_job()
    return payload


@rota.task(keep=Keep(finished=0))
async def forgotten(payload: str) -> None:
    """None of its jobs is kept."""
    count_job()


@rota.task
def in_thread(payload: str) -> None:
    """Runs in a thread."""
    count_job()


@rota.task(run_in="process")
def in_process(payload: str) -> None:
    """Runs in a process of the pool."""
    count_job()


@rota.task(timeout=3600)
async def hold(payload: str) -> None:
    """Stays until its worker ends."""
    count_job()
    await asyncio.Event().wait()


def commands(measure: str, processes: int) -> list[list[str]]:
    """One worker, as a user starts it."""
    return [
        [
            "rota",
            "worker",
            "benchmarks.peers.rota:rota",
            "--concurrency",
            "100",
            "--processes",
            str(processes),
            "--log-level",
            "warning",
        ]
    ]


async def enqueue(task: str, argument: Any) -> None:
    """One job."""
    await rota.tasks.get(task).enqueue(argument)


async def enqueue_many(task: str, arguments: list[Any]) -> None:
    """Many."""
    call = rota.tasks.get(task).call
    await rota.enqueue_many([call(argument) for argument in arguments])


async def stop() -> None:
    """Closes the connection."""
    await rota.close()
