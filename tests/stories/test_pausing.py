"""A queue can be paused: nothing is started, nothing is lost."""

from __future__ import annotations

from types import ModuleType

import pytest


@pytest.mark.requirement("S1-19")
@pytest.mark.usefixtures("worker")
async def test_a_paused_queue_waits_until_it_is_resumed(shop: ModuleType) -> None:
    queue = shop.rota.queue()
    await queue.pause()
    job = await shop.price.enqueue(1, 2.0)
    assert "paused" in await job.explain()

    await queue.resume()

    assert await job.result(timeout=10) == 2.0
