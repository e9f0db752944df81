"""A handler says how far it is, and what it does."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.eventually import eventually


@pytest.mark.requirement("S2-18", "K-7", "K-8")
@pytest.mark.usefixtures("worker")
async def test_progress_and_logs_can_be_followed(shop: ModuleType) -> None:
    job = await shop.bake.enqueue(5)

    async def is_under_way() -> bool:
        progress = (await job.refresh()).progress
        return progress is not None and 0 < progress.percent < 100 and progress.note == "baking"

    await eventually(is_under_way)
    assert await job.result(timeout=10) == "5 cakes"

    assert (await job.refresh()).progress.percent == 100
    assert [line.text for line in await job.logs()] == [f"cake {number} is in the oven" for number in range(1, 6)]
