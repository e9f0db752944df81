"""Heartbeats do not depend on user code: what a handler does to its own process costs nobody the lease."""

from __future__ import annotations

import pytest

from tests.worker.crew import Crew


@pytest.mark.timeout(60)
async def test_a_lease_outlives_a_blocked_loop_and_a_held_gil(crew: Crew) -> None:
    """S0-12, S4-37, S3-12: six seconds, more than a lease, and a rival who would take the job."""
    await crew.start("--processes", "3", concurrency=3)
    jobs = [
        await crew.program.block_loop.enqueue("blocks", 6),
        await crew.program.hold_gil.enqueue("holds", 6),
        await crew.program.match_slowly.enqueue("matches", 6),
    ]
    for subject in ("blocks", "holds", "matches"):
        await crew.noted(subject)
    await crew.start(concurrency=3)

    for job in jobs:
        await job.result(30)

    for job in jobs:
        counts = (await job.refresh()).counts
        assert (counts.attempt, counts.stalls, counts.handbacks) == (1, 0, 0)
    assert all(crew.notes(subject) == ["begin", "end"] for subject in ("blocks", "holds", "matches"))


@pytest.mark.timeout(60)
async def test_a_claim_that_its_owner_never_heard_of_comes_back_uncharged(crew: Crew) -> None:
    """Spec 4: the owner lives, beats, and does not name it."""
    worker = await crew.start(hook="forgetful")
    forgotten = await crew.program.order.enqueue("ran", "forgotten")
    await crew.until(forgotten, "processing")
    other = await crew.program.wait.enqueue("other")
    await crew.noted("other")

    await forgotten.result(10)

    counts = (await forgotten.refresh()).counts
    assert (counts.attempt, counts.stalls, counts.handbacks) == (1, 0, 1)
    assert (await forgotten.refresh()).worker == worker.id
    crew.allow("other")
    assert await other.result(5) == "other"
