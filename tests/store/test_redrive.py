"""redrive: failed -> pending."""

from __future__ import annotations

import pytest

from rota.core.ids import JobRef
from rota.core.job_record import AttemptCounts
from rota.core.state_transitions import JobState
from tests.store.driver import QUEUE, Driver, failed, new_job, refs_of


async def test_a_redriven_dead_letter_runs_again_with_its_counts_reset(driver: Driver) -> None:
    """Spec 8; attempts go on growing, so that an attempt's number is never used twice."""
    ref = await driver.one("x", arguments=[7], max_stalls=0)
    worker = driver.worker()
    (job,) = await worker.claim()
    await worker.snooze(job, "")
    (job,) = await worker.claim()
    await worker.hand_back(job)
    (job,) = await worker.claim()
    await worker.fail(job, "final")

    assert await driver.client.redrive(QUEUE, [ref]) == ["redriven"]

    assert await driver.state(ref) is JobState.PENDING
    (again,) = await worker.claim()
    assert (again.run, again.counts) == (ref.run, AttemptCounts(attempt=4))
    assert [entry.verb for entry in (await driver.read(ref)).history][-1] == "redrive"
    assert await worker.complete(again, b"1") == "ok"


async def test_a_redriven_job_takes_a_new_place_in_its_priority(driver: Driver) -> None:
    ref = await driver.one(priority=-10)
    (job,) = await driver.worker().claim()
    await driver.worker().fail(job)
    urgent, plain = await driver.enqueue(new_job(priority=-10), new_job())
    driver.advance(1000)

    await driver.client.redrive(QUEUE, [ref])

    assert refs_of(await driver.worker().claim(5)) == [urgent.run, ref.run, plain.run]


async def test_only_dead_letters_are_redriven_and_nothing_else_changes(driver: Driver) -> None:
    refs = await driver.enqueue(*[new_job()] * 4)
    _, done = await driver.worker().claim(2)
    await driver.worker().complete(done)
    await driver.client.cancel(refs[2])
    before = driver.dump("reply")

    outcomes = await driver.client.redrive(QUEUE, [*refs, JobRef(QUEUE, "nobody")])

    assert outcomes == ["processing", "completed", "cancelled", "waiting", "missing"]
    assert driver.dump("reply") == before


@pytest.mark.requirement("S4-27")
@pytest.mark.parametrize("newer", ["pending", "processing", "stopping"])
async def test_a_dead_letter_whose_id_has_a_newer_unfinished_run_stays(driver: Driver, newer: str) -> None:
    """Two runs of one id never overlap, not even while a handler is being stopped."""
    old = await driver.dead_letter("x")
    new = await driver.one("x")
    if newer != "pending":
        await driver.worker().claim()
    if newer == "stopping":
        await driver.client.cancel(new)
    before = driver.dump("reply")

    assert await driver.client.redrive(QUEUE, [old]) == ["in_use"]

    assert driver.dump("reply") == before


async def test_a_made_up_id_that_was_used_again_is_in_use_too(driver: Driver) -> None:
    old = await driver.dead_letter()
    await driver.one(old.id)

    assert await driver.client.redrive(QUEUE, [old]) == ["in_use"]


async def test_the_run_that_an_id_was_made_up_for_has_it_again_once_it_is_redriven(driver: Driver) -> None:
    first = await driver.dead_letter()
    second = await driver.dead_letter(first.id)
    assert await driver.client.redrive(QUEUE, [first]) == ["redriven"]

    assert await driver.client.redrive(QUEUE, [second]) == ["in_use"]


async def test_the_id_of_a_redriven_run_means_that_run(driver: Driver) -> None:
    old = await driver.dead_letter("x")
    new = await driver.one("x")
    (job,) = await driver.worker().claim()
    await driver.worker().complete(job)

    assert await driver.client.redrive(QUEUE, [old]) == ["redriven"]

    assert (await driver.read(JobRef(QUEUE, "x"))).record.ref == old
    assert not (await driver.client.enqueue(QUEUE, [new_job("x")]))[0].is_new
    assert await driver.state(new) is JobState.COMPLETED


async def test_many_are_redriven_in_one_call_each_with_its_outcome(driver: Driver) -> None:
    refs = [await driver.dead_letter() for _ in range(3)]

    outcomes = await driver.client.redrive(QUEUE, [refs[0], refs[1], refs[0], JobRef(QUEUE, "y"), refs[2]])

    assert outcomes == ["redriven", "redriven", "waiting", "missing", "redriven"]
    assert driver.hash("meta")["redriven"] == "3"


async def test_more_dead_letters_than_one_call_carries_are_redriven(driver: Driver) -> None:
    refs = await driver.enqueue(*[new_job()] * 600)
    for _ in range(2):
        await driver.worker().store.report(QUEUE, [failed(job) for job in await driver.worker().claim(300)])

    outcomes = await driver.client.redrive(QUEUE, refs)

    assert outcomes == ["redriven"] * 600
    assert driver.counts() == {"pending": 600}
