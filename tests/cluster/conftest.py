"""A cluster for the tests of one process, and workers on it."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import pytest

from rota.store.keys import is_permanent
from tests.cli.driver import TASKS, Cli
from tests.cli.nursery import Nursery
from tests.cluster.nodes import Cluster
from tests.leaks import leaked_keys
from tests.worker.crew import Crew

APP: Final = "tests.cluster.app"
#: One on each node, as `test_the_queues_of_these_tests_live_on_three_nodes` makes sure.
QUEUES: Final = ("mail", "print", "billing")
#: Spread over all of them.
WIDE: Final = "wide"


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Three nodes for all tests that leave them as they are."""
    with Cluster() as cluster:
        yield cluster


@pytest.fixture
def own_cluster() -> Iterator[Cluster]:
    """Three nodes for this test alone, which it may kill, and whose slots it may move."""
    with Cluster() as cluster:
        yield cluster


@pytest.fixture
def namespace(request: pytest.FixtureRequest) -> Iterator[str]:
    """Prefix of this test's keys. Afterwards it fails if one of them neither expires nor is declared permanent."""
    wanted = {"cluster", "own_cluster"} & set(request.fixturenames)
    used: list[Cluster] = [request.getfixturevalue(name) for name in wanted]
    name = f"t{secrets.token_hex(5)}"
    yield name
    leaked: list[str] = []
    for node in (node for cluster in used for node in cluster.nodes if node.is_running):
        with node.client() as client:
            leaked += leaked_keys(client, name, is_permanent)
    if leaked:
        pytest.fail("keys that neither expire nor are declared permanent:\n  " + "\n  ".join(leaked), pytrace=False)


@pytest.fixture
async def crew(cluster: Cluster, namespace: str, tmp_path: Path) -> AsyncIterator[Crew]:
    """Starts workers for this test alone."""
    with Crew(cluster, namespace, tmp_path, APP) as crew:
        yield crew
        await crew.rota.close()


@pytest.fixture(scope="session")
def lodging(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crew]:
    """The crew behind `shared`."""
    with Crew(cluster, f"shared{secrets.token_hex(4)}", tmp_path_factory.mktemp("shared"), APP) as crew:
        yield crew


@pytest.fixture
async def shared(lodging: Crew) -> AsyncIterator[Crew]:
    """A crew with one worker for all three queues that many tests share: for what does no harm to others."""
    if not lodging.workers or not lodging.workers[-1].is_alive:
        await lodging.start(queues=",".join([*QUEUES, WIDE]), concurrency=20)
    yield lodging
    await lodging.rota.close()
    assert lodging.workers[-1].is_alive, f"the shared worker died:\n{lodging.workers[-1].log[-3000:]}"


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """Starts commands quickly."""
    nursery = Nursery()
    yield nursery
    nursery.close()


@pytest.fixture
def cli(nursery: Nursery, cluster: Cluster, namespace: str, tmp_path: Path) -> Iterator[Cli]:
    """`rota` in a folder with a program, `tasks:rota`, on the cluster."""
    cli = Cli(nursery, tmp_path, namespace, cluster.url)
    cli.write(TASKS)
    yield cli
    cli.close()
