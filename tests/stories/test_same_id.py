"""An id names one job: enqueued again, it is changed, or follows itself."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.worker.harness import WorkerHarness


@pytest.mark.requirement("S4-8", "S4-9", "S4-10")
@pytest.mark.usefixtures("worker")
async def test_an_order_that_is_changed_before_it_is_due_is_shipped_once(shop: ModuleType) -> None:
    order = await shop.ship.using(id="order-7", delay=3600).enqueue("Oslo")

    changed = await shop.ship.using(id="order-7").enqueue("Bergen")

    assert (changed.run, changed.is_new) == (order.run, False)
    assert await order.result(timeout=10) == "shipped to Bergen"


@pytest.mark.requirement("S4-27", "S4-29")
async def test_what_is_asked_for_while_it_runs_is_done_once_more_afterwards(
    shop: ModuleType, harness: WorkerHarness
) -> None:
    """There are free slots, and still the two never overlap."""
    await harness.start(concurrency=5)
    baking = await shop.bake.using(id="oven").enqueue(5)
    await harness.until(baking, "processing")

    asked = [await shop.bake.using(id="oven").enqueue(cakes) for cakes in (1, 2, 3)]

    assert await asked[0].state() == "blocked"
    assert await baking.result(timeout=10) == "5 cakes"
    assert {await job.result(timeout=10) for job in asked} == {"3 cakes"}
    assert (await asked[0].refresh()).claimed_at >= (await baking.refresh()).ended_at
