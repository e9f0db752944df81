"""What the shop does about an order that could not be shipped."""

from __future__ import annotations

from types import ModuleType

import pytest

from rota import JobFailed


@pytest.mark.requirement("S4-21", "S4-22", "S4-14")
@pytest.mark.usefixtures("worker")
async def test_a_failure_handler_runs_when_a_job_has_failed_for_good(shop: ModuleType) -> None:
    """It gets the error, the job, and what the job was called with; in a queue of its own."""
    order = await shop.ship.using(retry=1).enqueue("nowhere")
    with pytest.raises(JobFailed):
        await order.result(timeout=10)

    alert = (await order.history())[-1]

    handler = shop.rota.job(alert.note)
    assert handler.queue == "default-fail"
    assert await handler.result(timeout=10) == "could not ship to nowhere: there is no such address"
