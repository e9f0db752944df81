"""A worker that stands still for longer than its lease, and then goes on as if nothing had happened."""

from __future__ import annotations

from tests.eventually import eventually
from tests.worker.crew import Crew


async def test_a_late_report_changes_nothing(crew: Crew) -> None:
    """S4-36, S4-33, S0-12, Kue #1204: its handler ended while others took the job over."""
    frozen = await crew.start()
    job = await crew.program.who_am_i.enqueue("subject")
    await crew.noted("subject")
    other = await crew.start()
    frozen.pause()
    try:
        await crew.noted("subject", 2, 8)
        await crew.until(job, "processing")
        claim = (await job.refresh()).claim
        first, second = crew.notes("subject")
        crew.allow(first)
        await crew.noted(f"{first}-end")
    finally:
        frozen.resume()

    await eventually(lambda: "came too late" in frozen.log, 5)
    record = await job.refresh()
    assert (record.state, record.claim, record.worker) == ("processing", claim, other.id)
    crew.allow(second)

    assert await job.result(10) == second
    counts = (await job.refresh()).counts
    assert (counts.attempt, counts.stalls, counts.failures) == (2, 1, 0)


async def test_a_worker_that_lost_its_lease_stops_the_handler(crew: Crew) -> None:
    """S4-33, OptimalBits/bull #1416: it is told so, and stops what it must not do any more."""
    frozen = await crew.start()
    job = await crew.program.wait.enqueue("subject")
    await crew.noted("subject")
    await crew.start()
    frozen.pause()
    crew.expire_leases(frozen)
    try:
        await crew.noted("subject", 2, 8)
    finally:
        frozen.resume()

    await crew.noted("subject", 3, 5)
    assert crew.notes("subject") == ["begin", "begin", "cancelled"]
    crew.allow("subject")

    assert await job.result(10) == "subject"
    assert (await job.refresh()).counts.attempt == 2
    assert await (await crew.program.add.enqueue(1, 2)).result(5) == 3


async def test_a_worker_that_claims_again_what_it_lost_runs_it_once_and_leaks_no_slot(crew: Crew) -> None:
    """S4-27, S4-36: two claims of one run in one process are two different things."""
    silent = await crew.start(concurrency=2, hook="silent")
    job = await crew.program.wait.enqueue("subject")
    await crew.noted("subject")
    # The rival has no slot free: it takes the lease away, and leaves the job to whoever comes.
    holder = await crew.program.wait.using(queue="other").enqueue("holder")
    rival = await crew.start(queues="other,default", concurrency=1)
    await crew.noted("holder")
    crew.expire_leases(silent)

    await crew.noted("subject", 3, 8)
    assert sorted(crew.notes("subject")) == ["begin", "begin", "cancelled"]
    record = await job.refresh()
    assert (record.worker, record.counts.attempt, record.counts.stalls) == (silent.id, 2, 1)
    crew.allow("subject")
    assert await job.result(10) == "subject"
    assert crew.notes("subject").count("end") == 1
    crew.allow("holder")
    await holder.result(10)
    rival.terminate()
    await rival.ended()

    pair = [await crew.program.wait.enqueue(f"pair-{number}") for number in range(2)]
    for number in range(2):
        await crew.noted(f"pair-{number}")
        crew.allow(f"pair-{number}")
    assert [await each.result(10) for each in pair] == ["pair-0", "pair-1"]
