"""Measurements of Rota only: the cost of guarantees, of threads and processes, and a profile of server and worker."""

from __future__ import annotations

import json
import os
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from benchmarks.measurements import Results, Size, drained, fill
from benchmarks.peer import PEERS, Peer, Stage, staged
from benchmarks.server import IN_MEMORY, SYNCED_ALWAYS

ROTA = Peer(PEERS / "rota.py")

#: Name -> the task that is drained, and the server's flags. The first one is what the others are compared with.
VARIANTS = {
    "plain": ("noop", IN_MEMORY),
    "synced": ("noop", SYNCED_ALWAYS),
    "kept": ("kept", IN_MEMORY),
    "forgotten": ("forgotten", IN_MEMORY),
}


def guarantees(size: Size, rounds: int = 2) -> Results:
    """Measures the variants in turns. Returns their drain rates as shares of the plain one."""
    short = replace(size, fill_s=size.fill_s * 0.75, drain_s=size.drain_s * 0.75)
    found: dict[str, list[Results]] = {name: [] for name in VARIANTS}
    for _ in range(rounds):
        for name, (task, flags) in VARIANTS.items():
            found[name].append(_drain(short, task, flags))
    figures: Results = {}
    for name, rows in found.items():
        for figure in ("per_s", "worker_us", "server_us"):
            figures[f"{name}_{figure}"] = statistics.median(row[f"run_{figure}"] for row in rows)
        figures[f"{name}_share"] = figures[f"{name}_per_s"] / figures["plain_per_s"]
    return figures


def runners(size: Size) -> Results:
    """Measures handlers in threads and in processes: one process per slot, two slots per core."""
    threads = _drain(size, "in_thread", IN_MEMORY)
    processes = _drain(size, "in_process", IN_MEMORY, slots=2 * (os.cpu_count() or 1))
    return {
        **{name.replace("run_", "threads_"): value for name, value in threads.items()},
        **{name.replace("run_", "processes_"): value for name, value in processes.items()},
    }


def where(size: Size) -> dict[str, Any]:
    """Profiles a drain by one worker: the server by command, the worker by module."""
    with staged(ROTA) as stage:
        jobs = int(fill(stage, "noop", size)["jobs"])
        samples = {"BENCH_SAMPLES": str(stage.folder), "PYTHONPATH": f"{PEERS.parent / 'sampling'}:{PEERS.parents[1]}"}
        with stage.worker("drain", extra=samples):
            stage.wait_counted(jobs // 3, size.drain_s * 2)
            began, before, cpu, sampled = stage.counted(), stage.server.commands(), stage.server.cpu(), _samples(stage)
            stage.wait_counted(jobs, size.drain_s * 2)
            done = stage.counted() - began
            after, cpu, spent = stage.server.commands(), stage.server.cpu() - cpu, _samples(stage)
    commands = {
        name: {"calls": (calls - before.get(name, (0, 0))[0]) / done, "us": (us - before.get(name, (0, 0))[1]) / done}
        for name, (calls, us) in after.items()
    }
    functions = {name: (seconds - sampled.get(name, 0)) / done * 1e6 for name, seconds in spent.items()}
    modules: defaultdict[str, float] = defaultdict(float)
    for function, us in functions.items():
        modules[_part(function)] += us
    return {
        "jobs": done,
        "server_us": cpu / done * 1e6,
        "commands": {name: row for name, row in commands.items() if row["us"] > 0.05 and name != "info"},
        "modules": _most(modules),
    }


def _most(costs: Mapping[str, float]) -> dict[str, float]:
    most = sorted(costs.items(), key=lambda item: -item[1])[:25]
    return {name: us for name, us in most if us > 0.05}


def _samples(stage: Stage) -> dict[str, float]:
    """Seconds by function, of all processes of the worker. They lag a quarter of a second."""
    spent: defaultdict[str, float] = defaultdict(float)
    for path in stage.folder.glob("samples-*.json"):
        for function, seconds in json.loads(path.read_text()).items():
            spent[function] += seconds
    return spent


def _part(function: str) -> str:
    """Rota's own code by module, that of others by function: theirs are the loop, the protocol, the sockets."""
    return function.partition(":")[0] if function.startswith("rota.") else function


def _drain(size: Size, task: str, flags: Sequence[str], slots: int | None = None) -> Results:
    """One worker drains jobs of a task. With slots of their own for processes, it may use all cores."""
    with staged(ROTA, flags) as stage:
        jobs = int(fill(stage, task, size)["jobs"])
        words = stage.ask("commands", measure="drain", processes=1)[0]
        if slots is not None:
            words[words.index("--concurrency") + 1] = str(slots)
        with stage.worker("drain", 1 if slots is None else 2, words=words) as pids:
            return drained(stage, pids, size, jobs, "run")
