"""`make bench-growth`: what a job costs as everything around it grows. Flat lines are the aim.

Costs are CPU time, which other programs on the machine do not change much. Each part is kept when it is done:
`--parts` measures some of them, in a minute or three. The largest sizes take a few more and some gigabytes; `--most`
leaves out what is larger.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil

from benchmarks import machine
from benchmarks.measurements import Moment, Results, between, moment, resting
from benchmarks.peer import Stage, staged
from benchmarks.peer_interface import PAYLOAD
from benchmarks.report import GROWTH, growth_table, plain
from benchmarks.rota_only import ROTA
from rota import Rota, Task

RESULTS = Path(__file__).parent / "results" / "growth.json"

WAITING = (1_000, 10_000, 100_000, 1_000_000, 5_000_000)
PROCESSING = (1, 100, 1_000, 10_000)
QUEUES = (1, 10, 100, 1_000)
WORKERS = (1, 10, 100)
PAYLOADS = (100, 1_000, 10_000, 100_000, 1_000_000)
DUE = 100_000
WINDOW_S = 10
BYTES_PER_JOB = 400

Points = list[dict[str, float]]


class Producer:
    """Enqueues from this process, for cases that the peer interface has no command for."""

    def __init__(self, stage: Stage) -> None:
        self.rota = Rota(stage.server.url, namespace="bench")
        self.noop: Task[..., Any, Any] = self.rota.task(name="noop")(_anything)
        self.due: Task[..., Any, Any] = self.rota.task(name="due")(_anything)
        self.hold: Task[..., Any, Any] = self.rota.task(name="hold")(_anything)

    def close(self) -> None:
        """Closes the connection."""
        self.rota.close_sync()


async def _anything(argument: Any) -> None:
    """The workers have the real ones."""


@contextmanager
def growing() -> Generator[tuple[Stage, Producer]]:
    """A fresh server."""
    with staged(ROTA) as stage:
        producer = Producer(stage)
        try:
            yield stage, producer
        finally:
            producer.close()


def worker_words(*, concurrency: int = 100, queues: str = "default") -> list[str]:
    """A worker's command line."""
    words = ["rota", "worker", "benchmarks.peers.rota:rota", "--log-level", "warning"]
    return [*words, "--concurrency", str(concurrency), "--queues", queues]


def waiting(most: int) -> Points:
    """Jobs that wait. One worker is there all the time; the queue is paused while more are enqueued."""
    points: Points = []
    with growing() as (stage, producer), stage.worker("drain", words=worker_words()) as pids:
        queue = producer.rota.queue("default")
        stage.ask("many", task="noop", jobs=3_000, seconds=60)
        assert stage.wait_counted(3_000, 60), stage.said()
        queue.pause_sync()
        held = 0
        for depth in (size for size in WAITING if size <= most):
            if psutil.virtual_memory().available < (depth - held) * BYTES_PER_JOB * 2:
                print(f"{depth:,} waiting jobs do not fit into the memory", file=sys.stderr)
                break
            rounds: list[Results] = []
            for _ in range(3):
                _top_up(stage, depth - held)
                enqueue = _enqueue_cost(stage, 5_000)
                held = depth + 5_000
                drain = _drain_cost(stage, queue, pids, min(depth, 10_000))
                held -= int(drain["jobs"])
                rounds.append({"enqueue_server_us": enqueue, **_named(drain, "drain")})
            points.append({"x": depth, **_medians(rounds)})
            print(points[-1], file=sys.stderr)
    return points


def processing(most: int) -> Points:
    """Jobs that are being processed by another worker, whose heartbeats are counted apart."""
    points: Points = []
    for count in (size for size in PROCESSING if size <= most):
        with growing() as (stage, producer), ExitStack() as stack:
            holder = worker_words(concurrency=count)
            _enqueue(producer, producer.hold, [""] * count)
            stack.enter_context(stage.worker("drain", words=holder))
            assert stage.wait_counted(count, 60), stage.said()
            server, began = stage.server.cpu(), time.monotonic()
            time.sleep(6)
            resting_cpu = (stage.server.cpu() - server) / (time.monotonic() - began)
            _enqueue(producer, producer.noop, [PAYLOAD] * 30_000)
            pids = stack.enter_context(stage.worker("drain", words=worker_words()))
            seen = _window(stage, pids, count + 10_000, count + 30_000)
            figures = between(*seen)
            held_us = resting_cpu * (seen[1].at - seen[0].at) / figures["jobs"] * 1e6
            figures["server_us"] -= held_us
            points.append({"x": count, "heartbeat_server_ms_per_s": resting_cpu * 1e3, **_named(figures, "drain")})
            print(points[-1], file=sys.stderr)
    return points


def queues(most: int) -> Points:
    """Queues that one worker serves, with the same number of jobs in all."""
    points: Points = []
    for count in (size for size in QUEUES if size <= most):
        names = [f"q{place}" for place in range(count)]
        with growing() as (stage, producer):
            tasks = [producer.noop.using(queue=name) for name in names]
            calls = [tasks[place % count].call(PAYLOAD) for place in range(30_000)]
            server = stage.server.cpu()
            for first in range(0, len(calls), 5_000):
                producer.rota.enqueue_many_sync(calls[first : first + 5_000])
            enqueue = (stage.server.cpu() - server) / len(calls) * 1e6
            words = worker_words(queues=",".join(f"{name}=1" for name in names))
            with stage.worker("drain", words=words) as pids:
                drain = between(*_window(stage, pids, 10_000, 30_000))
                stage.wait_counted(30_000, 3 * WINDOW_S)
                time.sleep(2)
                idle = resting(stage, pids, 5)
            points.append({"x": count, "enqueue_server_us": enqueue, **_named(drain, "drain"), **idle})
            print(points[-1], file=sys.stderr)
    return points


def workers(most: int) -> Points:
    """Workers that have nothing to do. What the server spends by itself, with nobody there, is left out."""
    points: Points = []
    for count in (size for size in WORKERS if size <= most):
        with growing() as (stage, producer):
            alone = resting(stage, [], 5)["idle_server_ms_per_s"]
            with stage.worker("idle", words=["python", "-m", "benchmarks.many_workers", str(count)]) as pids:
                deadline = time.monotonic() + 60
                while sum(worker.status == "ALIVE" for worker in producer.rota.workers_sync()) < count:
                    assert time.monotonic() < deadline, stage.said()
                    time.sleep(0.5)
                producer.close()
                time.sleep(5)  # until they have all come to rest
                figures = resting(stage, pids, 10)
            figures["idle_server_ms_per_s"] -= alone
            points.append({"x": count, **figures})
            print(points[-1], file=sys.stderr)
    return points


def due(most: int) -> Points:
    """Jobs that are all due at the same moment: how many have started so many seconds after it."""
    count = min(DUE, most)
    with growing() as (stage, producer), stage.worker("drain", words=worker_words()):
        stage.ask("many", task="noop", jobs=3_000, seconds=60)
        assert stage.wait_counted(3_000, 60), stage.said()
        began = time.monotonic()
        _enqueue(producer, producer.noop.using(delay=3600), [PAYLOAD] * 5_000)
        pace = (time.monotonic() - began) / 5_000
        moment_due = datetime.now(UTC) + timedelta(seconds=3 + 2 * pace * count)
        moment_due = moment_due.replace(microsecond=0) + timedelta(seconds=1)
        _enqueue(producer, producer.due.using(run_at=moment_due), [int(moment_due.timestamp()) * 10**9] * count)
        ahead = moment_due.timestamp() - time.time()
        assert ahead > 0, "the jobs were due before they had all been enqueued: the machine is too busy"
        stage.wait_counted(3_000 + count, ahead + 60)
        late = sorted(stamp / 1e9 for stamp in stage.stamps())
    print(f"{len(late):,} started, from {late[0]:.3f} s to {late[-1]:.3f} s after they were due", file=sys.stderr)
    places = sorted({0, *(len(late) * share // 50 for share in range(50)), len(late) - 1})
    return [{"x": late[place], "started": place + 1} for place in places]


def payloads(most: int) -> Points:
    """Payloads of so many bytes."""
    points: Points = []
    for size in (size for size in PAYLOADS if size <= most):
        count = max(200, min(20_000, 100_000_000 // size))
        with growing() as (stage, producer):
            argument = "x" * (size - 2)
            chunk = max(1, min(1_000, 5_000_000 // size))
            _enqueue(producer, producer.noop, [argument] * 10)
            server, began = stage.server.cpu(), time.monotonic()
            _enqueue(producer, producer.noop, [argument] * count, chunk)
            took, enqueue = time.monotonic() - began, (stage.server.cpu() - server) / count * 1e6
            with stage.worker("drain", words=worker_words()) as pids:
                drain = between(*_window(stage, pids, count // 4, count))
            rates = {"enqueue_mb_per_s": count * size / took / 1e6, "drain_mb_per_s": drain["per_s"] * size / 1e6}
            points.append({"x": size, "enqueue_server_us": enqueue, **_named(drain, "drain"), **rates})
            print(points[-1], file=sys.stderr)
    return points


def _top_up(stage: Stage, jobs: int) -> None:
    if jobs > 0:
        stage.ask("many", task="noop", jobs=jobs, seconds=3600)


def _enqueue_cost(stage: Stage, jobs: int) -> float:
    server = stage.server.cpu()
    stage.ask("many", task="noop", jobs=jobs, seconds=60)
    return (stage.server.cpu() - server) / jobs * 1e6


def _drain_cost(stage: Stage, queue: Any, pids: Sequence[int], jobs: int) -> Results:
    start = moment(stage, pids)
    queue.resume_sync()
    assert stage.wait_counted(start.count + jobs, 60, every=0.002), stage.said()
    end = moment(stage, pids)
    queue.pause_sync()
    figures = between(start, end)
    time.sleep(0.3)  # what had been claimed is finished
    return {**figures, "jobs": stage.counted() - start.count}


def _window(stage: Stage, pids: Sequence[int], first: int, last: int) -> tuple[Moment, Moment]:
    """From one count of jobs to another, or what is done of that in some seconds."""
    assert stage.wait_counted(1, 60), stage.said()
    stage.wait_counted(first, WINDOW_S)
    start = moment(stage, pids)
    stage.wait_counted(last, WINDOW_S)
    end = moment(stage, pids)
    assert end.count > start.count, stage.said()
    return start, end


def _enqueue(producer: Producer, task: Any, arguments: Sequence[Any], chunk: int = 5_000) -> None:
    for first in range(0, len(arguments), chunk):
        producer.rota.enqueue_many_sync([task.call(argument) for argument in arguments[first : first + chunk]])


def _named(figures: Results, name: str) -> Results:
    return {f"{name}_{figure}": value for figure, value in figures.items()}


def _medians(rounds: Sequence[Results]) -> Results:
    return {name: statistics.median(row[name] for row in rounds) for name in rounds[0]}


PARTS: dict[str, Callable[[int], Points]] = {
    "waiting": waiting,
    "processing": processing,
    "queues": queues,
    "workers": workers,
    "due": due,
    "payloads": payloads,
}


def main() -> None:
    """Measures, keeps the figures, and draws."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", default=",".join(PARTS), help=f"some of {', '.join(PARTS)}")
    parser.add_argument("--most", type=int, default=10**9, help="the largest size of any part")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    results: dict[str, Any] = json.loads(options.results.read_text()) if options.results.exists() else {}
    for name in options.parts.split(","):
        print(f"{name} …", file=sys.stderr, flush=True)
        points = PARTS[name](options.most)
        results["machine"] = machine.description()
        results[name] = [{figure: round(value, 4) for figure, value in point.items()} for point in points]
        options.results.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    for name, chart in GROWTH.items():
        if results.get(name):
            print(f"\n{chart.title}\n{plain(growth_table(chart, results[name]))}")


if __name__ == "__main__":
    machine.exit_on_terminate()
    main()
