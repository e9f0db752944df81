"""There is one oven: cakes are baked one after the other, and other jobs do not wait for them."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.worker.harness import WorkerHarness


@pytest.mark.requirement("S3-1", "S3-4")
async def test_two_jobs_with_one_lock_run_one_after_the_other(shop: ModuleType, harness: WorkerHarness) -> None:
    await harness.start(concurrency=5)
    queue = shop.rota.queue(shop.bake.queue)
    await queue.pause()  # so that the first cannot end before the second is looked at
    first = await shop.bake.using(lock="oven").enqueue(5)
    second = await shop.bake.using(lock="oven").enqueue(1)

    assert await second.state() == "blocked"
    assert "lock oven goes to " in await second.explain()
    await queue.resume()
    assert await (await shop.price.enqueue(2, 1.5)).result(timeout=10) == 3.0
    await second.result(timeout=10)

    assert (await second.refresh()).claimed_at >= (await first.refresh()).ended_at
