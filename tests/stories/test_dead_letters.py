"""A job that fails for good is kept, to be looked at and redriven."""

from __future__ import annotations

from types import ModuleType

import pytest

from rota import JobFailed


@pytest.mark.requirement("S2-20", "S0-11", "S4-19")
@pytest.mark.usefixtures("worker")
async def test_a_dead_letter_says_what_went_wrong(shop: ModuleType) -> None:
    """Nothing is dropped in silence."""
    job = await shop.ship.using(retry=1).enqueue("nowhere")

    with pytest.raises(JobFailed, match="there is no such address"):
        await job.result(timeout=10)

    (letter,) = (await shop.rota.dead.list()).jobs
    assert letter.ref.full_id == job.id
    assert letter.error.type == "ValueError"
    assert 'raise ValueError("there is no such address")' in letter.error.traceback


@pytest.mark.usefixtures("worker")
async def test_a_dead_letter_is_redriven(shop: ModuleType) -> None:
    """Its counts start anew; here it fails again."""
    job = await shop.ship.using(retry=1).enqueue("nowhere")
    with pytest.raises(JobFailed):
        await job.result(timeout=10)

    assert await shop.rota.dead.redrive(task="ship") == 1

    with pytest.raises(JobFailed):
        await job.result(timeout=10)
    counts = (await job.refresh()).counts
    assert (counts.attempt, counts.failures) == (2, 1)
