"""`python -m benchmarks.dependencies`: the cost of locks, dependencies and workflows, compared with the same work
without them, in one run."""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import statistics
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager

from benchmarks.machine import cpu_of
from benchmarks.server import Server, serving
from benchmarks.tasks import echo, noop, rota
from rota import Job, JobState

LOCKS = 1_000


@contextmanager
def worker(concurrency: int) -> Generator[int]:
    """Runs a worker as a user would. Yields its process id."""
    words = ["-m", "rota.cli.main", "worker", "benchmarks.tasks:rota", "--concurrency", str(concurrency)]
    with subprocess.Popen([sys.executable, *words, "--log-level", "warning"]) as process:
        try:
            yield process.pid
        finally:
            process.terminate()


async def until_idle() -> None:
    """Waits until no job is waiting or running."""
    queue = rota.queue("default")
    while True:
        counts = await queue.counts()
        if not any(counts[state.value] for state in JobState if not state.is_finished):
            return
        await asyncio.sleep(0.02)


async def drain(server: Server, pid: int, jobs: int, *, locks: int) -> tuple[float, float, float]:
    """Drains the jobs with one worker. Returns the seconds, and the CPU seconds of server and worker."""
    loop = asyncio.get_running_loop()
    queue = rota.queue("default")
    await queue.pause()
    if locks:
        calls = [noop.using(lock=f"lock:{number % locks}").call("") for number in range(jobs)]
    else:
        calls = [noop.call("") for _ in range(jobs)]
    await rota.enqueue_many(calls)
    begun, server_before, worker_before = loop.time(), server.cpu(), cpu_of([pid])
    await queue.resume()
    await until_idle()
    return loop.time() - begun, server.cpu() - server_before, cpu_of([pid]) - worker_before


async def edges(server: Server, count: int) -> tuple[float, float]:
    """Returns dependencies resolved per CPU second of the server: `count` jobs after one, one after `count` jobs."""
    loop = asyncio.get_running_loop()
    before, begun = server.cpu(), loop.time()
    first = await noop.using(delay=3600, id="first").enqueue("")
    made = await rota.enqueue_many([noop.using(after=[first]).call("") for _ in range(count)])
    middle = [job for job in made if isinstance(job, Job)]
    last = await noop.using(after=middle).enqueue("")
    await noop.using(id="first").enqueue("")  # now
    await last.result(120)
    return 2 * count / (server.cpu() - before), 2 * count / (loop.time() - begun)


async def workflows(runs: int) -> tuple[float, float, float]:
    """Workflows of three steps: ms from a step's end to the next claim, and from the last one's to the workflow's.

    The medians, and the longest of the latter.
    """
    between: list[int] = []
    after_last: list[int] = []
    for _ in range(runs):
        async with rota.workflow("bench") as workflow:
            one = workflow.step(echo.call(1))
            two = workflow.step(echo.call(one.result))
            workflow.step(echo.call(two.result))
        assert await workflow.result(10) == 1
        ended_at = (await workflow.refresh()).ended_at or 0
        steps = [await rota.job(f"default:{workflow.id}.{number}").refresh() for number in range(3)]
        between += [(b.claimed_at or 0) - (a.ended_at or 0) for a, b in itertools.pairwise(steps)]
        after_last.append(ended_at - (steps[-1].ended_at or 0))
    return statistics.median(between), statistics.median(after_last), max(after_last)


async def main(jobs: int, rounds: int) -> None:
    """Prints each figure with what it is to be compared with."""
    with serving(on_socket=True) as server:
        os.environ["ROTA_URL"] = server.url
        with worker(100) as pid:
            # More than are kept of finished jobs: from now on every one that ends pushes another one out.
            await drain(server, pid, 11_000, locks=0)
            for _ in range(rounds):
                plain, *plain_cpu = await drain(server, pid, jobs, locks=0)
                locked, *locked_cpu = await drain(server, pid, jobs, locks=LOCKS)
                print(f"drain {jobs:,} jobs: {jobs / plain:,.0f}/s plain, {jobs / locked:,.0f}/s over {LOCKS:,} locks")
                print(f"  locks cost {100 * (1 - plain / locked):.0f} % of the throughput by the wall")
                print(f"  and {100 * (1 - sum(plain_cpu) / sum(locked_cpu)):.0f} % by the CPU of server and worker:")
                for name, cpu in (("plain", plain_cpu), ("locked", locked_cpu)):
                    print(f"    {name}, us per job: server {cpu[0] / jobs * 1e6:.1f}, worker {cpu[1] / jobs * 1e6:.1f}")
            for _ in range(rounds):
                per_cpu, per_second = await edges(server, jobs // 2)
                print(
                    f"edges: {per_cpu:,.0f} per second of server CPU (made, resolved and run), "
                    f"{per_second:,.0f}/s in all"
                )
            between, after_last, longest = await workflows(50)
            print(f"workflows: next step claimed {between:.0f} ms after the one before has ended (p50)")
            print(f"  ended {after_last:.0f} ms after the last step (p50), {longest:.0f} ms at most")
        await rota.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    asyncio.run(main(given.jobs, given.rounds))
