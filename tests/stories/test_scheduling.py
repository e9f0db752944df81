"""A job can wait for its time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import ModuleType

import pytest


@pytest.mark.requirement("S4-6")
@pytest.mark.usefixtures("worker")
async def test_a_job_with_a_delay_starts_when_it_is_due(shop: ModuleType) -> None:
    job = await shop.ship.using(delay=0.5).enqueue("Oslo")
    assert await job.state() == "scheduled"

    assert await job.result(timeout=10) == "shipped to Oslo"

    record = await job.refresh()
    assert record.claimed_at - record.enqueued_at >= 500


@pytest.mark.requirement("S4-13", "S4-39")
async def test_a_scheduled_job_can_be_called_off(shop: ModuleType) -> None:
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    job = await shop.ship.using(run_at=tomorrow).enqueue("Oslo")
    assert (await job.explain()).startswith("scheduled")

    await job.cancel("the customer changed her mind")

    assert await job.state() == "cancelled"
