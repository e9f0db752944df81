"""An attempt that fails is made again."""

from __future__ import annotations

from types import ModuleType

import pytest


@pytest.mark.requirement("S0-9", "S4-17", "S1-17")
@pytest.mark.usefixtures("worker")
async def test_a_failed_attempt_is_made_again_until_it_succeeds(shop: ModuleType) -> None:
    """The key that goes to the bank is the same every time."""
    job = await shop.charge.enqueue("1234")

    receipt = await job.result(timeout=10)

    assert receipt == f"charged 1234 with key {job.id}@{job.run}"
    counts = (await job.refresh()).counts
    assert (counts.attempt, counts.failures) == (3, 2)
