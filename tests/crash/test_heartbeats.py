"""Heartbeats do not depend on user code: a handler that blocks its own process costs no job its lease."""

from __future__ import annotations

import asyncio

import pytest

from tests.eventually import eventually
from tests.servers import Server
from tests.store.proxy import Proxy
from tests.worker.harness import WorkerHarness


@pytest.mark.requirement("S0-12", "S4-37", "S3-12")
async def test_a_lease_outlives_a_blocked_loop_and_a_held_gil(harness: WorkerHarness) -> None:
    """Six seconds, more than a lease, and a rival who would take the job."""
    await harness.start("--processes", "3", concurrency=3)
    jobs = [
        await harness.program.block_loop.enqueue("blocks", 6),
        await harness.program.hold_gil.enqueue("holds", 6),
        await harness.program.match_slowly.enqueue("matches", 6),
    ]
    for subject in ("blocks", "holds", "matches"):
        await harness.noted(subject)
    await harness.start(concurrency=3)

    for job in jobs:
        await job.result(30)

    for job in jobs:
        counts = (await job.refresh()).counts
        assert (counts.attempt, counts.stalls, counts.handbacks) == (1, 0, 0)
    assert all(harness.notes(subject) == ["begin", "end"] for subject in ("blocks", "holds", "matches"))


@pytest.mark.parametrize("at_most_once", [False, True])
async def test_a_claim_without_a_reply_is_given_up_and_its_job_runs_once_elsewhere(
    harness: WorkerHarness, *, at_most_once: bool
) -> None:
    """The reply comes after the lease has ended, while heartbeats are answered: too late to start the job."""
    await harness.start(hook="late_claim_reply", concurrency=2)
    other = await harness.program.wait.enqueue("other")
    await harness.noted("other")
    harness.allow("death")
    task = harness.program.record_run.using(at_most_once=at_most_once)
    # One that is pushed needs no reply; of two, one is left to a claim.
    await harness.rota.queue("default").pause()
    late = await task.enqueue("ran", "late")
    await harness.rota.queue("default").resume()
    await harness.until(late, "processing")
    await harness.start()

    await late.result(15)

    counts = (await late.refresh()).counts
    assert (counts.attempt, counts.stalls, counts.handbacks) == (1, 0, 1)
    worker = harness.workers[0]
    await eventually(lambda: "came too late" in worker.log, 15)
    assert harness.notes("ran") == ["late"]
    harness.allow("other")
    assert await other.result(5) == "other"


async def test_over_a_slow_network_no_job_runs_twice_that_may_not_and_stalls_are_charged(
    harness: WorkerHarness, valkey: Server
) -> None:
    """Replies and pushes take 1.7 s. The worker dies when both jobs have begun, before a heartbeat can name them."""
    async with Proxy(valkey) as proxy:
        far = await harness.start(concurrency=3, environment={"ROTA_URL": proxy.url})
        await harness.program.wait.enqueue("holds")
        await harness.noted("holds")
        proxy.delay = 1.7
        once = await harness.program.wait.using(at_most_once=True).enqueue("once")
        again = await harness.program.wait.enqueue("again")
        await asyncio.gather(harness.noted("once", timeout=30), harness.noted("again", timeout=30))
        far.kill()

        harness.allow("again")
        await harness.start()
        await harness.until(once, "failed", timeout=60)
        await again.result(60)

    # On a busy machine a lease can expire before the kill: that attempt is cancelled, and its stall charged as well.
    assert harness.notes("once").count("begin") == 1
    begun = harness.notes("again").count("begin")
    assert begun >= 2
    assert harness.notes("again")[-1] == "end"
    assert (await again.refresh()).counts.stalls >= begun - 1
