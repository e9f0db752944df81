"""Dependencies, with real workers: across queues, through crashes, and back from the dead letters."""

from __future__ import annotations

import pytest

from rota import JobCancelled, JobNotFound, JobState, may_fail
from tests.client.hands import dump
from tests.worker.crew import Crew


async def test_a_job_starts_when_all_that_it_comes_after_have_succeeded(crew: Crew) -> None:
    """S2-13, S2-14, S2-34: A after B and C, in three queues."""
    await crew.start(queues="default,b,c")
    b = await crew.program.wait.using(queue="b").enqueue("b")
    c = await crew.program.wait.using(queue="c").enqueue("c")
    a = await crew.program.echo.using(after=[b, c]).enqueue("a")

    await crew.noted("b")
    crew.allow("b")
    await b.result(10)
    assert await a.state() is JobState.BLOCKED
    assert str(c.ref) in await a.explain()
    crew.allow("c")

    assert await a.result(10) == "a"
    begun, ended = (await a.refresh()).claimed_at, (await c.refresh()).ended_at
    assert (begun or 0) >= (ended or 0)


async def test_what_has_already_succeeded_counts(crew: Crew) -> None:
    """S2-15."""
    await crew.start()
    done = await crew.program.echo.enqueue(1)
    await done.result(10)

    assert await (await crew.program.echo.using(after=[done, done.id]).enqueue(2)).result(10) == 2


async def test_a_failure_cancels_what_comes_after_it_and_a_redrive_brings_it_back(crew: Crew) -> None:
    """S2-16: transitively, across queues, with a reason that names the cause."""
    await crew.start(queues="default,b")
    first = await crew.program.fail_until.using(retry=1).enqueue("mended")
    second = await crew.program.echo.using(queue="b", after=[first]).enqueue(2)
    third = await crew.program.echo.using(after=[second]).enqueue(3)
    regardless = await crew.program.echo.using(after=[may_fail(first)]).enqueue(4)

    with pytest.raises(JobCancelled, match=f"comes after {first.ref}"):
        await second.result(10)
    with pytest.raises(JobCancelled, match=f"comes after {second.ref}"):
        await third.result(10)
    assert await regardless.result(10) == 4

    crew.allow("mended")
    await first.redrive()

    assert await third.result(10) == 3
    assert (await second.refresh()).counts.attempt == 1


async def test_unknown_jobs_are_refused_with_nothing_left_behind(crew: Crew) -> None:
    """S2-16, S2-17."""
    known = await crew.program.echo.using(delay=3600).enqueue(1)
    with crew.redis() as client:
        before = dump(client, crew.namespace)

    with pytest.raises(JobNotFound, match="default:nowhere"):
        await crew.program.echo.using(after=[known, "default:nowhere"]).enqueue(2)

    with crew.redis() as client:
        after = dump(client, crew.namespace)
    changed = {
        key for key in before.keys() | after.keys() if before.get(key) != after.get(key) and ":calls:" not in key
    }
    assert changed == {crew.key("meta")}, "only the counter of runs has moved"


@pytest.mark.parametrize("hook", ["after_take", "before_deliver", "after_deliver"])
async def test_dependents_are_not_lost_whoever_dies_when(crew: Crew, hook: str) -> None:
    """S2-14, S1-11: the worker that carries the news is killed between its steps; another one carries on."""
    doomed = await crew.start(hook=hook)
    await crew.rota.queue().pause()
    parent = await crew.program.echo.enqueue(1)
    child = await crew.program.echo.using(after=[parent]).enqueue(2)
    await crew.rota.queue().resume()
    await doomed.ended()
    await crew.start()

    assert await child.result(20) == 2


async def test_a_chain_ends_soon_after_its_last_step(crew: Crew) -> None:
    """No look of an idle worker lies between the steps: each is pushed."""
    await crew.start()
    job = await crew.program.echo.enqueue(0)
    for number in range(10):
        job = await crew.program.echo.using(after=[job]).enqueue(number)

    assert await job.result(10) == 9
    record = await job.refresh()
    assert (record.ended_at or 0) - record.enqueued_at < 2_000
