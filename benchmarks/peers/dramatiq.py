"""Dramatiq."""

from __future__ import annotations

import time
from typing import Any

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from benchmarks import peer_interface
from benchmarks.peer_interface import NAP_S, URL, count_job

ABOUT = {
    "title": "Dramatiq",
    "guarantee": "at least once",
    "setup": "8 threads per process, which is its default; 100 threads for sleeps",
    "packages": ["dramatiq[redis]==2.2.1", "redis==8.1.0", "hiredis==3.5.0"],
}

broker = RedisBroker(url=URL)
dramatiq.set_broker(broker)


@dramatiq.actor
def noop(payload: str) -> None:
    """Nothing."""
    count_job()


@dramatiq.actor
def nap(payload: str) -> None:
    """Waits."""
    time.sleep(NAP_S)
    count_job()


@dramatiq.actor
def stamp(sent: int) -> None:
    """Says when it started."""
    peer_interface.stamp(sent)


TASKS = {"noop": noop, "nap": nap, "stamp": stamp}


def commands(measure: str, processes: int) -> list[list[str]]:
    """The worker."""
    threads = "100" if measure == "sleeps" else "8"
    return [["dramatiq", "benchmarks.peers.dramatiq", "--processes", str(processes), "--threads", threads]]


def enqueue(task: str, argument: Any) -> None:
    """One job."""
    TASKS[task].send(argument)
