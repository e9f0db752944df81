"""A job can be cancelled, also while it runs."""

from __future__ import annotations

from types import ModuleType

import pytest

from rota import JobCancelled
from tests.worker.harness import WorkerHarness


@pytest.mark.requirement("S2-6", "S2-19")
@pytest.mark.usefixtures("worker")
async def test_a_running_job_is_stopped(shop: ModuleType, harness: WorkerHarness) -> None:
    job = await shop.wait_for_customer.enqueue()
    await harness.until(job, "processing")

    await job.cancel("we are closed")

    with pytest.raises(JobCancelled, match="we are closed"):
        await job.result(timeout=10)
    # Its slot, the only one, is free again.
    assert await (await shop.price.enqueue(1, 1.0)).result(timeout=10) == 1.0
