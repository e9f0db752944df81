"""`python -m benchmarks.ties`: what locks and dependencies cost, against the same work without them, in one run."""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
from pathlib import Path

from benchmarks.run import server_cpu, until_idle, valkey, worker
from benchmarks.tasks import noop, rota
from rota import Job

LOCKS = 1_000


async def drain(jobs: int, *, locks: int) -> tuple[float, float]:
    """Seconds in which one worker drains so many jobs, and the server's CPU in seconds for it all."""
    loop = asyncio.get_running_loop()
    before = await server_cpu()
    queue = rota.queue("default")
    await queue.pause()
    if locks:
        calls = [noop.using(lock=f"lock:{number % locks}").call("") for number in range(jobs)]
    else:
        calls = [noop.call("") for _ in range(jobs)]
    await rota.enqueue_many(calls)
    begun = loop.time()
    await queue.resume()
    await until_idle()
    return loop.time() - begun, await server_cpu() - before


async def edges(count: int) -> tuple[float, float]:
    """Edges resolved per second of the server's CPU: `count` jobs after one, and one after `count` jobs."""
    loop = asyncio.get_running_loop()
    before, begun = await server_cpu(), loop.time()
    first = await noop.using(delay=3600, id="first").enqueue("")
    made = await rota.enqueue_many([noop.using(after=[first]).call("") for _ in range(count)])
    middle = [job for job in made if isinstance(job, Job)]
    last = await noop.using(after=middle).enqueue("")
    await noop.using(id="first").enqueue("")  # now
    await last.result(120)
    return 2 * count / (await server_cpu() - before), 2 * count / (loop.time() - begun)


async def main(jobs: int, rounds: int) -> None:
    """Prints each figure with what it is to be compared with."""
    with tempfile.TemporaryDirectory(prefix="rota-bench-") as folder, valkey(Path(folder)) as url:
        os.environ["ROTA_URL"] = url
        with worker(100):
            await drain(1_000, locks=0)
            for _ in range(rounds):
                plain, plain_cpu = await drain(jobs, locks=0)
                locked, locked_cpu = await drain(jobs, locks=LOCKS)
                print(f"drain {jobs:,} jobs: {jobs / plain:,.0f}/s plain, {jobs / locked:,.0f}/s over {LOCKS:,} locks")
                print(f"  locks cost {100 * (1 - plain / locked):.0f} % of the throughput")
                print(
                    f"  server CPU per job, us: {plain_cpu / jobs * 1e6:.1f} plain, "
                    f"{locked_cpu / jobs * 1e6:.1f} locked"
                )
            for _ in range(rounds):
                per_cpu, per_second = await edges(jobs // 2)
                print(
                    f"edges: {per_cpu:,.0f} per second of server CPU (made, resolved and run), "
                    f"{per_second:,.0f}/s in all"
                )
        await rota.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    asyncio.run(main(given.jobs, given.rounds))
