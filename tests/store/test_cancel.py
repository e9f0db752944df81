"""cancel: scheduled | blocked | pending | processing -> cancelled."""

from __future__ import annotations

import asyncio

import pytest

from rota.core.ids import JobRef
from rota.core.job_options import Keep
from rota.core.state_transitions import JobState
from rota.store.job_store import LEASE_MS
from tests.store.driver import ENDS, QUEUE, Driver, new_job, refs_of


@pytest.mark.requirement("S2-6", "S2-19", "S4-13", "S4-39")
@pytest.mark.parametrize("due", ["", "+60000"], ids=["pending", "scheduled"])
async def test_a_waiting_job_is_cancelled_and_never_runs(driver: Driver, due: str) -> None:
    ref = await driver.one("x", due=due)

    assert await driver.client.cancel(ref, reason="changed\nmy mind") == "cancelled"

    record = (await driver.read(ref)).record
    assert (record.state, record.reason) == (JobState.CANCELLED, "changed my mind")
    assert record.ended_at is not None
    driver.advance(120_000)
    assert await driver.worker().claim() == []


async def test_a_job_in_backoff_is_waiting_too(driver: Driver) -> None:
    ref = await driver.one()
    (job,) = await driver.worker().claim()
    await driver.worker().fail(job, "+60000")

    assert await driver.client.cancel(ref) == "cancelled"

    record = (await driver.read(ref)).record
    assert (record.state, record.counts.failures) == (JobState.CANCELLED, 1)


@pytest.mark.requirement("S2-19")
async def test_a_running_job_is_cancelled_at_once_and_its_worker_is_notified(driver: Driver) -> None:
    """The state is cancelled, whatever the handler reports later."""
    ref = await driver.one()
    (job,) = await driver.worker("w1").claim()

    with driver.inbox("w1") as inbox:
        assert await driver.client.cancel(ref, reason="no more") == "stopping"
        assert inbox.told() == [f"stop {QUEUE} {job.run} {job.claim}"]

    assert await driver.state(ref) is JobState.CANCELLED
    assert driver.index("stopping").keys() == {job.run}
    assert await driver.worker("w1").beat(job) == {job.run: "cancelled"}
    assert await driver.worker("w1").complete(job, b'"done"') == "cancelled"
    record = (await driver.read(ref)).record
    assert (record.state, record.reason, record.result) == (JobState.CANCELLED, "no more", None)
    assert driver.index("stopping") == {}


@pytest.mark.parametrize("verb", ENDS)
async def test_whatever_a_cancelled_handler_reports_means_that_it_has_stopped(driver: Driver, verb: str) -> None:
    """arq #485: no retry, no dead letter."""
    ref = await driver.one("x")
    (job,) = await driver.worker().claim()
    await driver.client.cancel(ref)
    before = driver.dump("stopping")

    assert await driver.worker().end(job, verb) == "cancelled"

    assert driver.dump("stopping") == before
    assert driver.index("stopping") == {}


@pytest.mark.requirement("S4-13")
async def test_only_waiting_jobs_are_reached_if_so_asked(driver: Driver) -> None:
    """A running job is left running, and the outcome says so."""
    ref = await driver.one()
    await driver.worker().claim()
    before = driver.dump("reply")

    assert await driver.client.cancel(ref, reach="waiting") == "processing"

    assert driver.dump("reply") == before


@pytest.mark.requirement("S2-6")
@pytest.mark.parametrize("end", ["completed", "failed", "cancelled"])
async def test_a_finished_job_is_not_cancelled_and_nothing_changes(driver: Driver, end: str) -> None:
    """Allowed while it waits or runs."""
    ref = await driver.one()
    if end == "cancelled":
        await driver.client.cancel(ref)
    else:
        (job,) = await driver.worker().claim()
        await (driver.worker().complete(job) if end == "completed" else driver.worker().fail(job))
    before = driver.dump("reply")

    assert await driver.client.cancel(ref, reason="too late") == f"ended {end}"

    assert driver.dump("reply") == before


@pytest.mark.requirement("S2-6")
async def test_what_does_not_exist_is_missing_and_nothing_changes(driver: Driver) -> None:
    ref = await driver.one("x")
    before = driver.dump("reply")

    for wrong in (JobRef(QUEUE, "y"), JobRef(QUEUE, "x", "00000000z"), JobRef(QUEUE, "y", ref.run)):
        assert await driver.client.cancel(wrong) == "missing"

    assert driver.dump("reply") == before


async def test_a_cancel_never_hits_a_later_run_of_the_id(driver: Driver) -> None:
    """arq #485: a stale abort kills a later job of the same id."""
    old = await driver.one("x")
    (job,) = await driver.worker().claim()
    await driver.worker().complete(job)
    new = await driver.one("x")

    assert await driver.client.cancel(old) == "ended completed"

    assert await driver.state(new) is JobState.PENDING


@pytest.mark.requirement("S2-19")
async def test_cancel_and_complete_have_one_winner(driver: Driver) -> None:
    """A cancel that comes last must not be overwritten, nor overwrite."""
    refs = await driver.enqueue(*[new_job()] * 40)
    jobs = await driver.worker().claim(40)

    outcomes = await asyncio.gather(
        *(
            asyncio.gather(driver.client.cancel(ref), driver.worker().complete(job))
            for ref, job in zip(refs, jobs, strict=True)
        )
    )

    for ref, outcome in zip(refs, outcomes, strict=True):
        said = " ".join(outcome)
        assert said in ("stopping cancelled", "ended completed ok")
        assert await driver.state(ref) == said.split(" ")[1]


@pytest.mark.requirement("S4-27")
@pytest.mark.parametrize("id", ["x", ""], ids=["chosen", "made up"])
@pytest.mark.parametrize("verb", ["cancel", "delete"])
@pytest.mark.parametrize("keep", [3600.0, 0.0])
async def test_an_id_stays_taken_until_the_handler_has_stopped(driver: Driver, verb: str, keep: float, id: str) -> None:
    """Nothing ever overlaps, also when nothing of the old run is kept."""
    ref = await driver.one(id, keep=Keep(finished=keep))
    (job,) = await driver.worker().claim()
    assert await (driver.client.cancel(ref) if verb == "cancel" else driver.client.delete(ref)) == "stopping"

    (refused,) = await driver.client.enqueue(QUEUE, [new_job(ref.id)])
    assert (refused.is_new, refused.run) == (False, ref.run)

    await driver.worker().complete(job)
    (made,) = await driver.client.enqueue(QUEUE, [new_job(ref.id)])
    assert made.is_new
    assert refs_of(await driver.worker("w2").claim()) == [made.run]


@pytest.mark.parametrize("verb", ["cancel", "delete"])
async def test_an_id_is_free_when_the_lease_of_a_silent_handler_has_run_out(driver: Driver, verb: str) -> None:
    ref = await driver.one("x", keep=Keep(finished=0))
    await driver.worker("w1").claim()
    await (driver.client.cancel(ref) if verb == "cancel" else driver.client.delete(ref))

    await driver.advance_with_ticks(LEASE_MS + 1000)
    await driver.worker("w2").claim()

    assert driver.index("stopping") == {}
    assert driver.hash("ids") == driver.hash("named") == driver.hash("runs") == {}
    assert (await driver.client.enqueue(QUEUE, [new_job("x")]))[0].is_new


@pytest.mark.parametrize("verb", ["cancel", "delete"])
async def test_a_stopping_handler_keeps_its_place_while_its_worker_names_it(driver: Driver, verb: str) -> None:
    ref = await driver.one("x", keep=Keep(finished=0))
    (job,) = await driver.worker("w1").claim()
    await (driver.client.cancel(ref) if verb == "cancel" else driver.client.delete(ref))

    for _ in range(6):
        driver.advance(2_000)
        assert await driver.worker("w1").beat(job) == {job.run: "cancelled"}
        await driver.worker("w2").claim()

    assert not (await driver.client.enqueue(QUEUE, [new_job("x")]))[0].is_new


@pytest.mark.requirement("S0-14")
@pytest.mark.parametrize("verb", ["cancel", "delete"])
async def test_a_late_holder_does_not_release_what_anothers_handler_still_holds(driver: Driver, verb: str) -> None:
    """A slow holder never frees what is another's by now."""
    ref = await driver.one("x", keep=Keep(finished=0))
    (late,) = await driver.worker("w1").claim()
    await driver.worker("w1").lose(late)
    (job,) = await driver.worker("w2").claim()
    await (driver.client.cancel(ref) if verb == "cancel" else driver.client.delete(ref))
    before = driver.dump("meta", "heartbeats")

    assert await driver.worker("w1").complete(late) in ("missing", "lease_lost")
    await driver.worker("w1").beat(late)

    assert driver.dump("meta", "heartbeats") == before
    assert not (await driver.client.enqueue(QUEUE, [new_job("x")]))[0].is_new
    await driver.worker("w2").complete(job)
    assert (await driver.client.enqueue(QUEUE, [new_job("x")]))[0].is_new


async def test_a_cancelled_job_that_is_swept_while_its_handler_stops_keeps_its_id(driver: Driver) -> None:
    ref = await driver.one("x", keep=Keep(finished=10))
    (job,) = await driver.worker().claim()
    await driver.client.cancel(ref)
    for _ in range(6):
        driver.advance(2_000)
        await driver.worker().beat(job)

    await driver.client.apply_retention(QUEUE)

    assert not await driver.exists(ref)
    assert not (await driver.client.enqueue(QUEUE, [new_job("x")]))[0].is_new
    assert await driver.worker().complete(job) == "cancelled"
    assert (await driver.client.enqueue(QUEUE, [new_job("x")]))[0].is_new
