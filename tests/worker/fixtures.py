"""Fixtures for tests that need workers: `harness` for a test's own, `shared` for one that many tests share."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.leaks import delete_keys
from tests.servers import Server
from tests.worker.harness import WorkerHarness

#: Enough for whatever a test leaves waiting.
SHARED_SLOTS = 40


@pytest.fixture
async def harness(valkey: Server, namespace: str, tmp_path: Path) -> AsyncIterator[WorkerHarness]:
    """Starts workers for this test alone."""
    with WorkerHarness(valkey, namespace, tmp_path) as harness:
        yield harness
        await harness.rota.close()


@pytest.fixture(scope="session")
def shared_harness(valkey: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerHarness]:
    """The harness behind `shared`."""
    namespace = f"shared{secrets.token_hex(4)}"
    with WorkerHarness(valkey, namespace, tmp_path_factory.mktemp("shared")) as harness:
        yield harness
    with valkey.client() as client:
        delete_keys(client, namespace)


@pytest.fixture
async def shared(shared_harness: WorkerHarness) -> AsyncIterator[WorkerHarness]:
    """A harness with one worker that many tests share: for what does no harm to others."""
    if not shared_harness.workers or not shared_harness.workers[-1].is_alive:
        await shared_harness.start(concurrency=SHARED_SLOTS)
    yield shared_harness
    await shared_harness.rota.close()
    assert shared_harness.workers[-1].is_alive, f"the shared worker died:\n{shared_harness.workers[-1].log[-3000:]}"
