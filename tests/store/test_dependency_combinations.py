"""Dependencies together with times, locks, ids that are used again, and batches."""

from __future__ import annotations

import pytest

from rota.core.dependencies import Parent, checked_parents, may_fail
from rota.core.ids import JobRef
from rota.core.same_id_policy import Update
from rota.core.state_transitions import JobState
from rota.store.create_dependents_and_deliver_outcomes import JobWithParents
from rota.store.enqueue_batcher import EnqueueResult
from rota.store.job_store import LEASE_MS
from tests.store.dependency_helpers import OTHER, claim_run, complete_run, fail_run, redrive_run, states_of
from tests.store.driver import QUEUE, Driver, new_job, ref_of, refs_of, run_of

pytestmark = pytest.mark.usefixtures("check_every_queue")


async def test_a_dependency_comes_first_then_the_time_then_the_lock(driver: Driver) -> None:
    parent = await driver.one(queue=OTHER)
    await driver.one(lock="l")
    (holder,) = await driver.worker().claim()
    child = await driver.after(parent, id="x", lock="l", due="+60000")
    assert await _obstacle(driver, child) == "after"

    await complete_run(driver, parent)
    await driver.post(OTHER)
    assert await states_of(driver, child) == ["scheduled"]
    driver.advance(60_000)
    await driver.worker("w2").claim(0)
    assert await _obstacle(driver, child) == "lock"
    (made,) = await driver.client.enqueue(QUEUE, [new_job("x", [7], again=Update(), after=(str(parent),))])
    assert made.outcome == "updated"
    await driver.worker().complete(holder)

    assert refs_of(await driver.worker().claim(5)) == [child.run]


async def _obstacle(driver: Driver, ref: JobRef) -> str:
    record = (await driver.read(ref)).record
    assert record.obstacle is not None, record.state
    return record.obstacle.kind


async def test_a_dependent_enqueued_again_while_it_runs_gets_a_follow_up(driver: Driver) -> None:
    """What it comes after is done by then: only the same id, then the time, then the lock are left."""
    parent = await driver.one(queue=OTHER)
    child = await driver.after(parent, id="x", lock="l")
    await complete_run(driver, parent)
    await driver.post(OTHER)
    job = await claim_run(driver, child)
    named = checked_parents([parent])
    again = new_job("x", [7], again=Update(), after=(str(parent),), lock="m", due="+1000")
    await driver.one(lock="m")
    (holder,) = await driver.worker("w2").claim()

    (made,) = await driver.ties.enqueue_dependents(QUEUE, [JobWithParents(again, named)])

    assert made.is_new
    assert await _obstacle(driver, ref_of(made)) == "same_id"
    await driver.worker().complete(job)
    assert await states_of(driver, ref_of(made)) == ["scheduled"]
    driver.advance(1_000)
    await driver.worker().claim(0)
    assert await _obstacle(driver, ref_of(made)) == "lock"
    await driver.worker("w2").complete(holder)
    assert refs_of(await driver.worker().claim(5)) == [made.run]


async def test_a_blocked_dependent_is_updated_and_stays_blocked(driver: Driver) -> None:
    parent = await driver.one(queue=OTHER)
    child = await driver.after(parent, id="x")
    again = new_job("x", [7], again=Update(), after=(str(parent),), priority=-10, lock="m", due="+1000")

    (made,) = await driver.ties.enqueue_dependents(QUEUE, [JobWithParents(again, checked_parents([parent]))])

    assert made == EnqueueResult("x", run_of(child), "updated")
    record = (await driver.read(child)).record
    assert (record.state, record.arguments, record.options.lock) == (JobState.BLOCKED, b"[7]", "m")
    await complete_run(driver, parent)
    await driver.post(OTHER)
    assert await states_of(driver, child) == ["scheduled"]


@pytest.mark.parametrize("end", ["complete", "fail", "retry", "cancel", "delete"])
async def test_what_comes_after_a_follow_up_waits_for_that_or_for_the_run_that_took_it_in(
    driver: Driver, end: str
) -> None:
    first = await driver.one("x")
    job = await claim_run(driver, first)
    (made,) = await driver.client.enqueue(QUEUE, [new_job("x", again=Update())])
    child = await driver.after(ref_of(made), queue=OTHER)
    worker = driver.worker()

    match end:
        case "complete" | "fail":
            await (worker.complete(job) if end == "complete" else worker.fail(job))
            await driver.post()
            assert await states_of(driver, child) == ["blocked"]
            await complete_run(driver, ref_of(made))
        case "retry":
            await worker.fail(job, "")
            late = await driver.after(ref_of(made), queue=OTHER)
            await fail_run(driver, first)
            await driver.post()
            assert await states_of(driver, child, late) == ["cancelled", "cancelled"]
            await redrive_run(driver, first)
            await driver.post()
            assert await states_of(driver, child, late) == ["blocked", "blocked"]
            await complete_run(driver, first)
            await driver.post()
            assert await states_of(driver, late) == ["pending"]
        case "cancel":
            assert await driver.client.cancel(ref_of(made)) == "cancelled"
        case _:
            await worker.fail(job, "")
            assert await driver.client.delete(ref_of(made)) == "deleted"
    await driver.post()

    assert await states_of(driver, child) == ["cancelled" if end in ("cancel", "delete") else "pending"]


async def test_a_dependent_behind_a_deleted_run_that_is_stopping_is_refused(driver: Driver) -> None:
    """As its follow-up it would not wait for its parents."""
    old = await driver.one("x")
    job = await claim_run(driver, old)
    await driver.client.delete(old)
    parent = await driver.one("p", due="+1000000")
    tied = JobWithParents(new_job("x", after=(str(parent),), again=Update()), checked_parents([parent]))

    (made,) = await driver.ties.enqueue_dependents(QUEUE, [tied])
    assert made.outcome == "after"
    assert await driver.worker().complete(job) == "cancelled"
    (made,) = await driver.ties.enqueue_dependents(QUEUE, [tied])

    assert made.is_new
    assert await _obstacle(driver, ref_of(made)) == "after"


async def test_a_cancelled_dependent_lets_go_of_all_that_it_was_tied_to(driver: Driver) -> None:
    parent = await driver.one(queue=OTHER)
    child = await driver.after(parent, id="x", lock="l", expiry="+1000")
    assert await driver.client.cancel(child) == "cancelled"
    driver.check()
    again = await driver.one("x", lock="l")
    await complete_run(driver, parent)
    await driver.post(OTHER)

    assert await states_of(driver, child, again) == ["cancelled", "pending"]


async def test_dependents_are_made_in_one_batch_each_with_its_own_parents(driver: Driver) -> None:
    parents = [await driver.one(queue=OTHER) for _ in range(3)]
    wanted = [
        JobWithParents(new_job(f"c{at}", after=tuple(map(str, parents[: at + 1]))), checked_parents(parents[: at + 1]))
        for at in range(3)
    ]
    wanted.append(wanted[0]._replace(job=wanted[0].job._replace(id="c0")))

    made = await driver.ties.enqueue_dependents(QUEUE, wanted)

    assert [one.outcome for one in made] == ["made", "made", "made", "in_use"]
    assert made[3].run == made[0].run
    for at, parent in enumerate(parents):
        await complete_run(driver, parent)
        await driver.post(OTHER)
        assert driver.counts() == {"pending": at + 1, **({"blocked": 2 - at} if at < 2 else {})}


async def test_a_parent_named_twice_is_waited_for_once(driver: Driver) -> None:
    parent = await driver.one(queue=OTHER)

    child = await driver.after(may_fail(parent), parent, Parent(parent))

    await fail_run(driver, parent)
    await driver.post(OTHER)
    assert await states_of(driver, child) == ["cancelled"]


async def test_a_worker_that_dies_with_a_parent_releases_no_dependents(driver: Driver) -> None:
    parent = await driver.one()
    child = await driver.after(parent)
    await claim_run(driver, parent)
    await driver.advance_with_ticks(LEASE_MS + 1_000)

    (job,) = await driver.worker("w2").claim(5)

    assert job.run == parent.run
    assert await states_of(driver, child) == ["blocked"]
    await driver.worker("w2").complete(job)
    await driver.post()
    assert await states_of(driver, child) == ["pending"]
