"""A worker that stands still for longer than its lease, and then goes on as if nothing had happened."""

from __future__ import annotations

import pytest

from tests.eventually import eventually
from tests.worker.harness import WorkerHarness


@pytest.mark.requirement("S4-36", "S4-33", "S0-12")
async def test_a_late_report_changes_nothing(harness: WorkerHarness) -> None:
    """Kue #1204: its handler ended while others took the job over."""
    frozen = await harness.start()
    job = await harness.program.record_pid.enqueue("subject")
    await harness.noted("subject")
    other = await harness.start()
    frozen.pause()
    try:
        await harness.noted("subject", 2, 8)
        await harness.until(job, "processing")
        claim = (await job.refresh()).claim
        first, second = harness.notes("subject")
        harness.allow(first)
        await harness.noted(f"{first}-end")
    finally:
        frozen.resume()

    await eventually(lambda: "came too late" in frozen.log, 5)
    record = await job.refresh()
    assert (record.state, record.claim, record.worker) == ("processing", claim, other.id)
    harness.allow(second)

    assert await job.result(10) == second
    counts = (await job.refresh()).counts
    assert (counts.attempt, counts.stalls, counts.failures) == (2, 1, 0)


@pytest.mark.requirement("S4-33")
async def test_a_worker_that_lost_its_lease_stops_the_handler(harness: WorkerHarness) -> None:
    """OptimalBits/bull #1416: its next heartbeat is refused, and it stops the handler."""
    frozen = await harness.start()
    job = await harness.program.wait.enqueue("subject")
    await harness.noted("subject")
    await harness.start()
    frozen.pause()
    harness.expire_leases(frozen)
    try:
        await harness.noted("subject", 2, 8)
    finally:
        frozen.resume()

    await harness.noted("subject", 3, 5)
    assert harness.notes("subject") == ["begin", "begin", "cancelled"]
    harness.allow("subject")

    assert await job.result(10) == "subject"
    assert (await job.refresh()).counts.attempt == 2
    assert await (await harness.program.add.enqueue(1, 2)).result(5) == 3


@pytest.mark.requirement("S4-27", "S4-36")
async def test_a_worker_that_claims_again_what_it_lost_runs_it_once_and_leaks_no_slot(harness: WorkerHarness) -> None:
    """Two claims of one run in one process are two different things."""
    silent = await harness.start(concurrency=2, hook="no_heartbeats")
    job = await harness.program.wait.enqueue("subject")
    await harness.noted("subject")
    # The rival has no free slot: it takes the lease away, and leaves the job to other workers.
    holder = await harness.program.wait.using(queue="other").enqueue("holder")
    rival = await harness.start(queues="other,default", concurrency=1)
    await harness.noted("holder")
    harness.expire_leases(silent)

    await harness.noted("subject", 3, 8)
    assert sorted(harness.notes("subject")) == ["begin", "begin", "cancelled"]
    record = await job.refresh()
    assert (record.worker, record.counts.attempt, record.counts.stalls) == (silent.id, 2, 1)
    harness.allow("subject")
    assert await job.result(10) == "subject"
    assert harness.notes("subject").count("end") == 1
    harness.allow("holder")
    await holder.result(10)
    rival.terminate()
    await rival.ended()

    pair = [await harness.program.wait.enqueue(f"pair-{number}") for number in range(2)]
    for number in range(2):
        await harness.noted(f"pair-{number}")
        harness.allow(f"pair-{number}")
    assert [await each.result(10) for each in pair] == ["pair-0", "pair-1"]
