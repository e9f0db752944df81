"""Celery."""

from __future__ import annotations

import time
from typing import Any

from celery import Celery

from benchmarks import peer_interface
from benchmarks.peer_interface import NAP_S, URL, count_job

ABOUT = {
    "title": "Celery",
    "guarantee": "at least once (acks_late)",
    "setup": "prefork, acks_late, prefetch 64 per process; 100 threads for sleeps",
    "packages": ["celery[redis]==5.7.0", "redis==8.1.0", "hiredis==3.5.0"],
}

app = Celery("bench", broker=URL)
app.conf.update(
    task_acks_late=True,
    task_ignore_result=True,
    worker_prefetch_multiplier=64,  # the manual, for short tasks
    broker_connection_retry_on_startup=True,
)


@app.task
def noop(payload: str) -> None:
    """Nothing."""
    count_job()


@app.task
def nap(payload: str) -> None:
    """Waits."""
    time.sleep(NAP_S)
    count_job()


@app.task
def stamp(sent: int) -> None:
    """Says when it started."""
    peer_interface.stamp(sent)


TASKS = {"noop": noop, "nap": nap, "stamp": stamp}


def commands(measure: str, processes: int) -> list[list[str]]:
    """The worker."""
    pool = ["threads", "100"] if measure == "sleeps" else ["prefork", str(processes)]
    words = ["celery", "-A", "benchmarks.peers.celery", "worker", "-P", pool[0], "-c", pool[1], "-l", "warning"]
    return [[*words, "--prefetch-multiplier", "1"] if measure == "sleeps" else words]


def enqueue(task: str, argument: Any) -> None:
    """One job."""
    TASKS[task].delay(argument)
