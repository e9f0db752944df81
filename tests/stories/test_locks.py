"""There is one oven: cakes are baked one after the other, and nobody else waits for them."""

from __future__ import annotations

from types import ModuleType

from tests.worker.crew import Crew


async def test_two_jobs_with_one_lock_run_one_after_the_other(shop: ModuleType, crew: Crew) -> None:
    """S3-1, S3-4."""
    await crew.start(concurrency=5)
    first = await shop.bake.using(lock="oven").enqueue(5)
    second = await shop.bake.using(lock="oven").enqueue(1)

    assert await second.state() == "blocked"
    assert "lock oven is " in await second.explain()
    assert await (await shop.price.enqueue(2, 1.5)).result(timeout=10) == 3.0
    await second.result(timeout=10)

    assert (await second.refresh()).claimed_at >= (await first.refresh()).ended_at
