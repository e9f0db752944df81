"""`python -m benchmarks.listing [--jobs 1000000]`: what lists, and work on many jobs, cost while a million are stored.

Every filter alone, and every two and three of them together, those among them that match nothing or one job in a
million; then operations, redrives and a purge. All through the HTTP API, with the CPU time of the store and of the
serving process together: what a page takes on a machine that does nothing else. Wall-clock times of a busy machine say
little.

“slowest” is the longest that one command kept the server to itself, and which, by its SLOWLOG. A question is asked
several times, and the best of them counts, because on a busy machine the server is put aside at any moment. Of work
that cannot be repeated, the command counts whose median is the highest.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import statistics
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import httpx2

from benchmarks.server import Server, serving
from rota import JobState, Rota
from rota.client.session import sessions_of
from rota.server import create_app
from rota.store.job_store import JobStore
from rota.store.redis.script_compiler import names, script
from rota.store.report_encoding import Completed, Failed

BATCH: Final = 500
REPEATS: Final = 15
TASKS: Final = 10
#: What becomes of jobs, of each hundred: the rest stays pending.
COMPLETED: Final = 30
FAILED: Final = 5
#: No command may keep the server to itself for longer, µs.
BOUND_US: Final = 5_000

#: What is asked for, under the name that the table gives it.
QUESTIONS: Final[Sequence[tuple[str, str, dict[str, Any]]]] = (
    ("overview", "/api/overview", {}),
    ("stats", "/api/jobs/stats", {}),
    ("queues", "/api/queues", {}),
    ("workers", "/api/workers", {}),
    ("locks", "/api/locks", {}),
    ("scaling", "/api/scaling", {}),
    ("metrics", "/metrics", {}),
    ("all", "/api/jobs", {}),
    ("all, a thousand", "/api/jobs", {"limit": 1000}),
    ("failed, a thousand", "/api/jobs", {"limit": 1000, "state": "FAILED"}),
    ("a text", "/api/jobs", {"text": "number-777777"}),
    ("a text, pending", "/api/jobs", {"text": "no such text", "state": "PENDING"}),
    ("dead letters", "/api/dead", {}),
    ("dead letters by group", "/api/dead/groups", {}),
    ("a month's history", "/api/metrics/history", {"since": 30 * 86400}),
    ("suggestions", "/api/suggestions", {}),
)
#: Each filter, with values that match many, few, one and none. `single` is one job in all.
FILTERS: Final[Mapping[str, Sequence[str]]] = {
    "state": ("PENDING", "COMPLETED", "FAILED", "SCHEDULED", "CANCELLED"),
    "queue": ("bench", "elsewhere"),
    "type": ("task3", "single", "none"),
    "tag": ("rare", "single", "none"),
    "worker": ("w1", "nobody"),
    "error": ("ValueError", "SingleError", "NoError"),
    "since": ("2020-01-01T00:00:00Z", "2090-01-01T00:00:00Z"),
    "field": ("text=number-777", "text=none"),
    "order": ("newest", "oldest"),
}
#: So many filters together, at most. Each is asked until no command was above the bound, up to so often.
TOGETHER: Final = 3
AGAIN: Final = 20


async def fill(rota: Rota, jobs: int) -> None:
    """Stores the jobs, some of them ended."""
    indexed = [["text"] if number == 777 % TASKS else [] for number in range(TASKS)]
    tasks = [rota.task(name=f"task{n}", queue="bench", index=fields)(_nothing) for n, fields in enumerate(indexed)]
    single = rota.task(name="single", queue="bench", tags=["single"])(_nothing)
    worker = sessions_of(rota).connect("w1")
    for start in range(0, jobs, BATCH):
        calls = [
            (tasks[n % TASKS].using(tags=["rare"]) if n % 1000 == 0 else tasks[n % TASKS]).call(f"number-{n}")
            for n in range(start, min(start + BATCH, jobs))
        ]
        if start == jobs // 2 // BATCH * BATCH:
            calls[1] = single.call("single")  # the first has the rare tag
        await rota.enqueue_many(calls)
        await _end_some(worker, 1 + start // BATCH)
    await tasks[0].using(delay=86_400).enqueue("later")
    await worker.redis.close()


async def _end_some(worker: JobStore, call: int) -> None:
    completed, failed = BATCH * COMPLETED // 100, BATCH * FAILED // 100
    claims = (await worker.claim("bench", completed + failed, call_number=call, claim_token=f"t{call}")).jobs
    error = b'{"kind":"exception","type":"%s","message":"no"}'
    await worker.report(
        "bench",
        [
            Completed(job.run, job.claim, "86400000:10000000 task", b"")
            if place < completed
            else Failed(
                job.run,
                job.claim,
                "final",
                "86400000:10000000",
                error % (b"SingleError" if (call, place) == (100, completed) else b"ValueError"),
            )
            for place, job in enumerate(claims)
        ],
    )


def _nothing(text: str) -> None:
    """What the jobs would call."""


class Slowest(NamedTuple):
    """The longest that one command took, and which."""

    us: int
    command: str


class Watch:
    """What the server says of commands that took longer than most."""

    def __init__(self, server: Server) -> None:
        self._client = server.client
        self._name_of = {script(name).digest: name for name in names()}
        self._client.config_set("slowlog-max-len", 20_000)
        self.from_us(100)

    def from_us(self, least: int) -> None:
        """Only what takes longer is heard of."""
        self._client.config_set("slowlog-log-slower-than", least)
        self._client.slowlog_reset()

    def take(self) -> list[Slowest]:
        """Since the last time, the slowest first."""
        entries: list[dict[str, Any]] = self._client.slowlog_get(20_000)
        self._client.slowlog_reset()
        return sorted((Slowest(entry["duration"], self._named(entry["command"])) for entry in entries), reverse=True)

    def _named(self, command: bytes) -> str:
        words = command.decode(errors="replace").split(" ", 3)
        return self._name_of.get(words[1], words[1]) if words[0] in ("EVALSHA", "EVALSHA_RO") else words[0]


class Work(NamedTuple):
    """What one piece of work took the server: which of its last commands has the highest median."""

    name: str
    times: int
    slowest: Slowest
    answer: str


async def ask_all(watch: Watch, api: httpx2.AsyncClient) -> list[tuple[Slowest, str]]:
    """Every combination of filters, and where they lead to more pages, the second; the slowest of each."""
    found: list[tuple[Slowest, str]] = []
    single = [(name, value) for name, values in FILTERS.items() for value in values]
    for count in range(1, TOGETHER + 1):
        for chosen in itertools.combinations(single, count):
            params = dict(chosen)
            if len(params) < count:  # two values of one filter
                continue
            cursor = ""
            for page in ("", ", second page"):
                slowest, answer = Slowest(10**9, ""), dict[str, Any]()
                for _ in range(AGAIN):
                    watch.take()
                    asked = {**params, **({"cursor": cursor} if cursor else {})}
                    answer = (await api.get("/api/jobs", params=asked)).raise_for_status().json()
                    slowest = min(slowest, next(iter(watch.take()), Slowest(0, "")))
                    if slowest.us <= BOUND_US:
                        break
                cursor = answer.get("cursor") or ""
                found.append((slowest, ", ".join(f"{name}={value}" for name, value in chosen) + page))
                if not cursor:
                    break
    return sorted(found, reverse=True)


async def work(watch: Watch, rota: Rota, api: httpx2.AsyncClient) -> list[Work]:
    """What is done to many jobs: operations, with and without a dry run, redrives by group, and a purge."""
    done: list[Work] = []

    async def measured(name: str, doing: Any) -> None:
        watch.from_us(0)
        answer = await doing
        of_command: dict[str, list[int]] = {}
        for entry in watch.take():
            of_command.setdefault(entry.command, []).append(entry.us)
        slowest = max(Slowest(int(statistics.median(took)), command) for command, took in of_command.items())
        done.append(Work(name, len(of_command[slowest.command]), slowest, answer))

    async def operation(action: str, where: dict[str, Any], **more: Any) -> str:
        started = await api.post("/api/operations", json={"action": action, "where": where, **more})
        info = await rota.operations.run(started.raise_for_status().json()["operation"]["id"])
        return f"{info.matched:,} matched, {info.done:,} done"

    async def posted(path: str, body: dict[str, Any]) -> str:
        return (await api.post(path, json=body)).raise_for_status().text[:100]

    groups = (await api.get("/api/dead/groups")).json()["groups"]
    rare = {"queue": "bench", "tag": "rare"}
    await measured("count: a tag", operation("cancel", rare, dry_run=True))
    await measured("count: all pending", operation("cancel", {"queue": "bench", "state": "PENDING"}, dry_run=True))
    await measured("change: a tag", operation("update", rare, priority=5))
    await measured("cancel: a tag", operation("cancel", rare))
    await measured("delete: a tag", operation("delete", rare))
    await measured("delete: a task, completed", operation("delete", {"type": "task4", "state": "COMPLETED"}))
    await measured("redrive: a group", operation("redrive", {"queue": "bench", "group": groups[0]["id"]}))
    await measured("purge", posted("/api/queues/bench/purge", {"confirm": "bench"}))
    return done


class Row(NamedTuple):
    """What one question cost: CPU time in ms, the slowest command of its best time, and jobs looked at."""

    name: str
    p95: float
    median: float
    slowest: Slowest
    examined: int


async def measure(server: Server, watch: Watch, api: httpx2.AsyncClient) -> list[Row]:
    """Asks every question several times."""
    rows: list[Row] = []
    for name, path, params in (*QUESTIONS, *_alone()):
        took: list[float] = []
        slowest, examined = Slowest(10**9, ""), 0
        for _ in range(REPEATS):
            watch.take()
            store, here = server.cpu(), time.process_time()
            response = await api.get(path, params=params)
            took.append((server.cpu() - store + time.process_time() - here) * 1000)
            slowest = min(slowest, next(iter(watch.take()), Slowest(0, "")))
            if response.raise_for_status().headers["content-type"].startswith("application/json"):
                examined = response.json().get("examined", 0)
        took.sort()
        rows.append(Row(name, took[int(0.95 * (len(took) - 1))], took[len(took) // 2], slowest, examined))
    return rows


def _alone() -> list[tuple[str, str, dict[str, Any]]]:
    """Each filter by itself, with each of its values."""
    return [(f"{name}={value}", "/api/jobs", {name: value}) for name, values in FILTERS.items() for value in values]


def _shown(slowest: Slowest) -> str:
    return f"{slowest.us / 1000:7.1f}  {slowest.command}" if slowest.us else ""


async def main(jobs: int) -> None:
    """Fills a server, asks and works, and prints tables."""
    with serving() as server:
        rota = Rota(server.url)
        began = time.monotonic()
        await fill(rota, jobs)
        counts = await rota.queue("bench").counts()
        shown = ", ".join(f"{counts[state]:,} {state.value}" for state in JobState if counts[state])
        print(f"{sum(counts.values()):,} jobs ({shown}), stored in {time.monotonic() - began:.0f} s")
        transport = httpx2.ASGITransport(create_app(rota, auth="none"))
        watch = Watch(server)
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=600) as api:
            await api.get("/api/overview")
            print(f"{'':28}{'p95 ms':>8}{'median':>8}{'examined':>10}{'slowest':>9}")
            for row in await measure(server, watch, api):
                print(f"{row.name:28}{row.p95:8.1f}{row.median:8.1f}{row.examined:10,}  {_shown(row.slowest)}")
            asked = await ask_all(watch, api)
            above = sum(slowest.us > BOUND_US for slowest, _ in asked)
            print(
                f"\n{len(asked):,} pages of up to {TOGETHER} filters, {above} with a command above 5 ms; the slowest:"
            )
            for slowest, name in asked[:15]:
                print(f"{_shown(slowest):24}{name}")
            print(f"\n{'':28}{'times':>9}{'median':>9}")
            for one in await work(watch, rota, api):
                print(f"{one.name:28}{one.times:9,}  {_shown(one.slowest)}  {one.answer}")
        await rota.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    asyncio.run(main(parser.parse_args().jobs))
