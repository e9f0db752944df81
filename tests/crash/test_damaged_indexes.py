"""Indexes are damaged while workers run; `rota doctor --repair` restores them, and no job is lost."""

from __future__ import annotations

from typing import Final

from rota import JobState
from rota.monitoring.index_findings import check_indexes
from tests.eventually import eventually
from tests.worker.harness import WorkerHarness

DAMAGED: Final = (
    *("pending", "scheduled", "blocked", "processing", "completed"),
    *("locks", "locked", "ids", "named", "has_parents", "task_index_sizes", "terms"),
)
ROUNDS: Final = 2


async def test_no_job_is_lost_when_every_index_is_damaged_while_workers_run(harness: WorkerHarness) -> None:
    for _ in range(2):
        await harness.start(concurrency=5)
    echo = harness.rota.tasks.get("wait")
    jobs = []
    client = harness.redis()
    for number in range(ROUNDS * len(DAMAGED)):
        name = f"job-{number}"
        harness.allow(name)
        job = await echo.using(lock=f"lock-{number % 3}", id=name).enqueue(name)
        jobs += [job, await echo.using(after=[job], tags=["red"]).enqueue(name)]
        if number % 2:
            client.delete(harness.key(DAMAGED[number // 2 % len(DAMAGED)]))
            await check_indexes(harness.rota, is_repairing=True)

    async def all_have_ended() -> bool:
        # An index that was deleted while an outcome was on its way needs another look.
        await check_indexes(harness.rota, is_repairing=True)
        states = [(await job.refresh()).state for job in jobs]
        return set(states) == {JobState.COMPLETED}

    await eventually(all_have_ended, 60)
    report = await check_indexes(harness.rota)
    assert report.problems == []
    assert report.checked >= len(jobs)
