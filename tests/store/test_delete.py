"""delete: any state -> (none)."""

from __future__ import annotations

import pytest

from rota.core.ids import JobRef
from rota.core.state_transitions import JobState
from tests.store.driver import FINISHED, HISTORY, QUEUE, Driver, new_job

#: Keys that describe the queue and not one job.
LASTING = {"meta", "events", "retention_rules", "kept", "reply", "last_reply", "heartbeats", "idle"} | HISTORY


async def _bring_to(driver: Driver, ref: JobRef, state: str) -> None:
    worker = driver.worker()
    if state in ("processing", "completed", "failed", "retrying"):
        (job,) = await worker.claim()
        await worker.store.save_progress(QUEUE, [(job.run, job.claim, "1", "2", "")])
        await worker.store.append_log(QUEUE, job.run, job.claim, 1, ["info hello"])
        if state == "completed":
            await worker.complete(job, b"1")
        elif state == "failed":
            await worker.fail(job)
        elif state == "retrying":
            await worker.fail(job, "+60000")
    elif state == "cancelled":
        await driver.client.cancel(ref)


@pytest.mark.requirement("S2-7")
@pytest.mark.parametrize("id", ["", "chosen"])
@pytest.mark.parametrize("state", ["pending", "scheduled", "retrying", "processing", *FINISHED])
async def test_delete_removes_every_trace(driver: Driver, state: str, id: str) -> None:
    """Record and index entries; no ghost comes back."""
    ref = await driver.one(id, due="+60000" if state == "scheduled" else "", expiry="+120000")
    await _bring_to(driver, ref, state)
    await driver.client.watch(ref)

    with driver.inbox("client") as inbox:
        assert await driver.client.delete(ref) == ("stopping" if state == "processing" else "deleted")
        told = inbox.told()

    assert not await driver.exists(ref)
    assert told == ([] if state in FINISHED else [f"ended {QUEUE} {ref.run}"])
    driver.check()
    if state != "processing":
        left = {key.partition("}:")[2].partition(":")[0] for key in driver.all_keys()}
        assert left <= LASTING
    driver.advance(120_000)
    assert await driver.worker("w2").claim() == []


async def test_the_handler_of_a_deleted_job_is_stopped_and_its_reports_are_refused(driver: Driver) -> None:
    """kue #804: a deleted job runs on."""
    ref = await driver.one()
    (job,) = await driver.worker("w1").claim()

    with driver.inbox("w1") as inbox:
        await driver.client.delete(ref)
        assert inbox.told() == [f"stop {QUEUE} {job.run} {job.claim}"]

    assert await driver.worker("w1").complete(job, b'"ghost"') != "ok"
    assert not await driver.exists(ref)
    driver.check()
    assert driver.index("stopping") == {}


@pytest.mark.requirement("S2-7")
async def test_what_does_not_exist_is_missing_and_nothing_changes(driver: Driver) -> None:
    ref = await driver.one("x")
    before = driver.dump("reply")

    for wrong in (JobRef(QUEUE, "y"), JobRef(QUEUE, "x", "00000000z"), JobRef(QUEUE, "y", ref.run)):
        assert await driver.client.delete(wrong) == "missing"

    assert driver.dump("reply") == before


async def test_deleting_an_old_run_leaves_the_new_run_of_the_id_alone(driver: Driver) -> None:
    old = await driver.dead_letter("x")
    new = await driver.one("x")

    assert await driver.client.delete(old) == "deleted"

    assert await driver.state(JobRef(QUEUE, "x")) is JobState.PENDING
    assert (await driver.read(JobRef(QUEUE, "x"))).record.ref == new


async def test_a_deleted_id_may_be_used_again_at_once(driver: Driver) -> None:
    await driver.client.delete(await driver.one("x"))

    assert (await driver.client.enqueue(QUEUE, [new_job("x")]))[0].is_new
