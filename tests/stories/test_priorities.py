"""What is more urgent comes first."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.worker.harness import WorkerHarness


@pytest.mark.requirement("S2-10", "S2-12", "K-1")
async def test_urgent_jobs_overtake_and_equals_stay_in_line(shop: ModuleType, harness: WorkerHarness) -> None:
    await shop.serve.enqueue("first")
    await shop.serve.enqueue("second")
    await shop.serve.using(priority="low").enqueue("patient")
    await shop.serve.using(priority="high").enqueue("hurried")
    last = await shop.serve.using(priority=100).enqueue("last")

    await harness.start(concurrency=1)

    assert await last.result(timeout=10) == ["hurried", "first", "second", "patient", "last"]
