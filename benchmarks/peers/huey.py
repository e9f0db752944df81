"""Huey."""

from __future__ import annotations

import time
from typing import Any

from huey import RedisHuey

from benchmarks import peer_interface
from benchmarks.peer_interface import NAP_S, URL, count_job

ABOUT = {
    "title": "Huey",
    "guarantee": "at most once",
    "setup": "consumer with 4 threads, processes for two; 100 threads for sleeps",
    "packages": ["huey==3.5.4", "redis==8.1.0", "hiredis==3.5.0"],
}

huey = RedisHuey("bench", url=URL, results=False)


@huey.task()
def noop(payload: str) -> None:
    """Nothing."""
    count_job()


@huey.task()
def nap(payload: str) -> None:
    """Waits."""
    time.sleep(NAP_S)
    count_job()


@huey.task()
def stamp(sent: int) -> None:
    """Says when it started."""
    peer_interface.stamp(sent)


TASKS = {"noop": noop, "nap": nap, "stamp": stamp}


def commands(measure: str, processes: int) -> list[list[str]]:
    """The worker."""
    threads = "100" if measure == "sleeps" else "4"
    kind = ["-k", "thread", "-w", threads] if processes == 1 else ["-k", "process", "-w", str(processes)]
    return [["huey_consumer", "benchmarks.peers.huey.huey", "-q", *kind]]


def enqueue(task: str, argument: Any) -> None:
    """One job."""
    TASKS[task](argument)
