"""RQ."""

from __future__ import annotations

from typing import Any

from redis import Redis
from rq import Queue

from benchmarks import peer_interface
from benchmarks.peer_interface import URL, count_job

ABOUT = {
    "title": "RQ",
    "guarantee": "at least once, but jobs of a dead worker fail unless retries were asked for",
    "setup": "rq worker, which forks for each job; a worker-pool for two; runs one job at a time, so no sleeps",
    "packages": ["rq==2.12.0", "redis==8.1.0", "hiredis==3.5.0"],
}

queue = Queue("bench", connection=Redis.from_url(URL))


def noop(payload: str) -> None:
    """Nothing."""
    count_job()


def stamp(sent: int) -> None:
    """Says when it started."""
    peer_interface.stamp(sent)


TASKS = {"noop": noop, "stamp": stamp}


def commands(measure: str, processes: int) -> list[list[str]]:
    """The worker."""
    if measure == "sleeps":
        return []
    if processes == 1:
        return [["rq", "worker", "--url", URL, "--logging_level", "WARNING", "bench"]]
    return [["rq", "worker-pool", "--url", URL, "--logging-level", "WARNING", "-n", str(processes), "bench"]]


def enqueue(task: str, argument: Any) -> None:
    """One job."""
    queue.enqueue(f"benchmarks.peers.rq.{task}", argument, result_ttl=0)


def enqueue_many(task: str, arguments: list[Any]) -> None:
    """Many."""
    name = f"benchmarks.peers.rq.{task}"
    queue.enqueue_many([Queue.prepare_data(name, (argument,), result_ttl=0) for argument in arguments])
