"""A cluster for the tests of one process, and workers on it."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import pytest

from rota.store.keys import is_permanent
from tests.cli.driver import TASKS, Cli
from tests.cli.fork_server import ForkServer
from tests.cluster.nodes import Cluster
from tests.leaks import leaked_keys
from tests.worker.harness import WorkerHarness

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
async def harness(cluster: Cluster, namespace: str, tmp_path: Path) -> AsyncIterator[WorkerHarness]:
    """Starts workers for this test alone."""
    with WorkerHarness(cluster, namespace, tmp_path, APP) as harness:
        yield harness
        await harness.rota.close()


@pytest.fixture(scope="session")
def shared_harness(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerHarness]:
    """The harness behind `shared`."""
    with WorkerHarness(cluster, f"shared{secrets.token_hex(4)}", tmp_path_factory.mktemp("shared"), APP) as harness:
        yield harness


@pytest.fixture
async def shared(shared_harness: WorkerHarness) -> AsyncIterator[WorkerHarness]:
    """A harness with one worker for all three queues that many tests share: for what does no harm to others."""
    if not shared_harness.workers or not shared_harness.workers[-1].is_alive:
        await shared_harness.start(queues=",".join([*QUEUES, WIDE]), concurrency=20)
    yield shared_harness
    await shared_harness.rota.close()
    assert shared_harness.workers[-1].is_alive, f"the shared worker died:\n{shared_harness.workers[-1].log[-3000:]}"


@pytest.fixture(scope="session")
def fork_server() -> Iterator[ForkServer]:
    """Starts commands quickly."""
    fork_server = ForkServer()
    yield fork_server
    fork_server.close()


@pytest.fixture
def cli(fork_server: ForkServer, cluster: Cluster, namespace: str, tmp_path: Path) -> Iterator[Cli]:
    """`rota` in a folder with a program, `tasks:rota`, on the cluster."""
    cli = Cli(fork_server, tmp_path, namespace, cluster.url)
    cli.write(TASKS)
    yield cli
    cli.close()
