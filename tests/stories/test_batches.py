"""Many jobs in one go."""

from __future__ import annotations

import asyncio
from types import ModuleType

import pytest


@pytest.mark.usefixtures("worker")
async def test_a_thousand_jobs_are_enqueued_in_one_go(shop: ModuleType) -> None:
    jobs = await shop.rota.enqueue_many(shop.price.call(amount, 2.0) for amount in range(1000))

    totals = await asyncio.gather(*(job.result(timeout=20) for job in jobs))

    assert totals == [amount * 2.0 for amount in range(1000)]
    assert (await shop.rota.queue().counts())["completed"] == 1000
