"""`python -m benchmarks.listing [--jobs 1000000]`: what a page of a list costs while a million jobs are stored.

Every filter, through the HTTP API, with the CPU time of the store and of the serving process together: what a page
takes on a machine that does nothing else. Wall-clock times of a busy machine say little. “script” is all CPU time of
the store, whatever used it, divided by the scripts that ran: one of them takes less. It is left out where plain
commands did the work.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import httpx2

from benchmarks.server import Server, serving
from rota import JobState, Rota
from rota.server import create_app
from rota.store.reports import Completed, Failed
from rota.store.store import Store

BATCH: Final = 500
REPEATS: Final = 15
TASKS: Final = 10
#: What becomes of jobs, of each hundred: the rest stays pending.
COMPLETED: Final = 30
FAILED: Final = 5

#: What is asked for, under the name that the table gives it.
QUESTIONS: Final[Sequence[tuple[str, str, dict[str, Any]]]] = (
    ("overview", "/api/overview", {}),
    ("stats", "/api/jobs/stats", {}),
    ("all", "/api/jobs", {}),
    ("pending", "/api/jobs", {"state": "PENDING"}),
    ("completed", "/api/jobs", {"state": "COMPLETED"}),
    ("a task", "/api/jobs", {"type": "task3"}),
    ("a task, failed", "/api/jobs", {"type": "task3", "state": "FAILED"}),
    ("a tag", "/api/jobs", {"tag": "rare"}),
    ("an error", "/api/jobs", {"error": "ValueError"}),
    ("a worker", "/api/jobs", {"worker": "w1"}),
    ("a worker without jobs", "/api/jobs", {"worker": "nobody"}),
    ("a text", "/api/jobs", {"text": "number-777777"}),
    ("a text, pending", "/api/jobs", {"text": "no such text", "state": "PENDING"}),
    ("a time", "/api/jobs", {"since": "2020-01-01T00:00:00Z", "until": "2020-01-02T00:00:00Z"}),
    ("dead letters by group", "/api/dead/groups", {}),
    ("a month's history", "/api/metrics/history", {"since": 30 * 86400}),
    ("suggestions", "/api/suggestions", {}),
)


async def fill(rota: Rota, jobs: int) -> None:
    """Stores the jobs, some of them ended."""
    tasks = [rota.task(name=f"task{number}", queue="bench")(_nothing) for number in range(TASKS)]
    worker = rota.connect("w1")
    for start in range(0, jobs, BATCH):
        calls = [
            (tasks[n % TASKS].using(tags=["rare"]) if n % 1000 == 0 else tasks[n % TASKS]).call(f"number-{n}")
            for n in range(start, min(start + BATCH, jobs))
        ]
        await rota.enqueue_many(calls)
        await _end_some(worker, 1 + start // BATCH)
    await worker.gateway.close()


async def _end_some(worker: Store, call: int) -> None:
    completed, failed = BATCH * COMPLETED // 100, BATCH * FAILED // 100
    claims = (await worker.claim("bench", completed + failed, call=call, token=f"t{call}")).jobs
    error = b'{"kind":"exception","type":"ValueError","message":"no"}'
    await worker.report(
        "bench",
        [
            Completed(job.run, job.claim, "86400000:10000000 task", b"")
            if place < completed
            else Failed(job.run, job.claim, "final", "86400000:10000000", error)
            for place, job in enumerate(claims)
        ],
    )


def _nothing(text: str) -> None:
    """What the jobs would call."""


class Row(NamedTuple):
    """What one question cost: CPU time in ms, the store's share of it by call of a script, and jobs looked at."""

    name: str
    p95: float
    median: float
    script: float | None
    examined: int


async def measure(server: Server, api: httpx2.AsyncClient) -> list[Row]:
    """Asks every question several times."""
    rows: list[Row] = []
    for name, path, params in QUESTIONS:
        took: list[float] = []
        answer: dict[str, Any] = {}
        first, calls = server.cpu(), _scripts(server)
        for _ in range(REPEATS):
            store, here = server.cpu(), time.process_time()
            response = await api.get(path, params=params)
            took.append((server.cpu() - store + time.process_time() - here) * 1000)
            answer = response.raise_for_status().json()
        ran = _scripts(server) - calls
        script = (server.cpu() - first) * 1000 / ran if ran >= REPEATS else None
        took.sort()
        p95, median = took[int(0.95 * (len(took) - 1))], took[len(took) // 2]
        rows.append(Row(name, p95, median, script, answer.get("examined", 0)))
    return rows


def _scripts(server: Server) -> int:
    return server.commands().get("evalsha", (0, 0.0))[0]


async def main(jobs: int) -> None:
    """Fills a server, asks, and prints a table."""
    with serving() as server:
        rota = Rota(server.url)
        began = time.monotonic()
        await fill(rota, jobs)
        counts = await rota.queue("bench").counts()
        shown = ", ".join(f"{counts[state]:,} {state.value}" for state in JobState if counts[state])
        print(f"{sum(counts.values()):,} jobs ({shown}), stored in {time.monotonic() - began:.0f} s")
        transport = httpx2.ASGITransport(create_app(rota, auth="none"))
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=120) as api:
            await api.get("/api/overview")
            print(f"{'':24}{'p95 ms':>8}{'median':>8}{'script':>8}{'examined':>10}")
            for row in await measure(server, api):
                script = "" if row.script is None else f"{row.script:.1f}"
                print(f"{row.name:24}{row.p95:8.1f}{row.median:8.1f}{script:>8}{row.examined:10,}")
        await rota.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    asyncio.run(main(parser.parse_args().jobs))
