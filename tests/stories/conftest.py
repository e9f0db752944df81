"""A shop, and a worker for it: what every story starts with."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.servers import Server
from tests.worker.crew import Crew, WorkerProcess


@pytest.fixture
async def crew(valkey: Server, namespace: str, tmp_path: Path) -> AsyncIterator[Crew]:
    """Starts workers for the shop."""
    with Crew(valkey, namespace, tmp_path, module="tests.stories.shop") as crew:
        yield crew
        await crew.rota.close()


@pytest.fixture
def shop(crew: Crew) -> ModuleType:
    """The program: `shop.py`, with its `rota` and its tasks."""
    return crew.program


@pytest.fixture
async def worker(crew: Crew) -> WorkerProcess:
    """`rota worker shop:rota`, in a process of its own, one job at a time."""
    return await crew.start(concurrency=1)
