"""A shop, and a worker for it: what every story starts with."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.servers import Server
from tests.worker.harness import WorkerHarness, WorkerProcess


@pytest.fixture
async def harness(valkey: Server, namespace: str, tmp_path: Path) -> AsyncIterator[WorkerHarness]:
    """Starts workers for the shop."""
    with WorkerHarness(valkey, namespace, tmp_path, module="tests.stories.shop") as harness:
        yield harness
        await harness.rota.close()


@pytest.fixture
def shop(harness: WorkerHarness) -> ModuleType:
    """The program: `shop.py`, with its `rota` and its tasks."""
    return harness.program


@pytest.fixture
async def worker(harness: WorkerHarness) -> WorkerProcess:
    """`rota worker shop:rota`, in a process of its own, one job at a time."""
    return await harness.start(concurrency=1)
