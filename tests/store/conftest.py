"""What the tests of the store share."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable

import pytest

from tests.servers import Server
from tests.store.dependency_helpers import QUEUES
from tests.store.driver import Driver


@pytest.fixture
async def driver(server: Server, namespace: str) -> AsyncIterator[Driver]:
    """A store on each server in turn. After the test all that it keeps must agree with itself."""
    driver = Driver(server, namespace)
    yield driver
    try:
        driver.check()
        await driver.check_with_doctor()
    finally:
        await driver.close()


@pytest.fixture
def unused_address() -> Callable[[], str]:
    """Makes addresses at which nothing listens."""

    def make() -> str:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return f"redis://127.0.0.1:{probe.getsockname()[1]}"

    return make


@pytest.fixture
async def check_every_queue(driver: Driver) -> AsyncIterator[None]:
    """Checks the indexes of every queue of the tests of dependencies after a test."""
    yield
    for queue in QUEUES:
        driver.check(queue=queue)
