"""give_up: processing -> cancelled."""

from __future__ import annotations

from rota.core.state_transitions import JobState
from rota.store.report_encoding import Cancelled
from tests.store.driver import QUEUE, Driver, new_job


async def test_a_handler_may_end_its_own_job_as_cancelled(driver: Driver) -> None:
    ref = await driver.one("x")
    (job,) = await driver.worker().claim()

    assert await driver.worker().give_up(job, "not\nneeded") == "ok"

    record = (await driver.read(ref)).record
    assert (record.state, record.reason) == (JobState.CANCELLED, "not needed")
    assert driver.index("stopping") == {}
    assert (await driver.client.enqueue(QUEUE, [new_job("x")]))[0].is_new


async def test_a_batch_is_judged_job_by_job(driver: Driver) -> None:
    refs = await driver.enqueue(*[new_job()] * 3)
    good, done, lost = await driver.worker().claim(3)
    await driver.worker().complete(done)
    await driver.worker().hand_back(lost)
    await driver.worker("w2").claim()

    reports = [Cancelled(job.run, job.claim, "no") for job in (good, done, lost, good)]
    refused = await driver.worker().store.report(QUEUE, reports)

    assert refused == {good.run: "cancelled", done.run: "already", lost.run: "lease_lost"}
    assert [await driver.state(ref) for ref in refs] == ["cancelled", "completed", "processing"]
