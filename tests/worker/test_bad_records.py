"""Jobs that no worker can run: kept as dead letters, never dropped, never a crash, never a loop."""

from __future__ import annotations

from typing import Final

import pytest

from rota import Rota
from tests.eventually import eventually
from tests.worker.harness import WorkerHarness, failure

#: What may stand in place of a job's record.
GARBAGE: Final = [
    b"",
    b"garbage",
    b"\xff\xfe\x00",
    b"=a 1\n{not json\nadd\n[1,2]",
    b'=a 1\n{"timeout_ms":"soon"}\nadd\n[1,2]',
    b"=a 1\n\t0\nadd\n[1,2]",
    b"=a soon\n\nadd\n[1,2]",
    b"=a 1\n\n\xff\xff\n[1,2]",
    b"=a 1\n\nadd\n[1,2",
    b"=a 1\n\nadd\n7",
    b"=a 1\n\nadd\n[1]",
    b'=a 1\n\nadd\n["one",2]',
    b'=a 1\n\nadd\n{"*":5}',
    b"=a 1\n\nadd\n" + b"[" * 5000,
]


@pytest.mark.requirement("S3-16")
async def test_a_job_of_an_undeclared_task_becomes_a_dead_letter_that_names_it(shared: WorkerHarness) -> None:
    """Reported, with the names that do exist."""
    other = Rota(shared.server.url, namespace=shared.namespace)

    @other.task(name="unheard_of")
    async def unheard_of() -> None: ...

    job = await unheard_of.enqueue()

    error = await failure(job)

    assert (error.kind, error.type) == ("permanent", "UnknownTask")
    assert (await job.refresh()).counts.attempt == 1
    await other.close()


@pytest.mark.requirement("S3-16")
async def test_a_record_that_cannot_be_read_is_a_dead_letter_and_the_worker_lives(harness: WorkerHarness) -> None:
    """Invalid entries are reported; the queue goes on behind them."""
    await harness.rota.queue().pause()
    worker = await harness.start()
    jobs = [await harness.program.add.enqueue(1, 2) for _ in GARBAGE]
    following = await harness.program.add.enqueue(3, 4)
    with harness.redis() as client:
        for job, garbage in zip(jobs, GARBAGE, strict=True):
            client.hset(harness.key("jobs"), job.run or "", garbage)

    await harness.rota.queue().resume()

    assert await following.result(10) == 7
    await eventually(lambda: _failed(harness, len(GARBAGE)))
    page = await harness.rota.dead.list()
    assert {record.ref.run for record in page.jobs} == {job.run for job in jobs}
    assert {record.error.kind for record in page.jobs if record.error} == {"permanent"}
    assert {record.counts.attempt for record in page.jobs} == {1}
    assert worker.is_alive


async def _failed(harness: WorkerHarness, count: int) -> bool:
    return (await harness.rota.queue().counts())["failed"] == count


async def test_arguments_that_no_longer_fit_fail_for_good(harness: WorkerHarness) -> None:
    """An older program enqueued it: trying again will not help."""
    other = Rota(harness.server.url, namespace=harness.namespace)

    @other.task(name="add")
    async def add(a: str) -> None: ...

    job = await add.enqueue("x")
    await harness.start()

    error = await failure(job)

    assert error.type == "InvalidArguments"
    assert (await job.refresh()).counts.attempt == 1
    await other.close()
