"""Reads how everything ended, once no job is left to run: the journal's last entries, and what the store keeps."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from typing import Final, cast

from rota import JobNotFound
from rota.client.session import checked_session
from rota.store.keys import is_permanent
from tests.crash.chaos_arena import Arena
from tests.crash.journal import Entry
from tests.leaks import leaked_keys
from tests.servers import Server
from tests.store.driver import CLOCK, HISTORY, Driver

#: Reads under way at the same time.
AT_ONCE: Final = 50
#: What stays when every job of a queue has been deleted, besides the history: settings, and replies that expire.
LASTING: Final = frozenset(
    {
        *("meta", "events", "retention_rules", "reply", "last_reply", "heartbeats", "idle", "schedules"),
        *("schedule_ticks", "failure_handlers", "shards"),
    }
)


async def journal_final_states(arena: Arena, entries: Sequence[Entry]) -> None:
    """Journals the final state of every acknowledged run, and the totals of each queue."""
    named = {(entry["job"], entry["run"]) for entry in entries if entry.kind == "acknowledged"}
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(job: str, run: str) -> None:
        async with gate:
            await _journal_final_state(arena, job, run)

    await asyncio.gather(*(one(job, run) for job, run in sorted(named)))
    for entry in entries:
        if entry.kind == "operation":
            operation = await arena.harness.rota.operations.get(entry["id"])
            if not operation.has_ended:
                arena.journal.write("problem", message=f"stuck: bulk operation {operation.id} is {operation.state}")
    for info in await arena.harness.rota.queues():
        arena.journal.write("totals", queue=info.name, counts=info.counts, totals=info.totals)


async def _journal_final_state(arena: Arena, job: str, run: str) -> None:
    handle = arena.harness.rota.job(f"{job}@{run}")
    try:
        record = await handle.refresh()
    except JobNotFound:
        arena.journal.write("final", job=job, run=run, state="missing", verbs=[])
        return
    if (record.ref.full_id, record.ref.run) != (job, run):
        # A follow-up that merged into another run; or a server lost the run, and gave its number to another job.
        state = "merged" if record.ref.full_id == job else "missing"
        arena.journal.write("final", job=job, run=run, state=state, verbs=[])
        return
    verbs = [(entry.verb, entry.state) for entry in await handle.history()]
    arena.journal.write(
        "final",
        job=job,
        run=run,
        state=record.state.value,
        attempt=record.counts.attempt,
        result=json.loads(record.result) if record.result else None,
        verbs=verbs,
    )


def store_problems(server: Server, namespace: str, queues: Sequence[str]) -> Iterator[str]:
    """Yields where indexes, counters and records of a single server disagree, and keys that nothing will remove."""
    driver = Driver(server, namespace)
    try:
        for queue in queues:
            for problem in driver._problems(queue):
                yield f"{queue}: {problem}"
        for key in leaked_keys(driver.redis, namespace, is_permanent):
            yield f"the key {key} neither expires nor is permanent"
    finally:
        driver.redis.delete(CLOCK)
        driver.redis.close()


async def _discard_prepared_runs(arena: Arena, server: Server, queues: Sequence[str]) -> None:
    """Lets more than a minute pass for dependents that their producers prepared before they died."""
    store = (await checked_session(arena.harness.rota)).store
    with server.client() as client:
        for queue in queues:
            key = arena.harness.key("prepared", queue)
            for run in cast("list[bytes]", client.zrange(key, 0, -1)):
                client.zadd(key, {run: 1})
            while await store.apply_retention(queue):
                pass


async def leftover_keys(arena: Arena, server: Server, queues: Sequence[str]) -> list[str]:
    """Deletes every job, and returns the keys of these queues that are still there."""
    for queue in queues:
        cursor: str | None = None
        while True:
            page = await arena.harness.rota.jobs(queue=queue, cursor=cursor, limit=100)
            await asyncio.gather(*(arena.harness.rota.job(str(job.ref)).delete() for job in page.jobs))
            cursor = page.cursor
            if not cursor:
                break
    await _discard_prepared_runs(arena, server, queues)
    left: list[str] = []
    with server.client() as client:
        for key in client.scan_iter(match=f"{arena.harness.namespace}:*", count=1_000):
            name = key.decode()
            _, _, rest = name.partition("}:")
            kind = rest.removeprefix("fail:").partition(":")[0]
            if "{~}" not in name and kind not in LASTING | HISTORY and client.pttl(key) == -1:
                left.append(name)
    return sorted(left)
