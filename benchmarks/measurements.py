"""The measurements taken of every peer, each on its own server. Each returns its results by name.

Rates are jobs per second. CPU is in microseconds per job, of the server, the worker with all its processes, and the
process that enqueues.
"""

from __future__ import annotations

import socket
import statistics
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from benchmarks import machine
from benchmarks.peer import Peer, Stage, staged
from benchmarks.peer_interface import NAP_S

Results = dict[str, float]
SLOTS = 100
#: Jobs that wait where few do.
SHALLOW = 10_000
#: For the first job of a worker that has just been started.
PATIENCE_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Size of a measurement: numbers of jobs and time limits. Rates refer to what was done within the limit."""

    jobs: int = 100_000
    fill_s: float = 2.0
    drain_s: float = 4.0
    enqueue_s: float = 1.5
    probes: int = 200
    probe_s: float = 3.0
    idle_s: float = 6.0
    backlog: int = 500_000
    backlog_s: float = 120.0


@dataclass(frozen=True, slots=True)
class Moment:
    """Counters of a stage at one time."""

    at: float
    count: int
    server: float
    worker: float


def drain(peer: Peer, size: Size) -> Results:
    """Bulk enqueue, memory, and one worker process that drains no-op jobs."""
    with staged(peer) as stage:
        figures = fill(stage, "noop", size)
        with stage.worker("drain") as pids:
            return figures | drained(stage, pids, size, int(figures["jobs"]), "drain")


def two(peer: Peer, size: Size) -> Results:
    """Two worker processes that drain no-op jobs."""
    with staged(peer) as stage:
        jobs = int(fill(stage, "noop", size)["jobs"])
        with stage.worker("drain", 2) as pids:
            return drained(stage, pids, size, jobs, "two")


def sleeps(peer: Peer, size: Size) -> Results:
    """One worker process and jobs that wait 10 ms, a hundred at a time."""
    with staged(peer) as stage:
        if not stage.ask("commands", measure="sleeps", processes=1):
            return {}
        most = min(size.jobs, round(SLOTS / NAP_S * size.drain_s))
        jobs = int(stage.ask("many", task="nap", jobs=most, seconds=size.fill_s)["jobs"])
        with stage.worker("sleeps") as pids:
            figures = drained(stage, pids, size, jobs, "sleeps")
    figures["sleeps_share"] = figures["sleeps_per_s"] * NAP_S / SLOTS
    return figures


def together(peer: Peer, size: Size) -> Results:
    """A thousand calls on one loop at once."""
    with staged(peer) as stage:
        stage.ask("each", task="noop", jobs=10, seconds=1)
        before = stage.server.cpu()
        answer = stage.ask("together", task="noop", seconds=size.enqueue_s)
        if answer is None:
            return {}
        return {
            "together_per_s": answer["timed"] / answer["seconds"],
            "together_client_us": answer["cpu"] / answer["timed"] * 1e6,
            "together_server_us": (stage.server.cpu() - before) / answer["jobs"] * 1e6,
        }


def single(peer: Peer, size: Size) -> Results:
    """One call after another, each awaited."""
    with staged(peer) as stage:
        stage.ask("each", task="noop", jobs=10, seconds=1)
        before = stage.server.cpu()
        answer = stage.ask("each", task="noop", jobs=size.jobs, seconds=size.enqueue_s)
        return {
            "single_per_s": answer["timed"] / answer["seconds"],
            "single_client_us": answer["cpu"] / answer["timed"] * 1e6,
            "single_server_us": (stage.server.cpu() - before) / answer["jobs"] * 1e6,
        }


def latency(peer: Peer, size: Size) -> Results:
    """From the call that enqueues to the start of the handler, on a worker that has nothing else to do."""
    with staged(peer) as stage, stage.worker("latency"):
        stage.move_driver(machine.SERVER_CORES)
        stage.ask("probe", probes=10, seconds=size.probe_s)  # whatever is done once is done now
        stage.forget_stamps()
        stage.ask("probe", probes=size.probes, seconds=size.probe_s)
        passed = sorted(stamp / 1e6 for stamp in stage.stamps())
    return {
        "latency_p50_ms": statistics.median(passed),
        "latency_p99_ms": passed[min(len(passed) - 1, int(len(passed) * 0.99))],
        "latency_probes": len(passed),
    }


def idle(peer: Peer, size: Size) -> Results:
    """The cost of an idle worker."""
    with staged(peer) as stage, stage.worker("latency") as pids:
        stage.ask("probe", probes=3, seconds=5)
        stage.close_driver()
        time.sleep(2)
        return resting(stage, pids, size.idle_s)


def resting(stage: Stage, pids: Sequence[int], seconds: float) -> Results:
    """Returns commands and CPU per second while idle. Commands inside scripts are not counted."""
    with socket.create_connection(("127.0.0.1", stage.server.port)) as watcher:
        watcher.sendall(b"MONITOR\r\n")
        watcher.settimeout(0.1)
        worker, server, began = machine.fine_cpu_of(pids), stage.server.cpu(), time.monotonic()
        seen = b""
        while time.monotonic() - began < seconds:
            with suppress(TimeoutError):
                seen += watcher.recv(1 << 16)
        elapsed = time.monotonic() - began
        worker, server = machine.fine_cpu_of(pids) - worker, stage.server.cpu() - server
    lines = [line for line in seen.split(b"\r\n") if b" lua]" not in line and b'"info"' not in line.lower()]
    return {
        "idle_commands_per_s": sum(line.startswith(b"+") and line != b"+OK" for line in lines) / elapsed,
        "idle_worker_ms_per_s": worker / elapsed * 1e3,
        "idle_server_ms_per_s": server / elapsed * 1e3,
    }


def fill(stage: Stage, task: str, size: Size) -> Results:
    """Enqueues in bulk, and measures the cost."""
    stage.ask("each", task=task, jobs=10, seconds=1)
    memory, cpu = stage.server.memory(), stage.server.cpu()
    answer = stage.ask("many", task=task, jobs=size.jobs, seconds=size.fill_s)
    return {
        "jobs": answer["jobs"] + 30,
        "bulk_per_s": answer["timed"] / answer["seconds"],
        "bulk_client_us": answer["cpu"] / answer["timed"] * 1e6,
        "bulk_server_us": (stage.server.cpu() - cpu) / answer["jobs"] * 1e6,
        "bytes_per_job": (stage.server.memory() - memory) / answer["jobs"],
    }


def drained(stage: Stage, pids: Sequence[int], size: Size, jobs: int, name: str) -> Results:
    """Measures a worker's rate and cost per job. The first third of the jobs is warm-up."""
    if not stage.wait_counted(1, PATIENCE_S):
        raise RuntimeError(f"the worker of {stage.peer.name} has ended no job for {PATIENCE_S} s:\n{stage.said()}")
    stage.wait_counted(jobs // 3, size.drain_s / 2)
    start = moment(stage, pids)
    stage.wait_counted(jobs, size.drain_s)
    end = moment(stage, pids)
    if end.count == start.count:
        raise RuntimeError(f"the worker of {stage.peer.name} came to a halt:\n{stage.said()}")
    return {f"{name}_{figure}": value for figure, value in between(start, end).items()}


def moment(stage: Stage, pids: Sequence[int]) -> Moment:
    """Returns the current counters."""
    return Moment(time.monotonic(), stage.counted(), stage.server.cpu(), machine.cpu_of(pids))


def between(start: Moment, end: Moment) -> Results:
    """Returns rate and cost per job between two moments."""
    done = end.count - start.count
    return {
        "per_s": done / (end.at - start.at),
        "worker_us": (end.worker - start.worker) / done * 1e6,
        "server_us": (end.server - start.server) / done * 1e6,
        "jobs": done,
    }


def backlog(peer: Peer, size: Size, rounds: int = 3) -> Results:
    """The first 5,000 jobs, where 10,000 wait and where many more do, in turns.

    Both servers have the same past: who keeps finished jobs, and forgets the oldest, does so on both sides.
    """
    with staged(peer) as shallow, staged(peer) as deep:
        shallow.ask("many", task="noop", jobs=SHALLOW, seconds=60)
        answer = deep.ask("many", task="noop", jobs=size.backlog, seconds=size.backlog_s)
        rows: dict[str, list[Results]] = {"shallow": [], "deep": []}
        for _ in range(rounds):
            done = shallow.counted()
            rows["shallow"].append(_first(shallow))
            rows["deep"].append(_first(deep))
            shallow.ask("many", task="noop", jobs=shallow.counted() - done, seconds=60)
    figures: Results = {"backlog_jobs": answer["jobs"]}
    for name, of_side in rows.items():
        for figure in ("per_s", "server_us", "worker_us"):
            figures[f"backlog_{name}_{figure}"] = statistics.median(row[figure] for row in of_side)
    figures["backlog_share"] = figures["backlog_deep_per_s"] / figures["backlog_shallow_per_s"]
    return figures


def _first(stage: Stage) -> Results:
    """Cold for both: a worker starts, and the 5,000 jobs after its first 1,000 are timed."""
    began = stage.counted()
    with stage.worker("drain") as pids:
        stage.wait_counted(began + 1_000, PATIENCE_S)
        start = moment(stage, pids)
        stage.wait_counted(start.count + 5_000, PATIENCE_S, every=0.002)
        return between(start, moment(stage, pids))


#: Of every peer, in this order.
MEASURES = {
    "drain": drain,
    "two": two,
    "sleeps": sleeps,
    "together": together,
    "single": single,
    "latency": latency,
    "idle": idle,
    "backlog": backlog,
}
