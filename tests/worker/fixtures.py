"""Fixtures for tests that need workers: `crew` for a test's own, `shared` for one that many tests share."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.leaks import delete_keys
from tests.servers import Server
from tests.worker.crew import Crew

#: Enough for whatever a test leaves waiting.
SHARED_SLOTS = 40


@pytest.fixture
async def crew(valkey: Server, namespace: str, tmp_path: Path) -> AsyncIterator[Crew]:
    """Starts workers for this test alone."""
    with Crew(valkey, namespace, tmp_path) as crew:
        yield crew
        await crew.rota.close()


@pytest.fixture(scope="session")
def lodging(valkey: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crew]:
    """The crew behind `shared`."""
    namespace = f"shared{secrets.token_hex(4)}"
    with Crew(valkey, namespace, tmp_path_factory.mktemp("shared")) as crew:
        yield crew
    with valkey.client() as client:
        delete_keys(client, namespace)


@pytest.fixture
async def shared(lodging: Crew) -> AsyncIterator[Crew]:
    """A crew with one worker that many tests share: for what does no harm to others."""
    if not lodging.workers or not lodging.workers[-1].is_alive:
        await lodging.start(concurrency=SHARED_SLOTS)
    yield lodging
    await lodging.rota.close()
    assert lodging.workers[-1].is_alive, f"the shared worker died:\n{lodging.workers[-1].log[-3000:]}"
