"""`python -m benchmarks.ratchet`: the cost of a job in counts, which are free of noise.

Counts commands on the server, including those inside scripts, bytes sent both ways, and bytes of memory, on its own
server. `tests/test_ratchet.py` compares them with the recorded ones, so that no change makes a job more expensive
unnoticed. `--record` records them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import redis

from benchmarks.server import serving
from rota import Rota
from rota.client.session import session_of
from rota.store.claim_replies import ClaimedJob
from rota.store.job_store import JobStore
from rota.store.report_encoding import Completed, Failed

RECORDED: Final = Path(__file__).with_name("ratchet.json")
JOBS: Final = 1_000
SLOTS: Final = 100
PAYLOAD: Final = "x" * 98
RULE: Final = "3600000:10000"


class Cost(NamedTuple):
    """Of one job."""

    commands: float
    wire_bytes: float
    memory_bytes: float


def read_meter(client: redis.Redis) -> Cost:
    """What the server has done since it was started, and what it holds, but for what it takes to ask."""
    # The server's own sum of its memory also has buffers in it, which come and go.
    held = sum(client.memory_usage(key, samples=0) or 0 for key in client.scan_iter("*", count=1_000))
    commands: dict[str, Any] = client.info("commandstats")
    stats: dict[str, Any] = client.info("stats")
    own = ("cmdstat_info", "cmdstat_scan", "cmdstat_memory|usage")
    return Cost(
        sum(figure["calls"] for name, figure in commands.items() if name not in own),
        stats["total_net_input_bytes"] + stats["total_net_output_bytes"],
        held,
    )


async def measure(url: str) -> dict[str, Cost]:
    """The cost of a job at each stage of its life, by the name of the stage."""
    costs: dict[str, Cost] = {}
    rota = Rota(url, namespace="ratchet")

    @rota.task(name="noop")
    async def noop(payload: str) -> None:
        """Nothing: what remains is the queue."""

    with redis.Redis.from_url(url) as client:

        async def count(stage: str, act: Callable[[], Awaitable[object]]) -> None:
            before = read_meter(client)
            await act()
            after = read_meter(client)
            again = read_meter(client)
            # Reading the meter travels, too: what a reading without anything before it shows is taken off.
            costs[stage] = Cost(
                *(round((b - a - (c - b)) / JOBS, 2) for a, b, c in zip(before, after, again, strict=True))
            )

        for task in (noop, noop.using(priority="high")):  # whatever is made or loaded once is made now
            await task.enqueue(PAYLOAD)
        worker = Bench(rota)
        await worker.complete(await worker.claim())

        await count("enqueue in bulk", lambda: rota.enqueue_many([noop.call(PAYLOAD) for _ in range(JOBS)]))
        claimed: list[ClaimedJob] = []

        async def claim_all() -> None:
            while jobs := await worker.claim():
                claimed.extend(jobs)

        async def complete_all() -> None:
            for first in range(0, len(claimed), SLOTS):
                await worker.complete(claimed[first : first + SLOTS])

        await count("claim 100 at a time", claim_all)
        await count("complete 100 at a time", complete_all)

        async def one_by_one() -> None:
            for _ in range(JOBS):
                await noop.enqueue(PAYLOAD)

        async def run_one_by_one() -> None:
            while jobs := await worker.claim(1):
                await worker.complete(jobs)

        await count("enqueue one by one", one_by_one)
        await count("claim and complete one by one", run_one_by_one)

        async def run_all() -> None:
            while jobs := await worker.claim():
                await worker.complete(jobs)

        locked = [noop.using(lock=f"lock-{number % 200}").call(PAYLOAD) for number in range(JOBS)]
        await count("enqueue in bulk, 200 locks", lambda: rota.enqueue_many(locked))
        await count("claim and complete, 200 locks", run_all)

        delayed = [noop.using(delay=3600).call(PAYLOAD) for _ in range(JOBS)]
        await count("enqueue in bulk, due later", lambda: rota.enqueue_many(delayed))
        await rota.queue().purge()

        first = await noop.enqueue(PAYLOAD)
        tied = [noop.using(after=[first]).call(PAYLOAD) for _ in range(JOBS)]
        await count("enqueue in bulk, after another job", lambda: rota.enqueue_many(tied))
        await count("claim and complete, after another job", run_all)

        async def fail_all() -> None:
            while jobs := await worker.claim():
                await worker.fail(jobs)

        await rota.enqueue_many([noop.call(PAYLOAD) for _ in range(JOBS)])
        await count("claim and fail, to be tried again", fail_all)
    await rota.close()
    return costs


class Bench:
    """A worker without handlers."""

    def __init__(self, rota: Rota, name: str = "worker-0") -> None:
        self._rota = rota
        self._store = JobStore(session_of(rota).store.redis, session_of(rota).store.keys, name)
        self._call = 0

    async def claim(self, limit: int = SLOTS) -> list[ClaimedJob]:
        """As many as there are slots."""
        self._call += 1
        claims = await self._store.claim("default", limit, call_number=self._call, claim_token="0123456789")
        if claims.has_outbox:
            await session_of(self._rota).notify_dependents("default")
            return claims.jobs or await self.claim(limit)
        return claims.jobs

    async def complete(self, jobs: Sequence[ClaimedJob]) -> None:
        """All of them, without results."""
        await self._store.report("default", [Completed(job.run, job.claim, RULE, b"") for job in jobs])

    async def fail(self, jobs: Sequence[ClaimedJob]) -> None:
        """All of them, to be tried again in an hour."""
        await self._store.report("default", [Failed(job.run, job.claim, "+3600000", RULE, b"{}") for job in jobs])


def main() -> None:
    """Prints the figures beside what was recorded, or records them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true", help=f"write them to {RECORDED.name}")
    with serving(allocator="") as server:  # bytes are compared with what was recorded, wherever that was
        costs = asyncio.run(measure(server.url))
    if parser.parse_args().record:
        lines = (f"  {json.dumps(stage)}: {json.dumps(cost._asdict())}" for stage, cost in costs.items())
        RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    recorded = recorded_costs()
    print(
        f"{'for each job (in brackets what was recorded)':<44} {'commands':>18} {'wire bytes':>20} {'memory bytes':>20}"
    )
    for stage, cost in costs.items():
        known = recorded.get(stage, cost)
        cells = (f"{figure:>10,.1f} ({was:,.1f})" for figure, was in zip(cost, known, strict=True))
        print(f"{stage:<44} " + " ".join(f"{cell:>20}" for cell in cells))


def recorded_costs() -> dict[str, Cost]:
    """What a job cost when that was last looked at."""
    return {stage: Cost(**cost) for stage, cost in json.loads(RECORDED.read_text()).items()}


if __name__ == "__main__":
    main()
