"""Dependencies, with real workers: across queues, through crashes, and back from the dead letters."""

from __future__ import annotations

import pytest

from rota import JobCancelled, JobNotFound, JobState, may_fail
from tests.client.manual_worker import dump
from tests.worker.harness import WorkerHarness


@pytest.mark.requirement("S2-13", "S2-14", "S2-34")
async def test_a_job_starts_when_all_that_it_comes_after_have_succeeded(harness: WorkerHarness) -> None:
    """A after B and C, in three queues."""
    await harness.start(queues="default,b,c")
    b = await harness.program.wait.using(queue="b").enqueue("b")
    c = await harness.program.wait.using(queue="c").enqueue("c")
    a = await harness.program.echo.using(after=[b, c]).enqueue("a")

    await harness.noted("b")
    harness.allow("b")
    await b.result(10)
    assert await a.state() is JobState.BLOCKED
    assert str(c.ref) in await a.explain()
    harness.allow("c")

    assert await a.result(10) == "a"
    begun, ended = (await a.refresh()).claimed_at, (await c.refresh()).ended_at
    assert (begun or 0) >= (ended or 0)


@pytest.mark.requirement("S2-15")
async def test_what_has_already_succeeded_counts(harness: WorkerHarness) -> None:
    await harness.start()
    done = await harness.program.echo.enqueue(1)
    await done.result(10)

    assert await (await harness.program.echo.using(after=[done, done.id]).enqueue(2)).result(10) == 2


@pytest.mark.requirement("S2-16")
async def test_a_failure_cancels_what_comes_after_it_and_a_redrive_brings_it_back(harness: WorkerHarness) -> None:
    """Transitively, across queues, with a reason that names the cause."""
    await harness.start(queues="default,b")
    first = await harness.program.fail_until.using(retry=1).enqueue("fixed")
    second = await harness.program.echo.using(queue="b", after=[first]).enqueue(2)
    third = await harness.program.echo.using(after=[second]).enqueue(3)
    regardless = await harness.program.echo.using(after=[may_fail(first)]).enqueue(4)

    with pytest.raises(JobCancelled, match=f"comes after {first.ref}"):
        await second.result(10)
    with pytest.raises(JobCancelled, match=f"comes after {second.ref}"):
        await third.result(10)
    assert await regardless.result(10) == 4

    harness.allow("fixed")
    await first.redrive()

    assert await third.result(10) == 3
    assert (await second.refresh()).counts.attempt == 1


@pytest.mark.requirement("S2-16", "S2-17")
async def test_unknown_jobs_are_refused_with_nothing_left_behind(harness: WorkerHarness) -> None:
    known = await harness.program.echo.using(delay=3600).enqueue(1)
    with harness.redis() as client:
        before = dump(client, harness.namespace)

    with pytest.raises(JobNotFound, match="default:nowhere"):
        await harness.program.echo.using(after=[known, "default:nowhere"]).enqueue(2)

    with harness.redis() as client:
        after = dump(client, harness.namespace)
    changed = {
        key for key in before.keys() | after.keys() if before.get(key) != after.get(key) and ":last_reply:" not in key
    }
    assert changed == {harness.key("meta")}, "only the counter of runs has moved"


@pytest.mark.requirement("S2-14", "S1-11")
@pytest.mark.parametrize("hook", ["after_take", "before_deliver", "after_deliver"])
async def test_dependents_are_not_lost_whichever_process_dies(harness: WorkerHarness, hook: str) -> None:
    """The worker that delivers the outcome is killed between its steps; another one goes on."""
    killed = await harness.start(hook=hook)
    await harness.rota.queue().pause()
    parent = await harness.program.echo.enqueue(1)
    child = await harness.program.echo.using(after=[parent]).enqueue(2)
    await harness.rota.queue().resume()
    await killed.ended()
    await harness.start()

    assert await child.result(20) == 2


async def test_a_chain_ends_soon_after_its_last_step(harness: WorkerHarness) -> None:
    """No look of an idle worker lies between the steps: each is pushed."""
    await harness.start()
    job = await harness.program.echo.enqueue(0)
    for number in range(10):
        job = await harness.program.echo.using(after=[job]).enqueue(number)

    assert await job.result(10) == 9
    record = await job.refresh()
    assert (record.ended_at or 0) - record.enqueued_at < 2_000
