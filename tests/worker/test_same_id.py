"""The same id again, with real workers: one run at a time, one follow-up, and no way around a limit."""

from __future__ import annotations

from rota import JobState, Update
from tests.eventually import eventually
from tests.worker.crew import Crew


async def test_runs_of_one_id_never_overlap_and_many_calls_make_one_follow_up(crew: Crew) -> None:
    """S4-26, S4-27, S4-29, Q-9: with the default time, which is now, on ten free slots."""
    await crew.start()
    first = await crew.program.alone_until.using(id="one").enqueue("first", "one")
    await crew.noted("one")

    again = [await crew.program.alone_until.using(id="one").enqueue(f"again{n}", "one") for n in range(10)]

    assert len({job.run for job in again}) == 1
    assert await again[0].state() is JobState.BLOCKED
    assert (await again[0].explain()).startswith(f"blocked: waits for {first.ref}")
    crew.allow("first")
    crew.allow("again9")
    await again[0].result(10)
    assert crew.notes("one") == ["first in", "first out", "again9 in", "again9 out"]


async def test_a_follow_up_starts_at_once_when_the_running_one_has_ended(crew: Crew) -> None:
    """S4-29: also where its time was not to be changed."""
    await crew.start()
    first = await crew.program.alone_until.using(id="one").enqueue("first", "one")
    await crew.noted("one")
    waiting = crew.program.alone.using(id="two", on_same_id=Update(run_at=False))
    follow_up = await crew.program.alone_until.using(id="one", on_same_id=Update(run_at=False)).enqueue("next", "one")

    crew.allow("first")
    crew.allow("next")
    await follow_up.result(10)

    ended, begun = (await first.refresh()).ended_at, (await follow_up.refresh()).claimed_at
    assert (begun or 0) - (ended or 0) < 1_000
    assert await (await waiting.enqueue("x", "two")).result(10) is None, "no such job: it is made, whatever the flags"


async def test_a_job_that_enqueues_itself_and_keeps_failing_reaches_its_limit(crew: Crew) -> None:
    """S4-12, S4-30: the follow-up merges into the run that is tried again, and its failures stay."""
    await crew.start()
    job = await crew.program.enqueue_self_and_fail.using(id="me").enqueue(0)

    await eventually(lambda: len(crew.notes("self")) >= 4, 20)
    await crew.until(job, JobState.FAILED)

    assert crew.notes("self")[:4] == ["0 0", "1 1", "2 2", "3 3"]
    # The fourth failure was its last: what it had enqueued meanwhile is a run of its own.
    newest = await crew.rota.job("default:me").refresh()
    assert newest.ref.run != job.run


async def test_whoever_waits_for_a_follow_up_that_was_merged_gets_the_result(crew: Crew) -> None:
    """S4-30: the handle of the second call means the one run that is left."""
    await crew.start()
    fail = crew.program.fail.using(id="x", retry=3)
    first = await fail.enqueue("RetryLater", 0.3, times=1)
    follow_up = await crew.program.fail.using(id="x", on_same_id=Update(data=False)).enqueue("RetryLater", 0.3, times=1)

    assert await follow_up.result(10) == await first.result(10)
