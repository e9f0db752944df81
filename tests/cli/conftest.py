"""The fixtures of these tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.driver import TASKS, Cli, Hand
from tests.cli.fork_server import ForkServer
from tests.servers import Server


@pytest.fixture(scope="session")
def fork_server() -> Iterator[ForkServer]:
    """Starts commands quickly."""
    fork_server = ForkServer()
    yield fork_server
    fork_server.close()


@pytest.fixture
def cli(fork_server: ForkServer, valkey: Server, namespace: str, tmp_path: Path) -> Iterator[Cli]:
    """`rota` in a folder with a program, `tasks:rota`, on the test's server and namespace."""
    cli = Cli(fork_server, tmp_path, namespace, valkey.url)
    cli.write(TASKS)
    yield cli
    cli.close()


@pytest.fixture
def hand(valkey: Server, namespace: str) -> Iterator[Hand]:
    """Enqueues and moves jobs without a worker."""
    hand = Hand(valkey.url, namespace)
    yield hand
    hand.close()
